"""Speed before and after a change: `python benchmarks/before_after.py COMMIT`.

Embeds and trains with the tree of COMMIT and with the present one, in turn, each in a process of its own, and prints
the medians and their ratio. Both trees are used through what users see: `bilmo.load`, `embed` and `bilmo train`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from text import sentences

ROOT = Path(__file__).parents[1]
ROUNDS = 5
EMBED = """
import json, sys, time
import bilmo
sentences = json.load(open(sys.argv[1], encoding="utf-8"))
elmo = bilmo.load(sys.argv[2])
elmo.embed(sentences[:200])
began = time.perf_counter()
elmo.embed(sentences)
print(sum(map(len, sentences)) / (time.perf_counter() - began))
"""
RECIPES = {
    "train, 256 cells, width 128": "width = 128\ncells = 256",
    "train, 1024 cells, width 256": "width = 256\ncells = 1024",
}
RECIPE = """
[text]
lang = "spaces"
held_out = 0.05
[network]
{size}
char_width = 16
filters = [[1, 32], [2, 32], [3, 64], [4, 128]]
[train]
batch = 1024
epochs = {epochs}
evaluate_every = 100000
"""
WARM_UP = 20
"""Steps that do not count: the first ones are slower."""
TRAINING_WORDS = 60_000
"""About as many words are trained on in one run."""


def embedded(source: Path, folder: Path, model: Path) -> float:
    """Words per second of one call."""
    done = run([sys.executable, "-c", EMBED, str(folder / "sentences.json"), str(model)], source, folder)
    return float(done)


def trained(source: Path, folder: Path, recipe: str) -> float:
    """Words per second of the median step."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        (Path(made) / "recipe.toml").write_text(recipe, encoding="utf-8")
        command = ["train", str(folder / "text.txt"), "-o", f"{made}/model", "--recipe", f"{made}/recipe.toml"]
        run([sys.executable, "-m", "bilmo", *command], source, folder)
        entries = [json.loads(line) for line in (Path(made) / "model" / "train.jsonl").read_text("utf-8").splitlines()]
    steps = [entry for entry in entries if "rate" in entry][WARM_UP:]
    return float(statistics.median(step["words"] / step["seconds"] for step in steps))


def run(command: list[str], source: Path, folder: Path) -> str:
    """What a command prints, with the package from `source`."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{source}: {done.stderr}")
    return done.stdout


def main(commit: str) -> None:
    """Both trees in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = folder / "before"
        subprocess.run(["git", "worktree", "add", "--detach", "-q", before, commit], cwd=ROOT, check=True)
        try:
            some = sentences(6000)
            (folder / "sentences.json").write_text(json.dumps(some[:3000]), encoding="utf-8")
            text = "".join(" ".join(sentence) + "\n" for sentence in some)
            (folder / "text.txt").write_text(text, encoding="utf-8")
            epochs = TRAINING_WORDS / sum(map(len, some))
            sources = {"before": before / "src", "now": ROOT / "src"}
            model = before / "src" / "bilmo" / "models" / "en"
            print("| what | before, words/s | now, words/s | now / before |\n|---|---|---|---|")
            found: dict[str, list[float]] = {side: [] for side in sources}
            for _ in range(ROUNDS):
                for side, source in sources.items():
                    found[side].append(embedded(source, folder, model))
            show("embed with `en`", found)
            for what, size in RECIPES.items():
                found = {side: [] for side in sources}
                for _ in range(ROUNDS):
                    for side, source in sources.items():
                        found[side].append(trained(source, folder, RECIPE.format(size=size, epochs=epochs)))
                show(what, found)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", before], cwd=ROOT, check=True)


def show(what: str, found: dict[str, list[float]]) -> None:
    """One row of the table."""
    before, now = (statistics.median(found[side]) for side in ("before", "now"))
    print(f"| {what} | {before:,.0f} | {now:,.0f} | {now / before:.3f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
