"""Tasks on the command line: every form of data, every command, every mistake."""

from __future__ import annotations

import json
import re
import shutil
import signal
from dataclasses import replace

import pytest

from bilmo.store import model_folder as folders
from bilmo.tasks.data import columns, spans
from program import SignalAfter, started

from task_data import sentences, texts

QUICK = ("--hidden", 6, "--rate", 0.02, "--epochs", 3)


def write_texts(path, number=30, seed=0):
    some, labels = texts(number, seed)
    pairs = list(zip(labels, some, strict=True))
    if path.suffix == ".csv":
        path.write_text("label,text\n" + "".join(f'{label},"{text}"\n' for label, text in pairs), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"label": a, "text": b}) + "\n" for a, b in pairs), encoding="utf-8")
    elif path.suffix == "":
        for k, (label, text) in enumerate(pairs):
            (path / label).mkdir(parents=True, exist_ok=True)
            (path / label / f"{k}.txt").write_text(text, encoding="utf-8")
    else:
        mark = "\t" if path.suffix == ".tsv" else " "
        path.write_text("".join(f"{label}{mark}{text}\n" for label, text in pairs), encoding="utf-8")
    return path


def write_sentences(path, number=30, seed=0, scheme="BIO"):
    some, tags = sentences(number, seed)
    tags = [spans.write(spans.spans(one), len(one), scheme) for one in tags]
    pairs = list(zip(some, tags, strict=True))
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"tokens": a, "tags": b}) + "\n" for a, b in pairs), encoding="utf-8")
    else:
        rows = ("".join(f"{w}\t{t}\n" for w, t in zip(a, b, strict=True)) + "\n" for a, b in pairs)
        path.write_text("".join(rows), encoding="utf-8")
    return path


def tagged(path):
    return columns.read_examples(columns.detect_form(path))


def ok(result):
    assert result.code == 0, result.err
    return result


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.csv", "a.jsonl", "folder"])
def test_classify_in_every_form(run, model, tmp_path, name):
    train = write_texts(tmp_path / name)
    out = tmp_path / "out"
    learned = ok(run("fit", "classify", model, "--train", train, "--test", train, "-o", out, *QUICK))
    assert re.search(r"layer weights at the input: word 0\.\d+  layer 1 0\.\d+  layer 2 0\.\d+  scale", learned.out)
    assert "macro F1" in learned.out and "true \\ predicted" in learned.out
    assert "animal 1" in learned.out and "split off" in learned.out
    scored = ok(run("score", out, train))
    assert scored.out.splitlines()[0] in learned.out
    answered = ok(run("predict", out, "-", stdin="a red cow\n\nthe blue\n"))
    rows = [line.split("\t") for line in answered.out.splitlines()]
    assert [row[1] for row in rows] == ["a red cow", "", "the blue"]
    assert {row[0] for row in rows} <= {"animal", "colour"}


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("a.conll", "BIO"), ("a.txt", "IO"), ("a.conll", "IOB1"), ("a.conll", "BIOES"), ("a.jsonl", "BIO")],
)
def test_tag_in_every_form_and_scheme(run, model, tmp_path, name, scheme):
    train = write_sentences(tmp_path / name, scheme=scheme)
    dev = write_sentences(tmp_path / f"dev-{name}", 8, seed=1, scheme=scheme)
    out = tmp_path / "out"
    learned = ok(run("fit", "tag", model, "--train", train, "--dev", dev, "--test", dev, "-o", out, *QUICK))
    assert "span F1" in learned.out and "token accuracy" in learned.out and "FARM" in learned.out
    ok(run("predict", out, dev, "-o", tmp_path / "answers.conll"))
    answers = tagged(tmp_path / "answers.conll")
    assert [a.tokens for a in answers] == [e.tokens for e in tagged(dev)]
    assert all(spans.scheme_of([a.tags])[1] == [] for a in answers)
    assert f'"scheme": "{scheme}"' in (out / "config.json").read_text("utf-8")


