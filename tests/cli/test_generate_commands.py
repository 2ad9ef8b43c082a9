"""Translations and summaries on the command line: every command, resuming, pages, every mistake."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
from html.parser import HTMLParser

import pytest

from program import SignalAfter, started

from generate_data import news, sentences

QUICK = ("--hidden", 12, "--target-width", 12, "--rate", 0.02, "--batch", 8)


def ok(result):
    assert result.code == 0, result.err
    return result


def write_pairs(folder, name, number=30, seed=0):
    """Two parallel files."""
    paths = [folder / f"{name}.en", folder / f"{name}.de"]
    for path, texts in zip(paths, sentences(number, seed), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return paths


@pytest.fixture
def fitted(run, model, tmp_path):
    train, dev = write_pairs(tmp_path, "train"), write_pairs(tmp_path, "dev", 6, 1)
    ok(run("fit", "translate", model, "--train", *train, "--dev", *dev, "-o", tmp_path / "task", "--epochs", 2, *QUICK))
    return tmp_path / "task"


def test_translate_from_fit_to_score(run, model, tmp_path):
    train, dev, out = write_pairs(tmp_path, "train"), write_pairs(tmp_path, "dev", 6, 1), tmp_path / "out"
    given = ("fit", "translate", model, "--train", *train, "--dev", *dev, "--test", *dev, "-o", out, *QUICK)
    made = ok(run(*given, "--epochs", 2, "--vectors", "scratch"))
    assert re.search(r"BLEU +\d+\.\d\d", made.out) and re.search(r"chrF +\d+\.\d\d", made.out)
    assert "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in made.out
    assert "sources are split as en, targets as west" in made.err
    scored = ok(run("score", out, *dev))
    assert scored.out.splitlines()[0] in made.out
    table = tmp_path / "pairs.tsv"
    lines = (path.read_text(encoding="utf-8").splitlines() for path in dev)
    table.write_text("".join(f"{a}\t{b}\n" for a, b in zip(*lines, strict=True)), encoding="utf-8")
    assert ok(run("score", out, table)).out == scored.out
    found = json.loads(ok(run("score", out, *dev, "--json")).out)
    assert found["measure"] == "BLEU" and found["notes"][0].startswith("BLEU|") and "chrF" in found["details"]
    done = ok(run(*given, "--epochs", 2, "--vectors", "scratch"))
    assert "epoch" not in done.err  # the run is complete


def test_predictions_in_every_form(run, fitted, tmp_path):
    texts = "the red cat saw a dog 7.\n\na cow\n"
    plain = ok(run("predict", fitted, "-", stdin=texts))
    assert len(plain.out.splitlines()) == 3
    assert "read as sources alone, one per line" in plain.err
    assert ok(run("predict", fitted, "the red cat saw a dog 7.")).out == plain.out.splitlines()[0] + "\n"
    several = ok(run("predict", fitted, "-", "--best", 3, "--beam", 4, stdin=texts)).out.splitlines()
    assert several[0] == "number\trank\tlog_probability\ttext" and len(several) == 1 + 9
    assert [row.split("\t")[:2] for row in several[1:4]] == [["1", "1"], ["1", "2"], ["1", "3"]]
    table = list(csv.reader(io.StringIO(ok(run("predict", fitted, "-", "--to", "csv", stdin=texts)).out)))
    assert [row[3] for row in table[1:]] == plain.out.splitlines()
    entries = [
        json.loads(line) for line in ok(run("predict", fitted, "-", "--to", "jsonl", stdin=texts)).out.splitlines()
    ]
    assert [entry["results"][0]["text"] for entry in entries] == plain.out.splitlines()
    assert entries[0]["source"] == "the red cat saw a dog 7."
    assert len(entries[0]["results"][0]["probabilities"]) == len(entries[0]["results"][0]["tokens"]) + 1
    short = ok(run("predict", fitted, "the red cat saw a dog 7.", "--longest", 2, "--to", "jsonl", "--beam", 1))
    assert len(json.loads(short.out)["results"][0]["tokens"]) <= 2


class Page(HTMLParser):
    """What a page refers to, and its tables."""

    def __init__(self, text):
        super().__init__()
        self.outside, self.heads, self.cells, self.last = [], [], 0, ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.outside += [value for name, value in attrs if name in ("src", "href")]
        self.outside += [tag] if tag in ("script", "link", "iframe") else []
        self.cells += tag == "td"
        self.last = tag

    def handle_data(self, data):
        if self.last == "th" and data.strip():
            self.heads.append(data)


def test_attention_is_drawn_in_a_page_that_needs_nothing_else(run, fitted, tmp_path):
    said = ok(run("predict", fitted, "the <red> cat saw.", "--attention", tmp_path / "a.html"))
    assert len(said.out.splitlines()) == 2 and "a.html: 1 predictions" in said.out
    page = Page((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert page.outside == []
    assert page.heads[:7] == ["the", "<", "red", ">", "cat", "saw", "."] and page.heads[-1] == "(end)"
    assert page.cells == 7 * (len(page.heads) - 7)
    ok(run("predict", fitted, "the <red> cat saw.", "-o", tmp_path / "b.html"))
    again = Page((tmp_path / "b.html").read_text(encoding="utf-8"))
    assert (again.heads, again.cells) == (page.heads, page.cells)


def test_a_killed_run_is_resumed_to_the_same_result(run, model, tmp_path):
    train = write_pairs(tmp_path, "train")
    given = ("fit", "translate", model, "--train", *train, "--epochs", 3, "--patience", 9, *QUICK, "-o")
    ok(run(*given, tmp_path / "whole"))
    kill = SignalAfter("bilmo.store.checkpoint", "write", 2, signal.SIGKILL)
    with started(tmp_path, *given, tmp_path / "out", after=kill) as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    resumed = ok(run(*given, tmp_path / "out"))
    assert "epoch   3" in resumed.err and "epoch   2" not in resumed.err
    for name in ("task.safetensors", "config.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_summarise_from_fit_to_score(run, model, tmp_path):
    path = tmp_path / "news.jsonl"
    rows = [{"paras": paragraphs, "title": title} for paragraphs, title in zip(*news(30), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fields = ("--text-field", "paras", "--summary-field", "title")
    made = ok(run("fit", "summarise", model, "--train", path, "-o", tmp_path / "out", *fields, "--epochs", 2, *QUICK))
    assert "dev" in made.out
    scored = ok(run("score", tmp_path / "out", path)).out
    assert re.search(r"ROUGE-L +\d+\.\d\d", scored) and "ROUGE-2 of the first sentence" in scored
    lines = ok(run("predict", tmp_path / "out", path)).out.splitlines()
    assert len(lines) == 30
    said = ok(run("predict", tmp_path / "out", "The red cat saw a dog. It slept.", "--best", 2))
    assert len(said.out.splitlines()) == 3


def test_compare(run, model, tmp_path):
    train = write_pairs(tmp_path, "train")
    quick = ("--epochs", 1, "--seeds", 1, "--variants", "words,both,0", *QUICK)
    shown = ok(run("compare", "translate", model, "--train", *train, *quick, "-o", tmp_path / "table.md")).out
    assert [line.split()[0] for line in shown.splitlines()] == ["variant", "words", "both", "layer"]
    assert "BLEU" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_mistakes_are_one_clear_line(run, model, fitted, tmp_path):
    a, b = write_pairs(tmp_path, "train")
    short = tmp_path / "short.de"
    short.write_text("ein\n", encoding="utf-8")
    fit = ("fit", "translate", model, "-o", tmp_path / "new")
    cases = [
        ((*fit, "--train", a, tmp_path / "none.de"), "none.de: there is no such file"),
        ((*fit, "--train", a, short), "has 30 lines"),
        ((*fit, "--train", a), "line 1: has no tab"),
        ((*fit, "--train", a, b, "--target-lang", "xx"), "target_lang is 'xx'; accepted: auto, spaces"),
        ((*fit, "--train", a, b, "--stop", "never"), "stop"),
        (("fit", "translate", model, "--train", a, b, "-o", b), "train.de"),
        (("score", fitted, a), "line 1: has no tab"),
        (("score", fitted, a, b, a), "3 files"),
        (("predict", fitted, "a cat", "--beam", 0), "beam is 0"),
        (("predict", fitted, "a cat", "--to", "conll"), "can be written as text, table, csv, jsonl, html"),
        (("predict", fitted, a, "--attention", a), "train.en"),
    ]
    for arguments, message in cases:
        result = run(*arguments)
        assert result.code == 1 and message in result.err.splitlines()[-1], arguments
        assert "Traceback" not in result.err
    assert not (tmp_path / "new").exists()


def test_options_of_the_search_are_refused_for_other_tasks(run, model, tmp_path):
    rows = "".join(f"good\ta cat {k}\nbad\ta dog {k}\n" for k in range(8))
    (tmp_path / "a.tsv").write_text(rows, encoding="utf-8")
    ok(run("fit", "classify", model, "--train", tmp_path / "a.tsv", "-o", tmp_path / "c", "--epochs", 1))
    result = run("predict", tmp_path / "c", "a cat", "--beam", 3, "--attention", "x.html")
    assert (
        result.code == 1 and "--beam, --attention: only for tasks that write texts; this task is classify" in result.err
    )
    two = run("score", tmp_path / "c", tmp_path / "a.tsv", tmp_path / "a.tsv")
    assert two.code == 1 and "classify reads one file; found 2" in two.err
