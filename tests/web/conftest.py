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

USES = [
    *(f"We sat on the bank of the {name} river." for name in "red old long cold wide deep".split()),
    *(f"The bank lent {name} money at high interest." for name in "much some more extra new his".split()),
    "The river rose. The sun sank.",
]


@contextmanager
def serving(folder: Path, *arguments: object) -> Iterator[httpx.Client]:
    """A client of `bilmo serve ARGUMENTS...`, which must stop without a message and with code 0."""
    process = started(folder, "serve", *arguments, "--port", 0)
    line = process.stderr.readline()
    found = re.search(r"on (http://\S+)", line)
    if not found:
        raise AssertionError(line + process.communicate()[1])
    with httpx.Client(base_url=found[1], timeout=60, transport=httpx.HTTPTransport(retries=5)) as client:
        try:
            yield client
        finally:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.fixture(scope="session")
def fitted(tmp_path_factory) -> Path:
    """A folder with a tagger, a classifier, a reader of questions and an index, all made with `en`."""
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
    (folder / "uses.txt").write_text("\n".join(USES) + "\n")
    done = program(folder, "index", "en", "uses.txt", "-o", "uses")
    assert done.code == 0, done.err
    return folder


@pytest.fixture(scope="session")
def server(fitted) -> Iterator[httpx.Client]:
    with serving(
        fitted,
        *("en", "zh", "--task", "my-tag", "--task", "labels=my-classify", "--task", "my-answer", "--index", "uses"),
    ) as client:
        yield client