def test_parts_of_speech(run, model, tmp_path):
    rest = "\t_" * 5
    rows = f"1\tcat\t_\tNOUN\tNN{rest}\n2\tsaw\t_\tVERB\tVBD{rest}\n\n1\tdog\t_\tNOUN\tNN{rest}\n\n"
    (tmp_path / "a.conllu").write_text(rows * 8, encoding="utf-8")
    for column, tags in (("upos", {"NOUN", "VERB"}), ("xpos", {"NN", "VBD"})):
        out = tmp_path / column
        fit = ("fit", "tag", model, "--train", tmp_path / "a.conllu", "-o", out, "--column", column, "--head", "linear")
        assert "accuracy" in ok(run(*fit, "--test", tmp_path / "a.conllu", "--mix", "1", *QUICK)).out
        assert "never predicted" not in ok(run("score", out, tmp_path / "a.conllu")).err
        answered = ok(run("predict", out, "-", "--to", "jsonl", "--probabilities", stdin="cat saw\ndog\n"))
        entries = [json.loads(line) for line in answered.out.splitlines()]
        assert {tag for entry in entries for tag in entry["tags"]} <= tags
        assert all(0 < p <= 1 for entry in entries for p in entry["probabilities"])


@pytest.fixture
def classifier(run, model, tmp_path):
    ok(run("fit", "classify", model, "--train", write_texts(tmp_path / "a.tsv"), "-o", tmp_path / "task", *QUICK))
    return tmp_path / "task"


def test_predictions_in_every_form(run, classifier, tmp_path):
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"text": "a red\\tcow"}\n{"tokens": ["the", "漢字"]}\n', encoding="utf-8")
    table = ok(run("predict", classifier, asked, "--probabilities")).out.splitlines()
    assert table[0] == "label\tanimal\tcolour\ttext"
    assert table[1].endswith("\ta red cow") and table[2].endswith("\tthe 漢字")
    assert sum(map(float, table[1].split("\t")[1:3])) == pytest.approx(1, abs=1e-3)
    said = ok(run("predict", classifier, asked, "-o", tmp_path / "out.jsonl", "--probabilities"))
    assert said.out == f"{tmp_path / 'out.jsonl'}: 2 predictions\n"
    first, second = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines())
    assert first["text"] == "a red\tcow" and second["tokens"] == ["the", "漢字"]
    assert set(first["probabilities"]) == {"animal", "colour"}
    assert first["label"] == max(first["probabilities"], key=first["probabilities"].get)
    assert ok(run("predict", classifier, "-", stdin='{"text": "cow"}\n')).out.endswith("\tcow\n")
    for name in ("again.tsv", "again.csv", "again.jsonl"):
        for more in ((), ("--probabilities",)):
            said = ok(run("predict", classifier, tmp_path / "a.tsv", "-o", tmp_path / name, *more))
            assert "30 predictions" in said.out and "is read as `label<TAB>text`" in said.err
            assert re.search(r"accuracy +1\.0000", ok(run("score", classifier, tmp_path / name)).out)
    assert (tmp_path / "again.csv").read_text("utf-8").startswith("label,animal,colour,text\n")


def test_a_pipe_is_read_whole_by_every_command(run, model, classifier, tmp_path):
    rows = (tmp_path / "a.tsv").read_text("utf-8")
    fit = ("fit", "classify", model, "--dev", tmp_path / "a.tsv", "-o", tmp_path / "piped", *QUICK)
    assert re.search(r"examples +30\b", ok(run(*fit, "--train", "-", stdin=rows)).out)
    assert ok(run("score", classifier, "-", stdin=rows)).out == ok(run("score", classifier, tmp_path / "a.tsv")).out
    asked = ok(run("predict", classifier, "-", stdin=rows)).out
    assert asked == ok(run("predict", classifier, tmp_path / "a.tsv")).out and asked.count("\n") == 30
    assert ok(run("predict", classifier, "-", stdin="")).out == ""


def test_predict_reads_what_fit_read(run, model, tmp_path):
    for name in ("a.txt", "a.csv", "a.jsonl"):
        train, out = write_texts(tmp_path / name), tmp_path / f"out-{name[2:]}"
        ok(run("fit", "classify", model, "--train", train, "-o", out, *QUICK))
        answers = [json.loads(row)["text"] for row in ok(run("predict", out, train, "--to", "jsonl")).out.splitlines()]
        assert answers == texts(30)[0]


@pytest.fixture
def tagger(run, model, tmp_path):
    train = write_sentences(tmp_path / "a.conll")
    ok(run("fit", "tag", model, "--train", train, "-o", tmp_path / "tagger", *QUICK))
    return tmp_path / "tagger"


