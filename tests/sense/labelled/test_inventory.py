"""The senses that words can have."""

import pytest

from bilmo.errors import TextError
from bilmo.sense.labelled.inventory import Inventory, Lemma, lemma_of, topic_of
from sense_data import INVENTORY


@pytest.fixture
def inventory():
    return Inventory.parse(INVENTORY.splitlines(), "index.sense")


def test_the_first_sense_is_the_one_with_number_1(inventory):
    assert inventory.first(Lemma("bank", "n")) == "bank%1:17:01::"
    assert [sense.key for sense in inventory.senses(Lemma("bank", "n"))] == ["bank%1:17:01::", "bank%1:14:00::"]
    assert inventory.first(Lemma("bank", "v")) is None


def test_the_words_of_a_synset_are_synonyms_and_a_key_names_its_topic(inventory):
    assert inventory.synonyms("bank%1:14:00::") == ["banking company"]
    assert inventory.synonyms("bank%1:17:01::") == []
    assert topic_of("bank%1:14:00::") == "noun.group" and topic_of("bank%1:17:01::") == "noun.object"
    assert lemma_of("fast%5:00:00:quick:00") == Lemma("fast", "a")


@pytest.mark.parametrize(
    ("form", "lemmas"),
    [
        ("banks", [("bank", "n")]),
        ("boxes", [("box", "n")]),
        ("sits", [("sit", "v")]),
        ("leaving", [("leave", "v")]),
        ("faster", [("fast", "a")]),
        ("banking_companies", []),
        ("banking_company", [("banking_company", "n")]),
        ("takes_off", [("take_off", "v")]),
        ("s", []),
        ("", []),
    ],
)
def test_rules_of_detachment_find_lemmas_of_the_inventory(inventory, form, lemmas):
    found = inventory.lemmas(form)
    assert found == lemmas or (form == "banking_companies" and found == [("banking_company", "n")])


def test_the_lines_are_read_back(inventory):
    again = Inventory.parse(inventory.lines(), "again")
    assert sorted(again.lines()) == sorted(inventory.lines()) == sorted(INVENTORY.splitlines())


@pytest.mark.parametrize(
    "line", ["bank", "bank%1:14:00:: 1 x 2", "bank%9:14:00:: 1 1 2", "%1:14:00:: 1 1 2", "a%1 1 1 2"]
)
def test_another_file_is_refused(line):
    with pytest.raises(TextError, match=r"x, line 1: .* is not a line of WordNet's index\.sense"):
        Inventory.parse([line], "x")


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "index.sense").write_text("\n")
    with pytest.raises(TextError, match="contains no senses"):
        Inventory.read(tmp_path / "index.sense")
