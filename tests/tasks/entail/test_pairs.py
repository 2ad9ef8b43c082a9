"""Every form of labelled pairs gives the same examples; errors name the number of the line."""

from __future__ import annotations

import gzip
import json

import pytest

from bilmo.errors import TextError
from bilmo.tasks.entail import pairs

PAIRS = [("A man, asleep", 'He is "awake"'), ("two dogs  run", "漢字 🙂"), ("x", "")]
LABELS = ["CONTRADICTION", "NEUTRAL", "NEUTRAL"]
BOTH = list(zip(PAIRS, LABELS, strict=True))


def quoted(*cells):
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"


WRITTEN = {
    "SICK_train.txt": "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    + "".join(f"7\t{a}\t{b}\t3.5\t{label}\n" for (a, b), label in BOTH),
    "SICK.txt": "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\r\n"
    + "".join(f"7\t{a}\t{b}\t{label}\t3.5\r\n" for (a, b), label in BOTH),
    "snli.jsonl": "".join(
        json.dumps({"annotator_labels": ["x"], "gold_label": label, "sentence1": a, "id": 1, "sentence2": b}) + "\n"
        for (a, b), label in BOTH
    ),
    "snli.txt": "gold_label\tsentence1_parse\tsentence1\tsentence2\tlabel1\tlabel2\n"
    + "".join(f"{label}\t(\t{a}\t{b}\tneutral\n" for (a, b), label in BOTH),
    "ocnli.json": "\n\n".join(
        json.dumps({"id": 0, "sentence1": a, "sentence2": b, "label": label, "label0": None}, ensure_ascii=False)
        for (a, b), label in BOTH
    ),
    "unnamed": "".join(json.dumps({"premise": a, "hypothesis": b, "label": label}) + "\n" for (a, b), label in BOTH),
    "own.tsv": "Label\tText1\tText2\n\n" + "".join(f"{label}\t{a}\t{b}\n" for (a, b), label in BOTH),
    "own.csv": "text2,label,text1,more\n" + "".join(quoted(b, label, a, "") for (a, b), label in BOTH),
    "really-csv.txt": "premise,hypothesis,label\n" + "".join(quoted(a, b, label) for (a, b), label in BOTH),
}  # fmt: skip


def read(path, form="auto"):
    return pairs.read_examples(pairs.detect_form(path, form))


def asked(path, form="auto"):
    return list(pairs.read_pairs(pairs.detect_input_form(path, form)))


