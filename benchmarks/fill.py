"""How the directions are best combined to guess a word: `python benchmarks/fill.py MODEL TEXT [TEXT ...]`.

At one random place of each sentence, the actual word is compared with the candidates of each rule: how often it is the
first one, how often it is among the first ten, and the mean of 1 / rank. Words that are not in the vocabulary are left
out. The table goes to results/fill.md. Use text that the model was not trained on.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import numpy as np

import bilmo
from bilmo.embed.fill import PRIOR, LogProbs, combined
from bilmo.text.files import all_lines

RESULTS = Path(__file__).parent / "results"
PRIORS = (0.0, 0.25, 0.5, 0.75, 1.0)
RULES = ("forward", "backward", *(f"both, prior taken out {share:g} times" for share in PRIORS))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--sentences", type=int, default=1000, help="number of sentences")
    parser.add_argument("--no-save", action="store_true", help="only print the table")
    given = parser.parse_args(arguments)
    elmo = bilmo.load(given.model)
    table = measured(elmo, given.texts, given.sentences)
    names = " ".join(path.name for path in given.texts)
    command = f"python benchmarks/fill.py {given.model} {names} --sentences {given.sentences}"
    page = f"# Which word fits\n\n{date.today()}, `{command}`; bilmo uses {PRIOR:g}.\n\n{table}"
    print(page)
    if not given.no_save:
        (RESULTS / "fill.md").write_text(page, encoding="utf-8")


def measured(elmo: bilmo.Embedder, texts: list[Path], count: int) -> str:
    """The table of all rules."""
    vocab = elmo.bundle.vocab
    assert vocab is not None
    ranks: list[list[int]] = []
    for sentence, position in places(elmo, texts, count):
        (actual,) = vocab.ids([sentence[position]])
        if actual != vocab.unknown:
            logs = elmo.log_probs_at(sentence, position).astype(np.float64)
            rules = [logs[0], logs[1], *(combined(logs, vocab, share) for share in PRIORS)]
            ranks.append([rank(rule, actual, [vocab.begin, vocab.end, vocab.unknown]) for rule in rules])
    found = np.array(ranks, dtype=float)  # (places, rules)
    rows = ["| rule | first | among ten | mean of 1 / rank |", "|---|---|---|---|"]
    for name, column in zip(RULES, found.T, strict=True):
        rows.append(
            f"| {name} | {(column == 1).mean():.1%} | {(column <= 10).mean():.1%} | {(1 / column).mean():.3f} |"
        )
    return "\n".join([f"{len(found):,} places.\n", *rows, ""])


def places(elmo: bilmo.Embedder, texts: list[Path], count: int) -> Iterator[tuple[list[str], int]]:
    """Sentences drawn from the whole text, and a place in each."""
    sentences = [sentence for line in all_lines(texts) for sentence in elmo.sentences(line) if sentence]
    draw = random.Random(1)
    for sentence in draw.sample(sentences, min(count, len(sentences))):
        yield list(sentence), draw.randrange(len(sentence))


def rank(logs: LogProbs, actual: int, marks: list[int]) -> int:
    """The rank of the actual word among all words but the marks."""
    words = logs.copy()
    words[marks] = -np.inf
    return 1 + int((words > words[actual]).sum())


if __name__ == "__main__":
    main()