def test_tags_as_a_table(run, tagger):
    table = ok(run("predict", tagger, "-", "--to", "table", stdin="a cat .\n\nthe red dog .\n")).out.splitlines()
    rows = [row.split("\t") for row in table]
    assert rows[0] == ["sentence", "token", "tag"] and {len(row) for row in rows} == {3}
    assert [row[:2] for row in rows[1:]] == [
        ["1", "a"], ["1", "cat"], ["1", "."], ["3", "the"], ["3", "red"], ["3", "dog"], ["3", "."]
    ]  # fmt: skip
    written = ok(run("predict", tagger, "-", "--to", "csv", "--probabilities", stdin='say "cat"\n')).out.splitlines()
    assert written[0] == "sentence,token,tag,probability" and written[2].startswith('1,"""",')


def test_a_tagger_splits_raw_text_and_leaves_tokenized_text_as_it_is(run, model, tagger, tmp_path):
    def tokens(*arguments, stdin):
        answered = ok(run("predict", *arguments, "-", "--to", "jsonl", stdin=stdin))
        return answered.err, [json.loads(row)["tokens"] for row in answered.out.splitlines()]

    raw = "He didn't go to the U.S. at all. She did!\n"
    said, found = tokens(tagger, stdin=raw)
    assert "split as en" in said
    assert found == [["He", "did", "n't", "go", "to", "the", "U.S.", "at", "all", "."], ["She", "did", "!"]]
    said, found = tokens(tagger, stdin="The cat 's dog did n't go .\n")
    assert "split as spaces" in said and found == [["The", "cat", "'s", "dog", "did", "n't", "go", "."]]
    train = tmp_path / "a.conll"
    ok(run("fit", "tag", model, "--train", train, "-o", tmp_path / "west", "--lang", "west", *QUICK))
    assert tokens(tmp_path / "west", stdin="it's\n")[1] == [["it's"]]
    folders.write(replace(folders.read(model), lang="zh"), tmp_path / "chinese")
    ok(run("fit", "tag", tmp_path / "chinese", "--train", train, "-o", tmp_path / "zh", *QUICK))
    assert "split as zh" in tokens(tmp_path / "zh", stdin="it's\n")[0]


def test_text_on_the_command_line(run, classifier, tagger, tmp_path):
    answered = ok(run("predict", classifier, "a red cow"))
    assert answered.out == ok(run("predict", classifier, "-", stdin="a red cow\n")).out
    assert "the text is read as" in answered.err
    tagged = [
        json.loads(row)["tokens"] for row in ok(run("predict", tagger, "A cat.", "--to", "jsonl")).out.splitlines()
    ]
    assert tagged == [["A", "cat", "."]]
    missing = run("predict", classifier, "nowhere.txt")
    assert missing.code == 1 and "nowhere.txt: there is no such file" in missing.err


def test_columns_between_spaces_are_recognised_by_their_tags(run, tagger, tmp_path):
    rows = (tmp_path / "a.conll").read_text("utf-8").replace("\t", " ")
    expected = ok(run("predict", tagger, tmp_path / "a.conll")).out
    answered = ok(run("predict", tagger, "-", stdin=rows))
    assert answered.out == expected and "read as columns" in answered.err


def test_labels_outside_the_training_data_are_reported(run, classifier, tmp_path):
    (tmp_path / "new.tsv").write_text("plant\tthe tree\nanimal\ta cow\n", encoding="utf-8")
    assert (
        "not in the training data and are never predicted: plant (1)"
        in ok(run("score", classifier, tmp_path / "new.tsv")).err
    )


def test_the_same_command_resumes_and_a_different_one_is_refused(run, model, tmp_path):
    train, out = write_texts(tmp_path / "a.tsv"), tmp_path / "out"
    fit = ("fit", "classify", model, "--train", train, "-o", out)
    first = ok(run(*fit, *QUICK))
    again = ok(run(*fit, *QUICK))
    assert first.out.splitlines()[-2:] == again.out.splitlines()[-2:]
    assert "epoch " not in again.err
    other = run(*fit, *QUICK, "--seed", 2)
    assert other.code == 1 and "seed was 1 and is now 2" in other.err
    write_texts(train, seed=4)
    assert "the examples: not the same" in run(*fit, *QUICK).err


