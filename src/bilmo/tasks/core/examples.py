"""Examples of a task from a file, and answers to a file.

Knows: the forms of each task. Blind to: networks, the command line.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, get_args

from bilmo.errors import ConfigError
from bilmo.tasks.classify.classifier import Classifier
from bilmo.tasks.core.estimator import Task
from bilmo.tasks.data import columns
from bilmo.tasks.data import labelled as texts
from bilmo.tasks.data.labelled import Source
from bilmo.tasks.tag.tagger import Tagger
from bilmo.text.split import SAMPLE, splitter

Examples = tuple[Sequence[Any], Sequence[Any]]
"""Texts and answers."""
Shape = Literal["table", "csv", "conll", "jsonl"]
"""How answers are written; a table has tabs between its columns."""


def look(task: str, path: Path, *, form: str = "auto") -> Source:
    """Find out the form of examples."""
    return columns.look(path, form) if task == Tagger.name else texts.look(path, form)


def taken(task: str, source: Source, *, column: str = "") -> Examples:
    """Examples to learn from, or to compare with."""
    if task == Tagger.name:
        tagged = columns.tagged(source, column)
        return [example.tokens for example in tagged], [example.tags for example in tagged]
    labelled = texts.labelled(source)
    return [example.text for example in labelled], [example.label for example in labelled]


def read(task: str, path: Path, *, form: str = "auto", column: str = "") -> Examples:
    """Examples from a file."""
    return taken(task, look(task, path, form=form), column=column)


def questions(task: Task, path: Path, *, form: str = "auto") -> tuple[str, Iterator[Any]]:
    """How a file was read, in words; and its texts or sentences to answer, one after the other.

    They may have labels or tags beside them, in any form that `read` knows; those are not looked at.
    """
    if isinstance(task, Tagger):
        source = columns.look_to_answer(path, form, lambda tag: not task.unseen([[tag]]), task.used_.column)
        if source.form != "lines":
            return columns.SHAPES[source.form], columns.untagged(source)
        rows = iter(source.rows)
        first = list(islice(rows, SAMPLE))
        way = task.way(first)
        split = splitter(way)
        # A line without words is an answer too, so that answers can be told apart by their number.
        sentences = (sentence for row in chain(first, rows) for sentence in split(row) or [[]])
        return f"{columns.SHAPES['lines']}, split as {way}", sentences
    source = texts.look_to_answer(path, form, lambda label: not task.unseen([label]), task.form_)
    return texts.SHAPES[source.form], texts.unlabelled(source)


def shape_of(task: str, output: Path | None, wanted: str) -> Shape:
    """How answers are written: as asked for, by the name of the file, or as the task likes it best."""
    named: dict[str, Shape] = {".jsonl": "jsonl", ".tsv": "table", ".csv": "csv", ".conll": "conll"}
    usual: Shape = "conll" if task == Tagger.name else "table"
    shape = usual
    if wanted != "auto":
        known: dict[str, Shape] = {name: name for name in get_args(Shape)}
        if wanted not in known:
            raise ConfigError(f"--to is {wanted!r}; known are auto, {', '.join(known)}")
        shape = known[wanted]
    elif output is not None:
        shape = named.get(output.suffix.lower(), usual)
    if shape == "conll" and task != Tagger.name:
        raise ConfigError("CoNLL columns hold a tag a token; labels of texts are written as a table, CSV or JSONL")
    return shape


def answered(
    task: Task, questions: Sequence[Any], shape: Shape, *, probabilities: bool, number: int = 1
) -> Iterator[str]:
    """Lines with the answers to some questions, of which the first has this number."""
    if isinstance(task, Tagger):
        return _tagged(task, questions, shape, probabilities=probabilities, number=number)
    assert isinstance(task, Classifier)
    return _classified(task, questions, shape, probabilities=probabilities)


def heading(task: Task, shape: Shape, *, probabilities: bool) -> str | None:
    """The first line of a table that needs one: `label<TAB>text` is read without."""
    if shape not in ("table", "csv"):
        return None
    if isinstance(task, Tagger):
        return _line(["sentence", "token", "tag", *(["probability"] if probabilities else [])], shape)
    assert isinstance(task, Classifier)
    if shape == "table" and not probabilities:
        return None
    return _line(["label", *(task.labels_ if probabilities else []), "text"], shape)


def _classified(task: Classifier, questions: Sequence[Any], shape: Shape, *, probabilities: bool) -> Iterator[str]:
    likely = task.predict_proba(questions)
    for text, row in zip(questions, likely, strict=True):
        label = task.labels_[int(row.argmax())]
        if shape == "jsonl":
            entry: dict[str, Any] = {"label": label, "text" if isinstance(text, str) else "tokens": text}
            if probabilities:
                entry["probabilities"] = {name: round(float(p), 6) for name, p in zip(task.labels_, row, strict=True)}
            yield json.dumps(entry, ensure_ascii=False)
        else:
            shown = [f"{p:.4f}" for p in row] if probabilities else []
            yield _line([label, *shown, text if isinstance(text, str) else " ".join(text)], shape)


def _tagged(task: Tagger, questions: Sequence[Any], shape: Shape, *, probabilities: bool, number: int) -> Iterator[str]:
    certain = task.certainty(questions) if probabilities else [[0.0] * len(tokens) for tokens in questions]
    answers = zip(questions, task.predict(questions), certain, strict=True)
    for sentence, (tokens, tags, likely) in enumerate(answers, start=number):
        if shape == "jsonl":
            entry: dict[str, Any] = {"tokens": list(tokens), "tags": tags}
            if probabilities:
                entry["probabilities"] = [round(p, 6) for p in likely]
            yield json.dumps(entry, ensure_ascii=False)
            continue
        for token, tag, p in zip(tokens, tags, likely, strict=True):
            counted = [] if shape == "conll" else [str(sentence)]
            yield _line([*counted, token, tag, *([f"{p:.4f}"] if probabilities else [])], shape)
        if shape == "conll":
            yield ""


def _line(cells: Sequence[Any], shape: Shape) -> str:
    """Columns as CSV, which can hold anything; or with tabs between them, which can hold no tabs and no line ends."""
    if shape == "csv":
        written = io.StringIO()
        csv.writer(written, lineterminator="").writerow(cells)
        return written.getvalue()
    return "\t".join(str(cell).replace("\t", " ").replace("\r", " ").replace("\n", " ") for cell in cells)
