"""Every form of sentences with roles gives the same examples; errors name the number of the line."""

from __future__ import annotations

import json
import lzma

import pytest

from bilmo.errors import TextError
from bilmo.tasks.data import frames
from bilmo.tasks.data.frames import Frame, Framed, Marked

EXAMPLES = [
    Framed(
        ["Anna", "wants", "to", "sleep", "."],
        [
            Frame(1, ["B-A0", "B-V", "B-A1", "I-A1", "O"]),
            Frame(3, ["B-A0", "O", "O", "B-V", "O"]),
        ],
    ),
    Framed(["Yes"], []),
    Framed(["#", "漢字", "fell", "down"], [Frame(2, ["O", "B-A1", "B-V", "I-V"])]),
]
CONLL2005 = """\
Anna   NNP (S* -  -     (A0*) (A0*)
wants  VBZ *   01 want  (V*)  *
to     TO  *   -  -     (A1*  *
sleep  VB  *   02 sleep *)    (V*)
.      .   *)  -  -     *     *

Yes    UH  (S*) - -

#      SYM (S* -  -     *
漢字   NN  *   -  -     (A1*)
fell   VBD *   01 fall  (V*
down   RP  *)  -  -     *V)
"""
CONLL2012 = """\
#begin document (nw/made/up); part 000
nw/made/up 0 0 Anna NNP (TOP(S* - - - Speaker (PERSON) (A0*) (A0*) (1)
nw/made/up 0 1 wants VBZ * want 01 1 Speaker * (V*) * -
nw/made/up 0 2 to TO * - - - Speaker * (A1* * -
nw/made/up 0 3 sleep VB * sleep 02 - Speaker * *) (V*) -
nw/made/up 0 4 . . *)) - - - Speaker * * * -

nw/made/up 0 0 Yes UH (TOP*) - - - Speaker * -

nw/made/up 0 0 # SYM (TOP* - - - Speaker * * -
nw/made/up 0 1 漢字 NN * - - - Speaker * (A1*) -
nw/made/up 0 2 fell VBD * fall 01 - Speaker * (V* -
nw/made/up 0 3 down RP *) - - - Speaker * *) -

#end document
"""
MINIMAL = """\
Anna\t-\t(A0*)\t(A0*)
wants\twant\t(V*)\t*
to\t-\t(A1*\t*
sleep\tsleep\t*)\t(V*)
.\t-\t*\t*

Yes\t-

#\t-\t*
漢字\t-\t(A1*)
fell\tfall\t(V*
down\t-\t*)
"""


def entry(example):
    verbs = [{"index": f.predicate, "lemma": "x", "sense": "x.01", "tags": list(f.tags)} for f in example.frames]
    return json.dumps({"id": 7, "words": example.tokens, "pos": ["X"] * len(example.tokens), "verbs": verbs})


WRITTEN = {
    "a.jsonl": "\n".join(map(entry, EXAMPLES)) + "\n\n",
    "unnamed": "\n".join(map(entry, EXAMPLES)) + "\n",
    "a.conll": CONLL2005,
    "train-set": CONLL2005,
    "minimal.txt": MINIMAL,
    "a_gold_conll": CONLL2012,
    "b.conll": CONLL2012.removeprefix("#begin document (nw/made/up); part 000\n"),
}


def read(path, form="auto"):
    return frames.read_examples(frames.detect_form(path, form))


def asked(path, form="auto"):
    """The sentences to label; None where they are lines of text."""
    source = frames.detect_input_form(path, form)
    return None if source.form == "lines" else list(frames.read_sentences(source))


@pytest.mark.parametrize("name", WRITTEN)
def test_the_same_examples_in_every_form(tmp_path, name):
    (tmp_path / name).write_text(WRITTEN[name], encoding="utf-8")
    assert read(tmp_path / name) == EXAMPLES
    marked = [Marked(example.tokens, [frame.predicate for frame in example.frames]) for example in EXAMPLES]
    assert asked(tmp_path / name) == marked


def test_compressed_files(tmp_path):
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(WRITTEN["a.jsonl"].encode()))
    assert read(tmp_path / "a.jsonl.xz") == EXAMPLES


def test_predicates_may_be_marked_or_not(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"words": ["a", "b"]}\n{"words": ["a", "b"], "verbs": [{"index": 1}]}\n', encoding="utf-8")
    assert asked(path) == [["a", "b"], Marked(["a", "b"], [1])]
    columns = tmp_path / "a.conll"
    columns.write_text("Anna -\nsleeps sleep\n\nYes -\n", encoding="utf-8")
    assert asked(columns) == [Marked(["Anna", "sleeps"], [1]), Marked(["Yes"], [])]
    assert asked(columns, "conll2005") == asked(columns)


