"""Role labelling on the command line: every form of data, raw text, and every mistake."""

from __future__ import annotations

import json
import re

import pytest

from bilmo.store import model_folder
from bilmo.tasks.data import frames, spans
from bilmo.tasks.data.frames import Marked
from program import program

from task_data import clauses, made

QUICK = ("--hidden", 10, "--rate", 0.02, "--epochs", 4, "--depth", 2)


def brackets(tags):
    cells = ["*"] * len(tags)
    for kind, start, end in spans.spans(tags):
        cells[start] = f"({kind}*"
        cells[end] += ")"
    return cells


def write(path, number=30, seed=0):
    lines = []
    for tokens, found in zip(*clauses(number, seed), strict=True):
        if path.suffix == ".jsonl":
            verbs = [{"index": frame.predicate, "lemma": "x", "tags": frame.tags} for frame in found]
            lines.append(json.dumps({"words": tokens, "pos": tokens, "verbs": verbs}))
            continue
        columns = [brackets(frame.tags) for frame in found]
        targets = {frame.predicate for frame in found}
        for k, token in enumerate(tokens):
            roles = [cells[k] for cells in columns]
            if path.suffix == ".2012":
                lines.append(" ".join(["doc", "0", str(k), token, *"NN * - - - - *".split(), *roles, "-"]))
            else:
                lines.append(" ".join([token, "NN", "see" if k in targets else "-", *roles]))
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def ok(result):
    assert result.code == 0, result.err
    return result


