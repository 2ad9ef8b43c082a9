"""What ELMo adds to translations and summaries, over seeds, with all of the data and with a tenth of it; and speed.

    python benchmarks/generate.py MODEL                          everything; takes a day
    python benchmarks/generate.py MODEL --only multi30k-10       a part; the table still shows all recorded outcomes
    python benchmarks/generate.py MODEL --examples 200 --epochs 2 --work /tmp/try     a slice; nothing is recorded

Each fit is a run in a folder under --work, and each outcome is recorded when it is known (results/generate.jsonl):
the same command again resumes where it stopped, also inside a fit.

`words` has word vectors trained from scratch and no ELMo. `elmo` adds the learned mix of ELMo's layers at the input of
the encoder. `static` has the vectors of the model's layer 0 alone, which do not depend on the context.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch

import bilmo
from bilmo.errors import TextError
from bilmo.generate import scores
from bilmo.generate.folder import load
from bilmo.generate.generator import Generator
from bilmo.generate.summarise import SUMMARISE, PreparedSummarise
from bilmo.generate.translate import TRANSLATE
from bilmo.tasks.core import run
from bilmo.tasks.core.events import Epoch
from bilmo.tasks.core.spec import Dataset
from bilmo.text.split import splitter

DATA = Path(os.environ.get("BILMO_DATA", Path(__file__).parents[2] / "shared" / "data")) / "generate"
RESULTS = Path(__file__).parent / "results"
VARIANTS: dict[str, dict[str, Any]] = {
    "words": {"vectors": "scratch", "elmo_at": "none"},
    "elmo": {"vectors": "scratch"},
    "static": {"mix": (0,)},
}
BEAMS = (1, 5)
TIMED = 200
"""Texts whose writing is timed."""
Pairs = Dataset[Any, str]


@dataclass(frozen=True)
class Question:
    """One data set, all of it or a tenth."""

    name: str
    data: str
    seeds: int
    share: int
    """Every n-th pair is used for training."""
    settings: dict[str, Any]


TRANSLATION = {"word_width": 256, "hidden": 256, "target_width": 256, "dropout": 0.4}
HEADLINES = {"word_width": 128, "source_limit": 200, "target_limit": 40, "dropout": 0.3}
QUESTIONS = (
    Question("multi30k-10", "multi30k", 3, 10, TRANSLATION | {"epochs": 60, "patience": 8}),
    Question("multi30k", "multi30k", 2, 1, TRANSLATION | {"epochs": 30, "patience": 4}),
    Question("wikinews-10", "wikinews", 3, 10, HEADLINES | {"epochs": 60, "patience": 8}),
    Question("wikinews", "wikinews", 2, 1, HEADLINES | {"epochs": 30, "patience": 4}),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en")
    parser.add_argument("--only", default="", help="names of questions, separated by commas")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--examples", type=int, help="use this many pairs of each part; nothing is recorded")
    parser.add_argument("--epochs", type=int, help="maximum number of epochs, instead of those of each question")
    parser.add_argument("--seeds", type=int, help="number of seeds, instead of those of each question")
    parser.add_argument("--work", type=Path, default=Path("generate-runs"), help="folder of the runs")
    given = parser.parse_args(arguments)
    elmo = bilmo.load(given.model)
    log = RESULTS / "generate.jsonl"
    for question in QUESTIONS:
        if given.only and question.name not in given.only.split(","):
            continue
        parts = [limited(part, given.examples) for part in data_of(question)]
        for variant in given.variants.split(","):
            for seed in range(1, (given.seeds or question.seeds) + 1):
                settings = question.settings | VARIANTS[variant] | {"seed": seed}
                settings |= {"epochs": given.epochs} if given.epochs else {}
                key = key_of(question, variant, settings, "" if variant == "words" else elmo.bundle.identity(), parts)
                found = None if given.examples else recorded(log, key)
                if found is None:
                    name = f"{question.name}-{variant}-{seed}-{digest(key)[:8]}"
                    found = measured(question, elmo, settings, parts, given.work / name, given.model)
                    if not given.examples:
                        with log.open("a", encoding="utf-8") as file:
                            file.write(json.dumps({"key": key, "found": found}) + "\n")
                print(question.name, variant, seed, json.dumps(found), flush=True)
                if not given.examples:
                    (RESULTS / "generate.md").write_text(page(log, given.model), encoding="utf-8")


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def key_of(
    question: Question, variant: str, settings: dict[str, Any], model: str, parts: Sequence[Pairs]
) -> dict[str, Any]:
    """Everything that decides an outcome."""
    data = digest([(part.examples, part.answers) for part in parts])
    key = {"question": question.name, "variant": variant, "settings": settings, "model": model, "data": data}
    return dict(json.loads(json.dumps(key)))  # as it is read back


def recorded(log: Path, key: dict[str, Any]) -> dict[str, Any] | None:
    """The last recorded outcome of this key."""
    fitting = [entry["found"] for entry in entries(log) if entry["key"] == key]
    return dict(fitting[-1]) if fitting else None


def entries(log: Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in log.read_text("utf-8").splitlines()] if log.exists() else []


def data_of(question: Question) -> list[Pairs]:
    """Train, dev and test pairs."""
    folder = DATA / question.data
    if not folder.is_dir():
        raise TextError(f"{folder}: there is no such folder; set BILMO_DATA to the folder of the data sets")
    if question.data == "multi30k":
        names = [("train.en.xz", "train.de.xz"), ("val.en", "val.de"), ("test_2016_flickr.en", "test_2016_flickr.de")]
        sets = [TRANSLATE.read_files([folder / a, folder / b], "auto", TRANSLATE.settings()) for a, b in names]
    else:
        settings = SUMMARISE.settings(text_field="paras", summary_field="title")
        files = [folder / f"{name}.jsonl.xz" for name in ("train", "dev", "test")]
        sets = [SUMMARISE.read_files([file], "auto", settings) for file in files]
    train, dev, test = [Dataset(some.examples, some.answers) for some in sets]
    return [Dataset(train.examples[:: question.share], train.answers[:: question.share]), dev, test]


def limited(part: Pairs, most: int | None) -> Pairs:
    return Dataset(part.examples[:most], part.answers[:most])


def measured(
    question: Question, elmo: bilmo.Embedder, settings: dict[str, Any], parts: Sequence[Pairs], folder: Path, model: str
) -> dict[str, Any]:
    """Fit, or resume the fit; write the test set; the measures, and the speed of writing."""
    train, dev, test = parts
    task = TRANSLATE if question.data == "multi30k" else SUMMARISE
    kind: Any = task.estimator()
    given = dict(settings)
    uses_elmo = given.get("elmo_at") != "none"
    estimator = kind(elmo if uses_elmo else None, vectors=given.pop("vectors", None), **given)
    seconds = 0.0
    epochs = 0
    for event in run.fit(estimator, folder, train, dev, model=model):
        if isinstance(event, Epoch):
            seconds += event.seconds
            epochs = event.number
            print(f"{folder.name}: epoch {event.number}, dev {event.value:.4f}, {event.seconds:.0f} s", flush=True)
    fitted = load(folder, elmo=elmo if uses_elmo else None)
    assert isinstance(fitted, Generator)
    texts = fitted.predict(test.examples)
    found: dict[str, Any] = {"dev": estimator.best_, "epochs": epochs, "seconds": seconds}
    if question.data == "multi30k":
        value = scores.bleu(test.answers, texts)
        found |= {"BLEU": value.value, "chrF": dict(value.details)["chrF"], "signature": value.notes[0]}
        found["BLEU, lower-cased and tokenized"] = tokenized_bleu(test.answers, texts)
    else:
        found |= scores.rouge_values(test.answers, texts, chinese=False)
        prepared = fitted.prepared_
        assert isinstance(prepared, PreparedSummarise)
        found["first sentence"] = dict(prepared.baselines(test.examples, test.answers))
    for beam in BEAMS:
        some = list(test.examples[:TIMED])
        began = time.perf_counter()
        results = fitted.hypotheses(some, beam=beam)
        words = sum(len(one[0].tokens) for one in results if one)
        found[f"words per second, beam {beam}"] = words / (time.perf_counter() - began)
    return found


def tokenized_bleu(true: Sequence[str], predicted: Sequence[str]) -> float:
    """BLEU of lower-cased words, as in most papers about this data; their tokenizer is another one."""
    split = splitter("west")

    def words(texts: Sequence[str]) -> list[str]:
        return [" ".join(token for sentence in split(text.lower()) for token in sentence) for text in texts]

    metric = scores.need_bleu().BLEU(tokenize="none", force=True)
    return float(metric.corpus_score(words(predicted), [words(true)]).score) / 100


def page(log: Path, model: str) -> str:
    """All recorded outcomes: means over seeds."""
    parts = [
        f"# Translations and summaries\n\n{date.today()}, model `{model}`, `python benchmarks/generate.py {model}`; "
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, {platform.machine()}. Measures are means over "
        "seeds, with standard deviations in brackets; speeds are those of one run each.\n"
    ]
    rows = entries(log)
    for question in QUESTIONS:
        some = [entry for entry in rows if entry["key"]["question"] == question.name]
        if some:
            parts.append("\n".join(section(question, some)) + "\n")
    return "\n".join(parts)


def section(question: Question, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    translation = question.data == "multi30k"
    names = ["BLEU", "BLEU, lower-cased and tokenized", "chrF"] if translation else ["rougeL", "rouge1", "rouge2"]
    speeds = [f"words per second, beam {beam}" for beam in BEAMS]
    yield f"## {question.name}\n"
    yield f"| variant | {' | '.join(names)} | epochs | minutes | {' | '.join(speeds)} | seeds |"
    yield "|---" * (len(names) + len(speeds) + 4) + "|"
    for variant in VARIANTS:
        # A run that was measured again with the same seed replaces the one before.
        found = {
            entry["key"]["settings"]["seed"]: entry["found"] for entry in rows if entry["key"]["variant"] == variant
        }
        if not found:
            continue
        values = list(found.values())
        cells = [spread([100 * value[name] for value in values]) for name in names]
        cells += [spread([value["epochs"] for value in values]), spread([value["seconds"] / 60 for value in values])]
        cells += [f"{values[0][name]:,.0f}" for name in speeds]
        yield f"| {variant} | {' | '.join(cells)} | {len(found)} |"
    if not translation:
        first = rows[-1]["found"]["first sentence"]
        yield "\n" + ", ".join(f"{name} {100 * value:.1f}" for name, value in first.items())


def spread(values: Sequence[float]) -> str:
    deviation = f" ({statistics.stdev(values):.1f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{deviation}"


if __name__ == "__main__":
    main()