@pytest.mark.parametrize("text", ["Anna wants to sleep.\n", "a b c\n\nd e f\n", "well * done (A0*)\n", "- - -\n", ""])
def test_raw_text_is_read_as_lines(tmp_path, text):
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert asked(tmp_path / "a.txt") is None


def verb(**fields):
    return json.dumps({"words": ["a", "b"], "verbs": [{"index": 1, "tags": ["O", "B-V"]} | fields]})


WRONG = {
    "a.jsonl": {
        '{"verbs": []}': 'line 1: needs "words", a list of strings',
        '{"words": ["a"]}': 'line 1: has no "verbs"',
        '{"words": ["a"], "verbs": 3}': 'line 1: "verbs" is 3; it must be a list',
        '{"words": ["a"], "verbs": [3]}': "line 1, verb 1: is 3; it must be an object",
        '{"words": ["a"], "verbs": [{"tags": ["O"]}]}': 'line 1, verb 1: has no "index"',
        verb(): "",
        verb(index=True): 'line 1, verb 1: "index" is True',
        verb(index=2): "line 1: a predicate is word 2, outside the sentence, whose 2 words count from 0",
        verb(index=-1): "line 1: a predicate is word -1, outside",
        verb(tags=None): 'line 1, verb 1: needs "tags"',
        verb(tags=["B-V"]): "line 1: the predicate 'b' (word 1) has 1 tags for 2 words",
        verb(tags=["I-A", "B-V"]): "has the tag 'I-A' at 'a' (word 0), after 'O'",
        verb(tags=["B-A", "I-B"]): "has the tag 'I-B' at 'b' (word 1), after 'B-A'",
        verb(tags=["X", "B-V"]): "has the tag 'X' at 'a' (word 0)",
        verb(tags=["B", "B-V"]): "has the tag 'B' at 'a' (word 0)",
        '{"words": ["a"], "verbs": [{"index": 0, "tags": ["B-V"]}, {"index": 0, "tags": ["B-V"]}]}': "occurs twice",
        '{"words": ["a"], "verbs": []}': "contains no predicates; it was read as JSON lines",
        "{": "line 1: is not JSON",
    },
    "a.conll": {
        "a - (A0*\nb b (V*)\n": "line 2: (V*) opens a bracket inside (A0*, which line 1 opened",
        "a - (A0*\nb b *\n": "line 1: the bracket (A0* is not closed in its sentence",
        "x x (V*)\n\na - *)\nb b (V*)\n": "line 3: *) in column 3 closes a bracket, but none is open",
        "x x (V*)\n\na - (A0*A1)\nb b (V*)\n": "line 3: (A0*A1) closes A1, but the open bracket is (A0*",
        "x x (V*)\n\na - ((A0*)\nb b (V*)\n": "line 3: column 3 has '((A0*)'",
        "x x (V*)\n\na - (A0*)\nb b\n": "line 4: 2 columns, but the lines before it in the same sentence have 3",
        "x x (V*)\n\ny y (V*)\n\na - *\nb - *\n": "line 5: the sentence that starts here has 0 predicates in column 2, "
        "but 1 columns",
        "x x (V*)\n\ny y (V*)\n\na\n": "line 5: 1 columns; the predicates of this file are in column 2",
        "- (A0*)\nwant (V*)\n": "it has no words. Join it with the words: paste WORDS PROPS",
        "a b c\nd e f\n": "line 1: no column marks as many predicates as there are columns of roles",
        "a -\nb -\n": "contains no predicates",
        "\n": "contains no predicates",
    },
    "a_conll": {
        "#begin document (x)\nx 0 0 a\n": "line 2: 4 columns; CoNLL-2012 has at least 12",
        "x 0 0 a NN * - - - - * (A0*) -\n": "line 1: column 12 of the sentence that starts here has roles, but no",
        "x 0 0 a NN * - - - - * (V* -\n": "line 1: the bracket (V* is not closed",
    },
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, cases in WRONG.items() for text in cases])
def test_errors_name_the_line(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    message = WRONG[name][text]
    if not message:
        assert read(tmp_path / name)
        return
    with pytest.raises(TextError) as error:
        read(tmp_path / name)
    assert message in str(error.value) and str(tmp_path / name) in str(error.value)


def test_errors_of_sentences_to_label(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"words": ["a"], "verbs": [{"index": 3}]}\n', encoding="utf-8")
    with pytest.raises(TextError, match="line 1: a predicate is word 3, outside the sentence"):
        asked(tmp_path / "a.jsonl")
    with pytest.raises(TextError, match="form is 'xml'; accepted: auto, jsonl, conll2005, conll2012, lines"):
        asked(tmp_path / "a.jsonl", "xml")
    with pytest.raises(TextError, match="has only sentences"):
        read(tmp_path / "a.jsonl", "lines")