@pytest.mark.parametrize("name", ["a.jsonl", "a.2005", "a.2012"])
def test_every_form_is_learned_scored_and_predicted(run, model, tmp_path, name):
    train, dev, out = write(tmp_path / name), write(tmp_path / f"dev-{name}", 8, seed=1), tmp_path / "out"
    learned = ok(run("fit", "roles", model, "--train", train, "--dev", dev, "--test", dev, "-o", out, *QUICK))
    assert "role F1" in learned.out and "predicates with all roles correct" in learned.out and "TMP" in learned.out
    again = ok(run("fit", "roles", model, "--train", train, "--dev", dev, "-o", out, *QUICK))
    assert "epoch " not in again.err  # the same run, which has ended
    assert ok(run("score", out, dev)).out.splitlines()[0] in learned.out
    written = []
    for form in ("jsonl", "conll"):
        answers = tmp_path / f"answers.{form}"
        assert "8 predictions" in ok(run("predict", out, dev, "-o", answers)).out
        written.append(frames.read_examples(frames.detect_form(answers)))
    assert written[0] == written[1]
    sentences, wanted = clauses(8, seed=1)
    assert [example.tokens for example in written[0]] == sentences
    assert [[frame.predicate for frame in example.frames] for example in written[0]] == [
        [frame.predicate for frame in one] for one in wanted
    ]  # those that the file marks


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Fitted once; the cache is named because the one of single tests does not exist yet."""
    place = tmp_path_factory.mktemp("roles")
    model_folder.write(made(0), place / "model")
    train = write(place / "a.jsonl", 60)
    more = ("--vectors", "scratch", "--cache", place / "cache", "--batch", 8, "--patience", 20, "--epochs", 20)
    ok(program(place, "fit", "roles", "model", "--train", train, "-o", "task", *QUICK[:4], *more))
    return place / "task"


def test_predicates_are_found_in_raw_text(run, fitted, tmp_path):
    answered = ok(run("predict", fitted, "Then red cow saw cat. Dog fed cow!"))
    rows = [row.split("\t") for row in answered.out.splitlines()]
    assert "the text is read as sentences alone, one per line, split as" in answered.err
    assert rows[0] == ["sentence", "index", "predicate", "role", "text"]
    assert ["1", "3", "saw", "V", "saw"] in rows and ["2", "1", "fed", "V", "fed"] in rows
    assert ["1", "3", "saw", "A1", "cat"] in rows
    table = ok(run("predict", fitted, "-", "--probabilities", stdin="cat saw dog .\n\nthe cow\n")).out.splitlines()
    assert table[0].endswith("\tprobability") and all(0 < float(row.split("\t")[-1]) <= 1 for row in table[1:])
    lines = ok(run("predict", fitted, "-", "--to", "jsonl", "--probabilities", stdin="cat saw dog .\n\nthe cow\n")).out
    first, second, third = map(json.loads, lines.splitlines())
    assert (first["words"], second, third["verbs"]) == (["cat", "saw", "dog", "."], {"words": [], "verbs": []}, [])
    (verb,) = first["verbs"]
    assert (verb["index"], verb["word"], len(verb["tags"]), len(verb["probabilities"])) == (1, "saw", 4, 4)
    columns = ok(run("predict", fitted, "-", "--to", "conll", stdin="cat saw dog .\n")).out.splitlines()
    assert columns[:4] == ["cat\t-\t(A0*)", "saw\tsaw\t(V*)", "dog\t-\t(A1*)", ".\t-\t*"] and columns[4] == ""
    assert ok(run("predict", fitted, "-", "--to", "csv", stdin="cat saw dog .\n")).out.startswith("sentence,index,")


def test_marked_predicates_are_kept(run, fitted, tmp_path):
    (tmp_path / "some.jsonl").write_text(
        '{"words": ["cat", "saw", "dog"], "verbs": [{"index": 2}]}\n{"words": ["cat", "saw", "dog"]}\n',
        encoding="utf-8",
    )
    found = [
        json.loads(row) for row in ok(run("predict", fitted, tmp_path / "some.jsonl", "--to", "jsonl")).out.splitlines()
    ]
    assert [[verb["index"] for verb in entry["verbs"]] for entry in found] == [[2], [1]]
    assert found[0]["verbs"][0]["tags"][2] == "B-V"


def test_a_word_that_looks_like_a_mark_is_written_and_read_again(fitted, tmp_path, run):
    (tmp_path / "some.jsonl").write_text('{"words": ["cat", "-"], "verbs": [{"index": 1}]}\n', encoding="utf-8")
    ok(run("predict", fitted, tmp_path / "some.jsonl", "-o", tmp_path / "out.conll"))
    source = frames.detect_input_form(tmp_path / "out.conll", "auto")
    assert list(frames.read_sentences(source)) == [Marked(["cat", "-"], [1])]


def test_roles_are_compared(run, model, tmp_path):
    train = write(tmp_path / "a.jsonl")
    found = ok(run("compare", "roles", model, "--train", train, "--seeds", 1, "--variants", "words,both", *QUICK)).out
    assert re.search(r"variant +input +role F1.*\nwords .*\nboth ", found)


MISTAKES = {
    "no words": ('{"verbs": []}\n', 'line 1: needs "words"'),
    "outside": ('{"words": ["a"], "verbs": [{"index": 4, "tags": ["O"]}]}\n', "line 1: a predicate is word 4, outside"),
    "no verbs": ('{"words": ["a"]}\n', 'line 1: has no "verbs"'),
    "open bracket": ("a - (A0*\nb b *\n", "line 1: the bracket (A0* is not closed"),
    "columns": ("a - (V*)\nb b\n", "line 2: 2 columns, but the lines before it in the same sentence have 3"),
    "text": ("Just some text.\n", "line 1: no column marks as many predicates"),
    "empty": ("", "contains no predicates"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message_and_leaves_no_files(run, model, tmp_path, mistake):
    text, message = MISTAKES[mistake]
    (tmp_path / "wrong").write_text(text, encoding="utf-8")
    before = sorted(file.name for file in tmp_path.iterdir())
    result = run("fit", "roles", model, "--train", tmp_path / "wrong", "-o", tmp_path / "out")
    assert result.code == 1 and message in result.err and "Traceback" not in result.err
    assert sorted(file.name for file in tmp_path.iterdir()) == before