def test_a_changed_model_or_changed_vectors_are_refused_and_moved_ones_are_not(run, model, another, tmp_path):
    train, out, vectors = write_texts(tmp_path / "a.tsv"), tmp_path / "out", tmp_path / "glove.txt"
    vectors.write_text("cat 0.1 0.2 0.3\nred 0.3 0.1 0.2\n", encoding="utf-8")
    rest = ("--train", train, "-o", out, *QUICK)
    ok(run("fit", "classify", model, "--vectors", vectors, *rest))
    moved = shutil.copytree(model, tmp_path / "moved"), vectors.rename(tmp_path / "vectors.txt")
    ok(run("fit", "classify", moved[0], "--vectors", moved[1], *rest))
    assert json.loads((out / "config.json").read_text("utf-8"))["bilm"]["name"] == str(moved[0])
    vectors.write_text("cat 0.1 0.2 0.3\nred 0.3 0.1 0.3\n", encoding="utf-8")
    assert "the word vectors: not the same" in run("fit", "classify", model, "--vectors", vectors, *rest).err
    shutil.rmtree(model)
    another.rename(model)
    refused = run("fit", "classify", model, "--vectors", moved[1], *rest)
    assert refused.code == 1 and "the biLM: not the same" in refused.err


def test_a_finished_run_can_be_extended(run, model, tmp_path):
    train = write_texts(tmp_path / "a.tsv")
    fit = ("fit", "classify", model, "--train", train, "--hidden", 8, "--rate", 0.02)
    ok(run(*fit, "-o", tmp_path / "two", "--epochs", 2))
    longer = ok(run(*fit, "-o", tmp_path / "two", "--epochs", 4, "--patience", 9))
    assert re.findall(r"epoch +(\d)  loss", longer.err) == ["3", "4"]
    ok(run(*fit, "-o", tmp_path / "four", "--epochs", 4, "--patience", 9))
    name = "task.safetensors"
    assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "four" / name).read_bytes()
    assert '"epochs": 4' in (tmp_path / "two" / "config.json").read_text("utf-8")
    shorter = ok(run(*fit, "-o", tmp_path / "two", "--epochs", 2))
    assert "loss" not in shorter.err


def test_compare(run, model, tmp_path):
    train, test = write_texts(tmp_path / "a.tsv"), write_texts(tmp_path / "b.tsv", 10, seed=1)
    fit = ("compare", "classify", model, "--train", train, "--test", test, "--seeds", 2, *QUICK)
    found = ok(run(*fit, "-o", tmp_path / "table.md")).out.splitlines()
    assert [row.split()[0] for row in found] == ["variant", "words", "elmo", "both", "top", "mean"]
    assert "error reduction" in found[0] and found[2].rstrip().endswith("%")
    assert (tmp_path / "table.md").read_text("utf-8").count("\n") == 7
    tags = write_sentences(tmp_path / "a.conll")
    found = ok(run("compare", "tag", model, "--train", tags, "--seeds", 1, "--variants", "0,2", *QUICK)).out
    assert re.search(r"variant +input +span F1.*\nlayer 0 .*\nlayer 2 ", found)
    places = ("--seeds", 1, "--variants", "both,output,input+output")
    found = ok(run("compare", "tag", model, "--train", tags, *places, *QUICK)).out
    for row in (
        r"both +word vectors \+ ELMo \(weighted\) +[01]\.",
        r"output +word vectors \+ ELMo \(weighted\) at the output +[01]\.",
        r"input\+output +word vectors \+ ELMo \(weighted\) at input and output +[01]\.",
    ):
        assert re.search(row, found)


def test_word_vectors_are_compared_with_characters_beside_them(run, model, tmp_path):
    """As the paper's baselines: the character CNN is in every variant with word vectors, and in no other."""
    train = write_texts(tmp_path / "a.tsv")
    fit = ("compare", "classify", model, "--train", train, "--seeds", 1, "--chars", 5, *QUICK)
    found = ok(run(*fit, "--variants", "words,elmo,both,2", "-o", tmp_path / "table.md")).out
    for row in (
        r"words +word vectors \+ 5 character filters +[01]\.",
        r"elmo +ELMo \(weighted\) +[01]\.",
        r"both +word vectors \+ 5 character filters \+ ELMo \(weighted\) +[01]\.",
        r"layer 2 +ELMo layer 2 +[01]\.",
    ):
        assert re.search(row, found)
    assert "| words | word vectors + 5 character filters |" in (tmp_path / "table.md").read_text("utf-8")


