"""A server as clients see it: a process of its own, asked over HTTP."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from program import program, started


@contextmanager
def serving(folder: Path, *arguments: object) -> Iterator[httpx.Client]:
    """A client of `bilmo serve ARGUMENTS...`, which must stop without a message and with code 0."""
    process = started(folder, "serve", *arguments, "--port", 0)
    line = process.stderr.readline()
    found = re.search(r"on (http://\S+)", line)
    if not found:
        raise AssertionError(line + process.communicate()[1])
    with httpx.Client(base_url=found[1], timeout=60) as client:
        try:
            yield client
        finally:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.fixture(scope="session")
def fitted(tmp_path_factory) -> Path:
    """A folder with a tagger, a classifier and a reader of questions that were fitted on `en`."""
    folder = tmp_path_factory.mktemp("fitted")
    sentences = "Anna\tB-PER\nsaw\tO\nOslo\tB-LOC\n\nthe\tO\ncat\tO\n\n"
    (folder / "entities.conll").write_text(sentences * 9)
    (folder / "reviews.tsv").write_text("".join(f"good\tthe cat {k}.\nbad\ta dog {k}.\n" for k in range(12)))
    answers = [{"text": "cat", "answer_start": 4}]
    rows = ({"context": f"The cat is {k}.", "question": "What?", "answers": answers} for k in range(24))
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for task, text in (("tag", "entities.conll"), ("classify", "reviews.tsv"), ("answer", "questions.jsonl")):
        done = program(folder, "fit", task, "en", "--train", text, "-o", f"my-{task}", "--epochs", 1)
        assert done.code == 0, done.err
    return folder


@pytest.fixture(scope="session")
def server(fitted) -> Iterator[httpx.Client]:
    with serving(
        fitted, "en", "zh", "--task", "my-tag", "--task", "labels=my-classify", "--task", "my-answer"
    ) as client:
        yield client
