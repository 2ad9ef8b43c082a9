"""Answering questions on the command line: every form of data, one question about a file, and every mistake."""

from __future__ import annotations

import json
import re

import pytest

from bilmo.store import model_folder
from program import program

from task_data import made, questions

QUICK = ("--hidden", 6, "--rate", 0.02, "--epochs", 3)


def write(path, number=30, seed=0, answered=1.0):
    entries = []
    for asked, answers in zip(*questions(number, seed, answered=answered), strict=True):
        found = [{"text": span.text, "answer_start": span.begin} for span in answers]
        entries.append({"id": asked.id, "context": asked.context, "question": asked.question, "answers": found})
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
        return path
    paragraphs = [{"context": entry.pop("context"), "qas": [entry]} for entry in entries]
    for entry in entries:
        if not entry["answers"]:
            entry["is_impossible"] = True
    path.write_text(json.dumps({"version": "made", "data": [{"title": "t", "paragraphs": paragraphs}]}, indent=1))
    return path


def ok(result):
    assert result.code == 0, result.err
    return result


@pytest.mark.parametrize(("name", "answered"), [("a.json", 1.0), ("a.json", 0.6), ("a.jsonl", 0.6)])
def test_every_form_is_learned_scored_and_predicted(run, model, tmp_path, name, answered):
    train, dev = write(tmp_path / name, answered=answered), write(tmp_path / f"dev-{name}", 8, 1, answered)
    out = tmp_path / "out"
    learned = ok(run("fit", "answer", model, "--train", train, "--dev", dev, "--test", dev, "-o", out, *QUICK))
    assert re.search(r"F1 +[01]\.\d+\nexact match +[01]\.\d+\n", learned.out)
    assert ("F1, questions without an answer" in learned.out) == (answered < 1)
    again = ok(run("fit", "answer", model, "--train", train, "--dev", dev, "-o", out, *QUICK))
    assert "epoch " not in again.err  # the same run, which has ended
    assert ok(run("score", out, dev)).out.splitlines()[0] in learned.out
    assert f'"no_answer": {str(answered < 1).lower()}' in (out / "config.json").read_text("utf-8")
    ok(run("predict", out, dev, "-o", tmp_path / "out.jsonl", "--probabilities"))
    entries = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    asked = questions(8, 1, answered=answered)[0]
    assert [(e["id"], e["question"], e["context"]) for e in entries] == [(q.id, q.question, q.context) for q in asked]
    for entry in entries:
        assert 0 < entry["probability"] <= 1
        if entry["answer"] is None:
            assert answered < 1 and entry["begin"] is None is entry["end"]
        else:
            assert entry["context"][entry["begin"] : entry["end"]] == entry["answer"] != ""
    table = ok(run("predict", out, dev)).out.splitlines()
    assert table[0] == "question\tanswer\tbegin\tend" and len(table) == 9


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Fitted once; the cache is named because the one of single tests does not exist yet."""
    place = tmp_path_factory.mktemp("answer")
    model_folder.write(made(0), place / "model")
    fit = ("fit", "answer", "model", "--train", write(place / "a.json"), "-o", "task", "--cache", place / "cache")
    ok(program(place, *fit, *QUICK))
    return place / "task"


def test_one_question_about_a_file(run, fitted, tmp_path):
    context = "Die Katze 🐈‍⬛ ist rot.\r\n\r\nDas U\u0308ber-Ich ist\u00a0blau."
    (tmp_path / "text.txt").write_bytes(context.encode())
    ask = ("predict", fitted, "--context", tmp_path / "text.txt", "--question", "Was ist rot?")
    answered = ok(run(*ask, "--to", "jsonl"))
    entry = json.loads(answered.out)
    assert entry["context"] == context.replace("\r\n", "\n") and entry["question"] == "Was ist rot?"
    assert entry["context"][entry["begin"] : entry["end"]] == entry["answer"]
    assert "the question is read as JSON lines" in answered.err
    header, row = (line.split("\t") for line in ok(run(*ask, "--probabilities")).out.splitlines())
    assert header == ["question", "answer", "begin", "end", "probability"] and int(row[2]) == entry["begin"]
    piped = ok(run("predict", fitted, "--context", "-", "--question", "Was?", "--to", "jsonl", stdin="猫是红的。"))
    assert json.loads(piped.out)["answer"] in "猫是红的。"
    assert ok(run(*ask, "-o", tmp_path / "out.csv")).out == f"{tmp_path / 'out.csv'}: 1 predictions\n"


def test_jsonl_without_answers(run, fitted):
    rows = '{"context": "The cat is red.", "question": "What is the cat?"}\n' * 3
    lines = ok(run("predict", fitted, "-", "--to", "jsonl", stdin=rows)).out.splitlines()
    assert len(lines) == 3 and "id" not in json.loads(lines[0])


def test_options_that_do_not_fit(run, model, fitted, tmp_path):
    (tmp_path / "text.txt").write_text("a cat", encoding="utf-8")
    ask = ("predict", fitted)
    assert "there is nothing to predict from; give a file or a text, or --context FILE" in run(*ask).err
    assert "belong together" in run(*ask, "--question", "What?").err
    assert "belong together" in run(*ask, "--context", tmp_path / "text.txt").err
    both = run(*ask, tmp_path / "text.txt", "--context", tmp_path / "text.txt", "--question", "What?")
    assert both.code == 1 and "replace the input file" in both.err
    assert "no such file" in run(*ask, "--context", tmp_path / "nowhere.txt", "--question", "What?").err
    text = run(*ask, "What is the cat?")
    assert text.code == 1 and "A single question can be asked with --context FILE --question TEXT" in text.err
    same = run(*ask, "--context", tmp_path / "text.txt", "--question", "What?", "-o", tmp_path / "text.txt")
    assert same.code == 1 and (tmp_path / "text.txt").read_text("utf-8") == "a cat"
    (tmp_path / "long.txt").write_text("cat " * 20_001, encoding="utf-8")
    long = run(*ask, "--context", tmp_path / "long.txt", "--question", "What?")
    assert long.code == 1 and "has 20,001 tokens; the limit is 20,000" in long.err
    (tmp_path / "a.tsv").write_text("x\tcat\ny\tdog\n" * 9, encoding="utf-8")
    ok(run("fit", "classify", model, "--train", tmp_path / "a.tsv", "-o", tmp_path / "other", *QUICK))
    other = run("predict", tmp_path / "other", "--context", tmp_path / "text.txt", "--question", "What?")
    assert other.code == 1 and "for tasks that answer questions; this task is classify" in other.err
    assert "give a file or a text\n" in run("predict", tmp_path / "other").err


def test_answers_are_compared(run, model, tmp_path):
    fit = ("compare", "answer", model, "--train", write(tmp_path / "a.json"), "--seeds", 1, *QUICK)
    found = ok(run(*fit, "--variants", "words,both,input+output")).out
    assert re.search(r"variant +input +F1.*\nwords .*\nboth .*\ninput\+output ", found)


MISTAKES = {
    "text": ("Just some text.\n", "line 1: is 'Just some text.'; expected SQuAD JSON"),
    "no question": ('{"context": "a"}\n', 'line 1: needs "question"'),
    "outside": (
        '{"context": "a", "question": "b", "answers": [{"text": "a", "answer_start": 5}]}\n',
        "line 1, answer 1: the answer 'a' is at characters 5 to 6, outside the context, which has 1",
    ),
    "no context": ('{"data": [{"paragraphs": [{"qas": []}]}]}', 'article 1, paragraph 1: needs "context"'),
    "empty": ("", "contains no questions"),
    "no answers": ('{"context": "a", "question": "b", "answers": []}\n' * 3, "no question has an answer"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message_and_leaves_no_files(run, model, tmp_path, mistake):
    text, message = MISTAKES[mistake]
    (tmp_path / "wrong").write_text(text, encoding="utf-8")
    before = sorted(file.name for file in tmp_path.iterdir())
    result = run("fit", "answer", model, "--train", tmp_path / "wrong", "-o", tmp_path / "out")
    assert result.code == 1 and message in result.err and "Traceback" not in result.err
    assert sorted(file.name for file in tmp_path.iterdir()) == before
