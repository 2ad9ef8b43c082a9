"""Examples of a task from a file, and answers to a file.

Knows: the forms of each task. Blind to: networks, the command line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from bilmo.errors import ConfigError
from bilmo.tasks import columns, texts
from bilmo.tasks.classifier import Classifier
from bilmo.tasks.tagger import Tagger
from bilmo.tasks.task import Task

Examples = tuple[Sequence[Any], Sequence[Any]]
"""Texts and answers."""
Shape = Literal["table", "conll", "jsonl"]


def read(task: str, path: Path, *, form: str = "auto", column: str = "") -> Examples:
    """Examples to learn from, or to compare with."""
    if task == Tagger.name:
        tagged = columns.read(path, form, column)
        return [example.tokens for example in tagged], [example.tags for example in tagged]
    labelled = texts.read(path, form)
    return [example.text for example in labelled], [example.label for example in labelled]


def read_questions(task: str, path: Path, *, form: str = "auto") -> Iterator[Any]:
    """Texts or sentences to answer, one after the other."""
    return columns.read_sentences(path, form) if task == Tagger.name else texts.read_texts(path, form)


def shape_of(task: str, output: Path | None, wanted: str) -> Shape:
    """How answers are written: as asked for, by the name of the file, or as the task likes it best."""
    named: dict[str, Shape] = {".jsonl": "jsonl", ".tsv": "table", ".conll": "conll"}
    usual: Shape = "conll" if task == Tagger.name else "table"
    shape = usual
    if wanted != "auto":
        known = {"table", "conll", "jsonl"}
        if wanted not in known:
            raise ConfigError(f"--to is {wanted!r}; known are auto, {', '.join(sorted(known))}")
        shape = next(name for name in named.values() if name == wanted)
    elif output is not None:
        shape = named.get(output.suffix.lower(), usual)
    if shape == "conll" and task != Tagger.name:
        raise ConfigError("CoNLL columns hold a tag a token; labels of texts are written as a table or as JSONL")
    return shape


def answered(task: Task, questions: Sequence[Any], shape: Shape, *, probabilities: bool) -> Iterator[str]:
    """Lines with the answers to some questions."""
    if isinstance(task, Tagger):
        return _tagged(task, questions, shape, probabilities=probabilities)
    assert isinstance(task, Classifier)
    return _classified(task, questions, shape, probabilities=probabilities)


def heading(task: Task, shape: Shape, *, probabilities: bool) -> str | None:
    """The first line of a table that needs one."""
    if shape != "table":
        return None
    if isinstance(task, Tagger):
        return "\t".join(["sentence", "token", "tag", *(["probability"] if probabilities else [])])
    assert isinstance(task, Classifier)
    return "\t".join(["label", *task.labels_, "text"]) if probabilities else None


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
            yield "\t".join([label, *shown, _on_a_line(text if isinstance(text, str) else " ".join(text))])


def _tagged(task: Tagger, questions: Sequence[Any], shape: Shape, *, probabilities: bool) -> Iterator[str]:
    certain = task.certainty(questions) if probabilities else [[0.0] * len(tokens) for tokens in questions]
    for tokens, tags, likely in zip(questions, task.predict(questions), certain, strict=True):
        if shape == "jsonl":
            entry: dict[str, Any] = {"tokens": list(tokens), "tags": tags}
            if probabilities:
                entry["probabilities"] = [round(p, 6) for p in likely]
            yield json.dumps(entry, ensure_ascii=False)
            continue
        for token, tag, p in zip(tokens, tags, likely, strict=True):
            yield "\t".join([_on_a_line(token), tag, *([f"{p:.4f}"] if probabilities else [])])
        yield ""


def _on_a_line(text: str) -> str:
    return text.replace("\t", " ").replace("\r", " ").replace("\n", " ")