@pytest.mark.parametrize("pack", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("name", WRITTEN)
def test_the_same_pairs_in_every_form(tmp_path, name, pack):
    path = tmp_path / (name + ".gz" * pack)
    path.write_bytes(gzip.compress(WRITTEN[name].encode()) if pack else WRITTEN[name].encode())
    assert read(path) == (PAIRS, LABELS, 0)
    assert asked(path) == PAIRS


def test_tokens_and_numbers_in_json(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text1": ["a", "b"], "text2": "c d", "label": 2}\n', encoding="utf-8")
    assert read(path) == ([(["a", "b"], "c d")], ["2"], 0)


@pytest.mark.parametrize("name", ["a.jsonl", "a.tsv"])
def test_pairs_without_agreement_are_left_out_and_counted(tmp_path, name):
    path, labels = tmp_path / name, ["neutral", "-", "entailment", " - "]
    if name == "a.tsv":
        path.write_text("sentence1\tsentence2\tgold_label\n" + "".join(f"a\tb{x}\t{x}\n" for x in labels))
    else:
        rows = ({"sentence1": "a", "sentence2": f"b{x}", "gold_label": x} for x in labels)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(path) == ([("a", "bneutral"), ("a", "bentailment")], ["neutral", "entailment"], 2)
    assert len(asked(path)) == 4  # all can be predicted
    path.write_text("sentence1\tsentence2\tgold_label\na\tb\t-\n")
    with pytest.raises(TextError, match="contains no examples; every pair has the label -"):
        read(path, "tsv")


def test_pairs_without_labels(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("A man sleeps.\tHe is awake.\n\nx\t\n", encoding="utf-8")
    assert asked(path) == [("A man sleeps.", "He is awake."), ("x", "")]
    path.write_text("sentence1\tsentence2\na\tb\n", encoding="utf-8")
    assert asked(path) == [("a", "b")]
    assert asked(path, "lines") == [("sentence1", "sentence2"), ("a", "b")]


HEAD = "text1\ttext2\tlabel\n"
WRONG = {
    "no names": ("a.tsv", "a\tb\tneutral\n", "line 1: names the columns a, b, neutral; it needs two texts: `text1`"),
    "no names, CSV": ("a.csv", "a,b,neutral\n", "line 1: names the columns a, b, neutral; it needs two texts: `text1`"),
    "no label column": ("a.tsv", "\npremise\thypothesis\na\tb\n", "line 2: names the columns premise, hypothesis; it"),
    "one text column": ("a.tsv", "text1\tlabel\na\tb\n", "names the columns text1, label; it needs two texts"),
    "no table": ("a.txt", "just a text\n", "names the columns just a text; it needs two texts"),
    "too many columns": ("a.tsv", HEAD + "a\tb\tc\na\tb\tc\td\n", "line 3: 4 columns; the first row names 3"),
    "too few columns": ("a.tsv", HEAD + "a\tb\n", "line 2: has no `label`"),
    "one column": ("a.tsv", "label\ttext1\ttext2\nx\ta\n", "line 2: has label, text1; it needs two texts"),
    "empty label": ("a.tsv", HEAD + "a\tb\t \n", "line 2: the label is empty"),
    "no JSON": ("a.jsonl", '{"text1": "a"\n', "line 1: is not JSON"),
    "no object": ("a.jsonl", "[1]\n", "line 1: is '[1]'; each line must be a JSON object"),
    "no second text": ("a.jsonl", '\n{"sentence1": "a", "label": "x"}\n', "line 2: has sentence1, label; it needs two"),
    "no label": ("a.jsonl", '{"text1": "a", "text2": "b"}\n', "line 1: has no `label`"),
    "null as label": ("a.jsonl", '{"text1": "a", "text2": "b", "gold_label": null}\n', "line 1: has no `gold_label`"),
    "list as label": ("a.jsonl", '{"text1": "a", "text2": "b", "label": [1]}\n', "line 1: `label` is [1]; it must be"),
    "number as text": ("a.jsonl", '{"text1": "a", "text2": 3, "label": "x"}\n', "line 1: `text2` is 3; it must be a"),
    "nothing": ("a.tsv", HEAD, "contains no examples; there is no line with a pair"),
    "open quote": ("a.csv", 'text1,text2,label\na,b,c\n"a,b,c\n', "line 3: is not CSV"),
    "scores as labels": ("a.tsv", HEAD + "".join(f"a\tb\t{k}.5\n" for k in range(60)), "60 different labels for"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_name_file_and_line(tmp_path, case):
    name, text, message = WRONG[case]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(TextError) as error:
        read(tmp_path / name)
    assert message in str(error.value) and str(tmp_path / name) in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc\n", "line 2: has no tab; expected two texts with a tab between them"),
        ("a\tb\tc\n", "line 1: 3 columns; expected two texts"),
        ('{"text1": "a"}\n', "line 1: has text1; it needs two texts"),
    ],
)
def test_mistakes_in_pairs_without_labels(tmp_path, text, message):
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    with pytest.raises(TextError) as error:
        asked(tmp_path / "a.txt")
    assert message in str(error.value)


def test_an_unknown_form_is_refused(tmp_path):
    (tmp_path / "a.tsv").write_text(HEAD, encoding="utf-8")
    with pytest.raises(TextError, match="form is 'lines'; accepted: auto, tsv, csv, jsonl"):
        read(tmp_path / "a.tsv", "lines")
    with pytest.raises(TextError, match="form is 'xml'; accepted: auto, tsv, csv, jsonl, lines"):
        asked(tmp_path / "a.tsv", "xml")