def test_the_tutorial_is_three_lines(run, model, tmp_path):
    train = write_texts(tmp_path / "a.tsv")
    vectors = tmp_path / "glove.txt"
    vectors.write_text("cat 0.1 0.2 0.3\nred 0.3 0.1 0.2\n", encoding="utf-8")
    fit = ("fit", "classify", model, "--train", train, *QUICK)
    ok(run(*fit, "-o", tmp_path / "a", "--vectors", vectors))
    ok(run(*fit, "-o", tmp_path / "b"))
    ok(run(*fit, "-o", tmp_path / "c", "--mix", "mean", "--head", "linear"))
    vectors.unlink()  # the folder contains the vectors
    assert ok(run("predict", tmp_path / "a", "-", stdin="red cat\n")).out


MISTAKES = {
    "no train": (("--train", "nowhere.tsv"), "there is no such file"),
    "no model": (("--model-is", "nowhere"), "there is no such"),
    "wrong line": (("--train", "wrong.tsv"), "line 2: has no tab"),
    "bad head": (("--head", "tree"), "head is 'tree'; accepted: mean, max"),
    "bad mix": (("--mix", "some"), "mix is 'some'"),
    "bad layer": (("--mix", "9"), "layers are numbered 0"),
    "no input": (("--elmo-at", "none"), "the task has no input"),
    "bad vectors": (("--vectors", "nowhere.txt"), "there is no such file"),
    "bad form": (("--form", "xml"), "form is 'xml'"),
    "bad language": (("--lang", "xx"), "lang is 'xx'"),
    "bad rate": (("--rate", "0"), "rate is 0.0"),
    "one label": (("--train", "one.tsv"), "nothing to learn"),
    "linear output": (("--head", "linear", "--elmo-at", "both"), "linear head"),
    "taken": (("-o", "taken"), "already exists"),
    "no label": (("--train", "bare.jsonl"), 'line 1: has no "label"'),
    "no such column": (("--train", "named.csv"), "its columns are id, text; it needs `label` and `text`"),
    "large seed": (("--seed", "99999999999999999999"), "seed is 99999999999999999999; it must be from 0 to"),
    "a giant": (("--hidden", "1000000000000"), "hidden is 1000000000000; it must be from 1 to 100000000"),
    "a giant for this machine": (("--hidden", "100000000"), "GB of memory, but this machine has"),
    "deep": (("--dense", "1000000"), "dense is 1000000; it must be from 0 to 100"),
    "a giant character CNN": (("--chars", "1000000000000"), "chars is 1000000000000; it must be from 0"),
    "infinite rate": (("--rate", "inf"), "rate is inf; it must be from 0 to 1000"),
    "no penalty": (("--l2", "nan"), "l2 is nan; it must be from 0 to 1000"),
    "digits": (("--mix", "9" * 5000), "mix is '99999"),
    "nothing to tune": (("--elmo-at", "none", "--vectors", "scratch", "--tune", None), "tune trains the biLM"),
}
TAG_MISTAKES = {
    "wrong line": (("--train", "wrong.conll"), "line 2: 1 columns, but the lines before have 2"),
    "no tags": (("--train", "bare.conll"), "line 1: 1 columns; expected a token and a tag"),
    "no tags in JSON": (("--train", "bare.jsonl"), 'line 1: has no "tags"'),
    "too few tags": (("--train", "few.jsonl"), 'line 1: needs "tags", one string for each of 2 tokens'),
    "no JSON": (("--train", "broken.jsonl"), "line 1: is not JSON"),
    "texts alone": (("--form", "lines"), "and no tags"),
    "bad form": (("--form", "csv"), "form is 'csv'; accepted: auto, conll"),
    "bad column": (("--column", "9"), "line 1: 2 columns; expected column 9"),
    "no column": (("--column", "first"), "column is 'first'"),
    "digits": (("--column", "9" * 5000), "column is '99999"),
    "column of words": (
        ("--train", "many.conll"),
        "1,200 different tags for 1,200 tokens, such as word0, word1, word2; a tagger predicts at most 1,000. They are "
        "probably in another column: set it with --column",
    ),
    "types of words": (("--train", "kinds.conll"), "4,801 different tags for 1,200 tokens, such as B-word0"),
    "a giant": (("--hidden", "1000000000000"), "hidden is 1000000000000; it must be from 1 to 100000000"),
    "a giant for this machine": (("--hidden", "100000000"), "GB of memory, but this machine has"),
    "bad head": (("--head", "mean"), "head is 'mean'; accepted: bilstm-crf, linear"),
    "one tag": (("--train", "one.conll"), "nothing to learn"),
    "bad language": (("--lang", "xx"), "lang is 'xx'"),
}
FILES = {
    "wrong.tsv": "a\tb\nc\n",
    "one.tsv": "a\tb\na\tc\n",
    "named.csv": "id,text\n1,good\n",
    "wrong.conll": "a\tO\nb\n",
    "bare.conll": "a\nb\n",
    "one.conll": "a\tX\nb\tX\n",
    "many.conll": "".join(f"cat\tword{n}\n" for n in range(1200)),
    "kinds.conll": "".join(f"cat\tB-word{n}\n" for n in range(1200)),
    "bare.jsonl": '{"tokens": ["a", "b"]}\n',
    "few.jsonl": '{"tokens": ["a", "b"], "tags": ["O"]}\n',
    "broken.jsonl": '{"tokens": ["a"\n',
    "taken/file": "x",
}


