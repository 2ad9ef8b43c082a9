"""Labelled sentences in two forms, and the forms of words that are learned from them."""

import json

import pytest

from bilmo.errors import TextError
from bilmo.sense.labelled import corpus
from bilmo.sense.labelled.forms import Forms
from bilmo.sense.labelled.inventory import Inventory, Lemma
from sense_data import INVENTORY, write_sense_files


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    write_sense_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_joined_words_are_tokens_in_both_forms(files):
    sentence = corpus.read(files / "semcor.jsonl")[3]
    assert sentence.tokens == ["They", "took", "off", "fast"]
    assert [(use.begin, use.end, use.lemma) for use in sentence.uses] == [
        (1, 3, ("take_off", "v")),
        (3, 4, ("fast", "a")),
    ]
    (marked,) = corpus.read(files / "test.xml", files / "test.key")
    assert marked.tokens == ["The", "bank", "took", "off", "benches", "zzz"]
    assert [(use.begin, use.end, use.id) for use in marked.uses][1] == (2, 4, "d0.t1")
    assert marked.uses[0].senses == ("bank%1:14:00::", "bank%1:17:01::")


def test_lemmas_come_from_the_table_or_by_rule_and_unlabelled_words_have_none(files):
    inventory = Inventory.parse(INVENTORY.splitlines(), "")
    forms = Forms.learn(corpus.read(files / "semcor.jsonl"), inventory)
    assert forms.lemmas("went") == [Lemma("go", "v")]
    assert forms.lemmas("boxes") == [Lemma("box", "n")]
    assert forms.lemmas("the") == forms.lemmas("xyz") == []
    found = [(use.begin, use.end) for use, _ in forms.uses(["They", "Took", "off", "to", "the", "banks"])]
    assert found == [(1, 3), (5, 6)]
    again = Forms.parse(forms.lines(), "", inventory)
    assert list(again.lines()) == list(forms.lines())


def test_names_that_stand_for_another_lemma_teach_no_form(files):
    entry = {"words": ["Smith", "sat"], "senses": ["person%1:03:00::", "sit%2:35:00::"], "pos": ["NNP", "VB"]}
    (files / "a.jsonl").write_text(json.dumps(entry))
    forms = Forms.learn(corpus.read(files / "a.jsonl"), Inventory.parse(INVENTORY.splitlines(), ""))
    assert forms.lemmas("smith") == [] and forms.lemmas("sat")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no sentences"),
        ("{", "line 1: is not JSON"),
        ('{"words": ["a"], "senses": []}', "line 1: must have"),
        ('{"words": ["a", " "], "senses": [null, null]}', "line 1: must have"),
        ('{"words": ["\\ud800"], "senses": [null]}', "line 1: must have"),
        ('{"words": ["a"], "senses": ["bank"]}', "the sense 'bank' is not a sense key"),
        ("<corpus><sentence>", "is not XML"),
        ("<corpus><sentence><instance id='1'>a</instance></sentence></corpus>", "must have an id, a lemma"),
    ],
)
def test_a_wrong_file_is_refused(files, text, message):
    (files / "x").write_text(text)
    with pytest.raises(TextError, match=message):
        corpus.read(files / "x")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("d0.t0\n", "line 1: 'd0.t0' is not a line of gold keys"),
        ("d0.t0 bank\n", "is not a line of gold keys"),
        ("d0.t0 bank%1:14:00::\n\nd0.t0 bank%1:14:00::\n", "line 3: names 'd0.t0' for the second time"),
        ("d9.t0 bank%1:14:00::\n", "names 'd9.t0', which is not in"),
    ],
)
def test_wrong_keys_are_refused(files, keys, message):
    (files / "test.key").write_text(keys)
    with pytest.raises(TextError, match=message):
        corpus.read(files / "test.xml", files / "test.key")


def test_keys_belong_to_xml(files):
    with pytest.raises(TextError, match="--gold belongs to XML"):
        corpus.read(files / "semcor.jsonl", files / "test.key")
