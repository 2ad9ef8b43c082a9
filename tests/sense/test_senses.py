"""Senses of a word without labels."""

import random
from collections import Counter
from pathlib import Path

import pytest

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.errors import TextError
from bilmo.sense import senses as module
from bilmo.sense.index import Index
from bilmo.sense.places import in_line
from bilmo.sense.senses import Senses, nearby_words, typical_words

from task_data import made

ELMO = Embedder(made(0), lang="en")
LINES = [f"They sat on the bank of the {name} river." for name in "red old long cold wide deep".split()] + [
    f"The bank lent {name} money at high interest." for name in "much some more extra new his".split()
]


def found_in(folder, lines, **options):
    (folder / "text.txt").write_text("\n".join([*lines, "Nothing here.", ""]), encoding="utf-8")
    return Senses.find(ELMO, "bank", folder / "text.txt", **options)


def test_every_use_is_in_one_group_with_its_place(tmp_path):
    found = found_in(tmp_path, LINES)
    uses = [use for sense in found.senses for use in sense.uses]
    assert found.total == len(uses) == len(LINES) and sorted(use.line for use in uses) == list(range(1, 13))
    assert all(use.tokens[use.position].casefold() == "bank" and "[" in use.text for use in uses)
    assert [len(sense.uses) for sense in found.senses] == sorted((len(s.uses) for s in found.senses), reverse=True)


def test_the_order_of_the_text_changes_nothing(tmp_path):
    first = found_in(tmp_path, LINES)
    mixed = LINES[:]
    random.Random(3).shuffle(mixed)
    again = found_in(tmp_path, mixed)
    assert [sense.typical_words for sense in again.senses] == [sense.typical_words for sense in first.senses]
    assert [sorted(use.text for use in sense.uses) for sense in again.senses] == [
        sorted(use.text for use in sense.uses) for sense in first.senses
    ]


def test_more_uses_than_fit_are_drawn_and_the_order_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_USES", 7)
    found, again = found_in(tmp_path, LINES), found_in(tmp_path, LINES[::-1])
    drawn = [sorted(use.text for sense in one.senses for use in sense.uses) for one in (found, again)]
    assert found.total == 12 and len(drawn[0]) == 7 and drawn[0] == drawn[1]


def test_sentences_in_memory_and_an_index_give_the_same_groups(tmp_path):
    wanted = found_in(tmp_path, LINES, mix="mean")
    places = [place for k, line in enumerate(LINES, 1) for place in in_line(ELMO, line, "", k)]
    places += in_line(ELMO, "Nothing here.", "", 13)
    vectors = ELMO.embed([place.tokens for place in places])
    found = Senses.among(" bank ", places, vectors)
    index = Index.build(ELMO, tmp_path / "text.txt", tmp_path / "index", mix="mean")
    for one in (found, Senses.in_index("Bank", index)):
        assert (one.total, len(one.senses)) == (wanted.total, len(wanted.senses))
        for sense, other in zip(one.senses, wanted.senses, strict=True):
            assert sense.typical_words == other.typical_words
            assert {(use.text, use.line) for use in sense.uses} == {(use.text, use.line) for use in other.uses}
    assert Senses.among("absent", places, vectors).senses == Senses.in_index("absent", index).senses == []


def test_uses_of_an_index_are_drawn_from_all_texts(tmp_path):
    found_in(tmp_path, LINES)
    (tmp_path / "more.txt").write_text("\n".join(f"A bank of {line}" for line in LINES))
    index = Index.build(ELMO, tmp_path / "text.txt", tmp_path / "index")
    index.add(ELMO, tmp_path / "more.txt")
    uses, vectors, total = index.uses_of("BANK", 10)
    assert (len(uses), vectors.shape, total) == (10, (10, ELMO.config.vector_width), 36)
    assert {Path(place.file).name for place, _ in uses} == {"text.txt", "more.txt"}
    assert Senses.in_index("bank", index, 10).total == 36
    assert index.some_words(1000).count("bank") == 36 and index.uses_of("absent", 10)[2] == 0


def test_a_word_that_is_used_once_or_never(tmp_path):
    once = found_in(tmp_path, ["A BANK closed."])
    assert once.total == 1 and once.silhouettes == {} and once.senses[0].uses[0].text == "A [BANK] closed."
    with pytest.raises(TextError, match="does not occur in the text"):
        found_in(tmp_path, ["Banks."])
    with pytest.raises(TextError, match="give one word"):
        Senses.find(ELMO, "two words", tmp_path / "text.txt")
    with pytest.raises(TextError, match="give one word"):
        Senses.find(ELMO, ".", tmp_path / "text.txt")
    assert bilmo.Senses is Senses


def test_typical_words_are_near():
    use = module.Use("a b c d e f g h i bank k".split(), 9, "", "", 1, 0.0, 0.0)
    assert list(nearby_words(use)) == "b c d e f g h i k".split()
    near, other = Counter(river=5, the=20, water=2), Counter(money=8, the=30)
    assert typical_words(near, other)[:2] == ["river", "water"] and "money" not in typical_words(near, other)
    assert typical_words(Counter(), other) == []
