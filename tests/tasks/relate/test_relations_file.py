"""Every form of marked texts gives the same examples; errors name the number of the line."""

from __future__ import annotations

import json

import pytest

from bilmo.errors import TextError
from bilmo.tasks.relate import relations_file as relations
from bilmo.tasks.relate.marks import with_marks

TEXTS = ["The <e1>fire</e1> did <e2>damage</e2>.", 'a "<e2>naïve</e2>", <e1>漢字</e1> 🙂', "<e1>x</e1> <e2>y</e2>"]
LABELS = ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Other"]
BOTH = list(zip(TEXTS, LABELS, strict=True))
SPANS = [
    ("The fire did damage.", (4, 8), (13, 19)),
    ('a "naïve", 漢字 🙂', (11, 13), (3, 8)),
    (["x", "y"], (0, 1), (1, 2)),
]


def quoted(*cells):
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"


def spans_json(example):
    text, first, second = example
    return {"text" if isinstance(text, str) else "tokens": text, "e1": first, "e2": second}


WRITTEN = {
    "TRAIN_FILE.TXT": "".join(
        f'{k}\t"{text}"\r\n{label}\r\nComment: (a)\r\n\r\n' for k, (text, label) in enumerate(BOTH)
    ),
    "no-comments": "\n" + "\n".join(f"{k}\t{text}\n{label}\n" for k, (text, label) in enumerate(BOTH)),
    "a.tsv": "".join(f"{label}\t{text}\n" for text, label in BOTH),
    "named.tsv": "id\tRelation\tSentence\n" + "".join(f"7\t{label}\t{text}\n" for text, label in BOTH),
    "named.csv": "text,label\n" + "".join(quoted(text, label) for text, label in BOTH),
    "a.jsonl": "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in BOTH),
    "unnamed": "".join(json.dumps({"relation": label, "sentence": text}) + "\n\n" for text, label in BOTH),
}


def read(path, form="auto"):
    return relations.read_examples(relations.detect_form(path, form))


def asked(path, form="auto"):
    return list(relations.read_texts(relations.detect_input_form(path, form)))


@pytest.mark.parametrize("name", WRITTEN)
def test_the_same_examples_in_every_form(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(WRITTEN[name].encode())
    assert read(path) == (TEXTS, LABELS)
    assert asked(path) == TEXTS


def test_spans_beside_the_text(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [spans_json(example) | {"label": label} for example, label in zip(SPANS, LABELS, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert read(path) == (SPANS, LABELS)
    assert [with_marks(example) for example in asked(path)] == TEXTS


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(TEXTS) + "\n\n",
        "".join(f'{k}\t"{text}"\n' for k, text in enumerate(TEXTS)),
        "".join(f'{k}\t"{text}"\n\n' for k, text in enumerate(TEXTS)),
        "text\n" + "".join(f"{text}\n" for text in TEXTS),
        "".join(json.dumps({"text": text}) + "\n" for text in TEXTS),
    ],
    ids=["lines", "semeval", "semeval with blank lines", "named", "jsonl"],
)
def test_texts_without_relations(tmp_path, text):
    (tmp_path / "a").write_text(text, encoding="utf-8")
    assert asked(tmp_path / "a") == TEXTS


GOOD = "<e1>a</e1> <e2>b</e2>"
WRONG = {
    "marks missing": (f"1\t\"{GOOD}\"\nOther\n\n2\t\"a <e2>b</e2>\"\nOther\n", "line 4: the mark <e1> is missing"),
    "marks crossing": ('1\t"<e1>a <e2>b</e1></e2>"\nOther\n', "line 1: the marks of e1 and e2 cross each other"),
    "unknown label": (f'1\t"{GOOD}"\nCause-Effect(e1,e3)\n', "line 2: unknown label 'Cause-Effect(e1,e3)'; expected a"),
    "no label": (f'1\t"{GOOD}"\nOther\n\n2\t"{GOOD}"\n\n', "line 4: the sentence has no relation in the next line"),
    "no label before a comment": (f'1\t"{GOOD}"\nComment:\n\n', "line 1: the sentence has no relation"),
    "no sentence": (f'1\t"{GOOD}"\nOther\nmore\n', "line 3: expected a number, a tab and a sentence; found 'more'"),
    "marks missing after a tab": (f"x\t{GOOD}\ny\tno marks\n", "line 2: the mark <e1> is missing: 'no marks'"),
    "no tab": (f"x\t{GOOD}\n{GOOD}\n", "line 2: has no tab; expected a label, a tab and a text"),
    "starts with a tab": (f"x\t{GOOD}\n\t{GOOD}\n", "line 2: starts with a tab"),
    "no relations": (f"{GOOD}\n", "no form with relations was recognized in its first line. Accepted: semeval"),
    "no label column": (f"id\ttext\n1\t{GOOD}\n", "line 1: names the columns id, text; it needs `label` or `relation`"),
    "marks missing in a column": ("label\ttext\nx\ta b\n", "line 2: the mark <e1> is missing"),
    "empty label": (f"label\ttext\n \t{GOOD}\n", "line 2: the label is empty"),
    "missing field": ('{"label": "x"}\n', 'line 1: needs "text", a string, or "tokens"'),
    "missing label": (json.dumps({"text": GOOD}) + "\n", "line 1: has no `label`"),
    "one span": ('{"label": "x", "text": "a b", "e1": [0, 1]}\n', "line 1: needs `e1` and `e2`"),
    "tokens without spans": ('{"label": "x", "tokens": ["a", "b"]}\n', "line 1: needs `e1` and `e2`"),
    "outside": ('\n{"label": "x", "text": "a b", "e1": [0, 1], "e2": [2, 9]}\n', "line 2: e2 is [2, 9]; it must be"),
    "tokens outside": ('{"label": "x", "tokens": ["a"], "e1": [0, 1], "e2": [1, 2]}\n', "which has 1 tokens"),
    "no numbers": ('{"label": "x", "text": "a b", "e1": [0, 1], "e2": {"a": 1}}\n', "line 1: e2 is {'a': 1}; it must"),
    "no JSON": ('{"text"\n', "line 1: is not JSON"),
    "numbers as labels": ("".join(f"{k}\t{GOOD}\n" for k in range(120)), "120 different labels for 120 texts"),
    "nothing": ("label\ttext\n", "contains no examples"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_name_file_and_line(tmp_path, case):
    text, message = WRONG[case]
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TextError) as error:
        read(path)
    assert message in str(error.value) and str(path) in str(error.value)


def test_mistakes_in_texts_without_relations(tmp_path):
    (tmp_path / "a").write_text(f"{GOOD}\nno marks\n", encoding="utf-8")
    with pytest.raises(TextError, match="line 2: the mark <e1> is missing: 'no marks'"):
        asked(tmp_path / "a")
    with pytest.raises(TextError, match="form is 'lines'; accepted: auto, semeval, tab, tsv, csv, jsonl"):
        read(tmp_path / "a", "lines")