@pytest.mark.parametrize(
    ("task", "mistake"), [*(("classify", name) for name in MISTAKES), *(("tag", name) for name in TAG_MISTAKES)]
)
def test_a_mistake_is_one_message_and_leaves_no_files(run, model, tmp_path, monkeypatch, task, mistake):
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "good.tsv")
    write_sentences(tmp_path / "good.conll")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    options, message = (MISTAKES if task == "classify" else TAG_MISTAKES)[mistake]
    place = model
    if options[0] == "--model-is":
        place, options = options[1], ()
    usual = {"--train": "good.tsv" if task == "classify" else "good.conll", "-o": "out"}
    given = usual | dict(zip(options[::2], options[1::2], strict=True))
    before = sorted(file.name for file in tmp_path.iterdir())
    parts = [part for pair in given.items() for part in pair if part is not None]
    result = run("fit", task, place, *QUICK[:2], *parts)
    assert result.code == 1
    assert message in result.err and "Traceback" not in result.err
    assert sorted(file.name for file in tmp_path.iterdir()) == before


def test_every_file_of_a_fitted_task_has_the_same_permissions(run, classifier):
    modes = {str(file.relative_to(classifier)): oct(file.stat().st_mode) for file in classifier.rglob("*.*")}
    assert {"task.safetensors", "config.json", "training/checkpoint.safetensors"} <= modes.keys()
    assert len(set(modes.values())) == 1, modes


def test_mistakes_of_the_other_commands(run, classifier, another, model, tmp_path):
    assert "is not the folder of a saved task" in run("predict", model, "-").err
    assert "this is a different one" in run("predict", classifier, "-", "--model", another).err
    assert "can be written as table, csv, jsonl" in run("predict", classifier, "-", "--to", "xml").err
    assert "can be written as table, csv, jsonl" in run("predict", classifier, "-", "--to", "conll").err
    assert "no variant 'x'" in run("compare", "classify", model, "--train", tmp_path / "a.tsv", "--variants", "x").err
    failed = run("predict", classifier, tmp_path / "nowhere.txt", "-o", tmp_path / "new.tsv")
    assert failed.code == 1 and "no such file" in failed.err and not (tmp_path / "new.tsv").exists()


def test_ctrl_c_keeps_the_best_epoch_and_the_run_can_be_resumed(run, model, tmp_path):
    train, out = write_texts(tmp_path / "a.tsv"), tmp_path / "out"
    arguments = ["fit", "classify", model, "--train", train, "-o", out, "--patience", 10_000, "--epochs"]
    saved = SignalAfter("bilmo.tasks.core.task_folder", "publish", 1, signal.SIGINT)
    with started(tmp_path, *arguments, 3, after=saved) as process:
        _, err = process.communicate()
    assert process.returncode == 130
    assert "contains the best epoch so far" in err and "Traceback" not in err
    assert ok(run("predict", out, "-", stdin="a red cow\n")).out
    assert not [file for file in out.iterdir() if file.name.startswith(".")]
    assert "all epochs are done" in ok(run(*arguments, 3)).out
