"""A user's dictionary: its words are always tokens, other text is split as before, and nothing is lost."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bilmo.errors import TextError
from bilmo.text import dictionary as dictionaries
from bilmo.text.dictionary import LONGEST_WORD, Dictionary
from bilmo.text.offsets import offsets
from bilmo.text.split import chinese, splitter

LETTERS = "玄德引關关羽军軍说說ab1·。！ \u3000\u0301🙂\ud800"


def tokens(text: str, *words: str) -> list[str]:
    return [token for sentence in chinese(text, Dictionary.of(words) if words else None) for token in sentence]


def test_names_of_a_novel_are_words():
    text = "玄德引兵来到涿郡。玄德曰：善。"
    assert {"玄德引", "玄德曰"} <= set(tokens(text))  # without a dictionary
    assert tokens(text, "玄德") == "玄德 引兵 来到 涿郡 。 玄德 曰 ： 善 。".split()


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("玄德公引兵", ("玄德", "玄德公"), ["玄德公", "引兵"]),  # the longest word
        ("刘玄德", ("刘玄", "玄德"), ["刘玄", "德"]),  # from left to right
        ("關羽大怒", ("关羽大",), ["關羽大", "怒"]),  # a simplified spelling finds a traditional one
        ("关羽大怒", ("關羽大",), ["关羽大", "怒"]),
        ("学C语言和AI", ("C语言",), ["学", "C语言", "和", "AI"]),
        ("SAID AI", ("AI",), ["SAID", "AI"]),  # not a part of a longer word
        ("AIAI用AI", ("AI",), ["AIAI", "用", "AI"]),
        ("阿·Q正传", ("阿·Q",), ["阿·Q", "正传"]),
        ("看𠀀𠀁吧", ("𠀀𠀁",), ["看", "𠀀𠀁", "吧"]),
    ],
)
def test_which_words_are_found(text, words, expected):
    assert tokens(text, *words) == expected


WORDS = st.lists(
    st.text(LETTERS, min_size=1, max_size=4).filter(lambda word: not any(c.isspace() for c in word)),
    min_size=1,
    max_size=5,
)


@settings(max_examples=200)
@given(text=st.text(LETTERS, max_size=30), words=WORDS)
@example(text="a\u0301玄德", words=["a"])
def test_nothing_is_lost_and_offsets_hold_with_any_dictionary(text, words):
    found = tokens(text, *words)
    assert "".join(found) == "".join(text.split())
    assert all(found)
    assert [text[begin:end] for begin, end in offsets(text, found)] == found


@settings(max_examples=200)
@given(
    parts=st.lists(st.sampled_from(["玄德", "引军", "，", "大喜。", "好"]), max_size=12), word=st.sampled_from(["玄德"])
)
def test_every_use_of_a_word_is_a_token_and_the_rest_is_split_as_if_alone(parts, word):
    text = "".join(parts)
    between = [token for part in text.split(word) for token in [*tokens(part), word]][:-1]
    assert tokens(text, word) == between


def test_other_rules_ignore_the_dictionary():
    assert splitter("en", Dictionary.of(["did"]))("He didn't.") == [["He", "did", "n't", "."]]


def test_a_dictionary_does_not_depend_on_the_order_of_its_file(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("玄德\n\n云长 3 nr\n玄德\n", encoding="utf-8")
    second.write_bytes("\ufeff云长 nr\r\n 玄德 12\r\n".encode())
    assert dictionaries.read(first) == dictionaries.read(second) == Dictionary.of(["云长", "玄德"])
    assert dictionaries.read(first).sha256 == dictionaries.read(second).sha256
    assert dictionaries.read(first).sha256 != Dictionary.of(["玄德"]).sha256


def test_a_dictionary_survives_pickling():
    dictionary = Dictionary.of(["玄德"])
    assert chinese("玄德引军", pickle.loads(pickle.dumps(dictionary))) == chinese("玄德引军", dictionary)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("玄德\n关 羽\n".encode(), "line 2: found '关 羽', which is not one word; a line is one word without spaces"),
        (b"new york\n", "line 1: found 'new york', which is not one word"),
        ("玄德 3 nr 4\n".encode(), "line 1: found '玄德 3 nr 4', which is not one word"),
        (b"\n  \n", "the dictionary has no words"),
        (b"", "the dictionary has no words"),
        (f"玄德\n{'玄' * (LONGEST_WORD + 1)}\n".encode(), "line 2: a word has 101 characters"),
        (b"\x7fELF\x00\x01\n", "line 1: contains zero bytes"),
        ("玄德".encode("gb18030"), "line 1: byte 1 .0xd0. is not UTF-8"),
    ],
)
def test_what_is_not_a_dictionary_is_refused_with_its_line(tmp_path, content, message):
    path = tmp_path / "names.txt"
    path.write_bytes(content)
    with pytest.raises(TextError, match=message):
        dictionaries.read(path)


def test_a_missing_dictionary_is_refused(tmp_path):
    with pytest.raises(TextError, match="there is no such file"):
        dictionaries.read(tmp_path / "names.txt")
