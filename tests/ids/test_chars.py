import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.errors import VocabError
from bilmo.ids.chars import MARKS, ByteChars, CharTable, pad_words
from bilmo.net.config import CharsConfig

from reference import spell
from strategies import characters, tokens

BEGIN, END, PAD = 258, 259, 260


@pytest.mark.parametrize(
    "word, inside",
    [
        ("a", [97]),
        ("Cat", [67, 97, 116]),
        ("\x00 \x7f", [0, 32, 127]),
        ("é", [0xC3, 0xA9]),
        ("e\u0301", [0x65, 0xCC, 0x81]),  # a letter and its accent apart are not the letter with it
        ("字", [0xE5, 0xAD, 0x97]),
        ("🙂", [0xF0, 0x9F, 0x99, 0x82]),
        ("\U0010ffff", [0xF4, 0x8F, 0xBF, 0xBF]),
        ("", []),
        ("\ud800", []),  # lone surrogates vanish
        ("a\udfffb", [97, 98]),
        ("<S>", [256]),
        ("</S>", [257]),
        ("<s>", [60, 115, 62]),
        ("<S", [60, 83]),
        ("<UNK>", [60, 85, 78, 75, 62]),  # a class of the softmax; as an input five plain characters
        ("a" * 48, [97] * 48),
        ("a" * 49, [97] * 48),
        ("b" + "a" * 1000, [98] + [97] * 47),
        ("字" * 16, [0xE5, 0xAD, 0x97] * 16),
        ("字" * 20, [0xE5, 0xAD, 0x97] * 16),
        ("a" * 47 + "é", [97] * 47 + [0xC3]),  # the cut is by bytes, here through the middle of a character
        ("\ud800" * 5 + "a" * 48, [97] * 48),
    ],
    ids=ascii,
)
def test_bytes_are_the_scheme_of_the_old_models_to_the_letter(word, inside):
    assert ByteChars(50).ids(word) == [BEGIN, *inside, END]


def test_twenty_chinese_characters_keep_sixteen():
    ids = ByteChars(50).ids("汉" * 20)
    assert bytes(ids[1:-1]).decode("utf-8") == "汉" * 16


@pytest.mark.parametrize("most", [3, 4, 10])
def test_a_word_of_bytes_is_cut_so_that_its_marks_still_fit(most):
    assert ByteChars(most).ids("abcdefghijkl") == [BEGIN, *b"abcdefghijkl"[: most - 2], END]


def test_without_a_greatest_length_no_byte_is_cut():
    assert ByteChars(None).ids("字" * 5000) == [BEGIN, *("字" * 5000).encode(), END]


def test_a_table_of_bytes_has_261_rows():
    assert ByteChars(50).rows == 261
    assert (ByteChars.sentence_begin, ByteChars.sentence_end) == (256, 257)
    assert (ByteChars.word_begin, ByteChars.word_end, ByteChars.pad) == (BEGIN, END, PAD)


@given(st.lists(tokens(), min_size=1, max_size=5), st.none() | st.integers(4, 60), st.integers(1, 4))
def test_padded_bytes_are_the_beginning_of_the_full_width(words, most, widest):
    config = CharsConfig(filters=((widest, 1),), max_characters=most)
    chars = ByteChars(most)
    found = pad_words(chars, [chars.ids(word) for word in words], widest)
    for row, word in zip(found.tolist(), words, strict=True):
        full = spell(config, word)
        full += [PAD] * (len(row) - len(full))
        assert row == full[: len(row)]


# The table of Unicode characters


def test_a_count_puts_the_most_frequent_characters_first_and_ties_by_code_point():
    table = CharTable.count(["banana", "cab", "é"])
    assert table.entries == (*MARKS, "a", "b", "n", "c", "é")
    assert table.rows == len(MARKS) + 5


def test_a_count_leaves_out_what_is_too_rare():
    words = ["banana", "cab", "é"]
    assert CharTable.count(words, min_count=2).entries == (*MARKS, "a", "b", "n")
    assert CharTable.count(words, min_count=3).entries == (*MARKS, "a")
    assert CharTable.count(words, min_count=9).entries == MARKS


@given(st.lists(st.text("abc字🙂", max_size=8)), st.randoms())
def test_a_count_does_not_depend_on_the_order_of_words(words, random):
    shuffled = random.sample(words, len(words))
    assert CharTable.count(shuffled).entries == CharTable.count(words).entries


def test_characters_have_the_ids_of_their_places():
    table = CharTable(("<bow>", "字", "<pad>", "<eow>", "🙂", "<oov>", "<bos>", "", "<eos>", "S"), 50)
    assert table.ids("字🙂S") == [0, 1, 4, 9, 3]
    assert table.ids("字x") == [0, 1, 5, 3]  # one that the table does not know
    assert table.ids("") == [0, 3]
    assert table.ids("<S>") == [0, 6, 3]
    assert table.ids("</S>") == [0, 8, 3]
    assert table.ids("<UNK>") == [0, 5, 5, 5, 5, 5, 3]
    assert table.ids("<pad>") == [0, 5, 5, 5, 5, 5, 3]  # a mark is no character, though text may spell one
    assert table.pad == 2


def test_a_lone_surrogate_is_a_character_like_any_other_in_a_table():
    table = CharTable.count(["a\ud800"])
    assert table.ids("\ud800\ud801") == [1, 7, 5, 2]


def test_of_a_character_that_stands_twice_the_last_id_counts():
    assert CharTable((*MARKS, "a", "b", "a"), 50).ids("ab") == [1, 8, 7, 2]


def test_a_table_cuts_by_characters_and_not_by_bytes():
    table = CharTable.count(["字"], max_characters=50)
    assert len(table.ids("字" * 20)) == 22
    assert table.ids("字" * 60) == [1, *[6] * 48, 2]
    assert table.cut("字" * 60) == "字" * 48
    assert CharTable.count(["字"], max_characters=4).ids("字" * 9) == [1, 6, 6, 2]


def test_a_cut_leaves_the_boundary_words_whole():
    table = CharTable.count(["a"], max_characters=4)
    assert (table.cut("<S>"), table.cut("</S>"), table.cut("<UNK>")) == ("<S>", "</S>", "<U")
    assert ByteChars(4).cut("<UNK>") == "<UNK>"  # only its bytes are cut, never the word


def test_without_a_greatest_length_no_character_is_cut():
    table = CharTable.count(["字"], max_characters=None)
    assert table.ids("字" * 5000) == [1, *[6] * 5000, 2]
    assert table.cut("字" * 5000) == "字" * 5000


@given(st.lists(st.text(characters())), st.integers(1, 3), st.none() | st.integers(3, 9))
def test_a_table_survives_being_written_as_lines(words, least, most):
    table = CharTable.count(words, min_count=least, max_characters=most)
    again = CharTable.from_lines(table.lines(), max_characters=most)
    assert again.entries == table.entries
    for word in words:
        assert again.ids(word) == table.ids(word)


@pytest.mark.parametrize("block", range(0, sys.maxunicode + 1, 0x20000), ids=hex)
def test_every_code_point_survives_a_file_of_lines(block):
    entries = (*MARKS, "", *map(chr, range(block, min(block + 0x20000, sys.maxunicode + 1))), "")
    lines = CharTable(entries, 50).lines()
    file = "".join(line + "\n" for line in lines).encode("utf-8")
    read = file.decode("utf-8").splitlines()
    assert len(read) == len(entries)
    assert all(line == line.strip() for line in read)
    assert CharTable.from_lines(read, max_characters=50).entries == entries


def test_lines_show_what_can_be_seen_and_name_what_cannot():
    table = CharTable((*MARKS, "a", "字", " ", "\n", "\u3000", "\ud800", "", "U", "+", "\U000e0001"), 50)
    expected = [*MARKS, "a", "字", "U+0020", "U+000A", "U+3000", "U+D800", "", "U", "+", "U+E0001"]
    assert table.lines() == expected


@pytest.mark.parametrize(
    "line, says",
    [
        ("ab", "line 7: 'ab' is neither one character, nor its code point, nor one of <pad>"),
        ("<BOW>", "line 7: '<BOW>' is neither"),
        ("U+zz", "line 7: 'U+zz' is neither"),
        ("U+110000", "line 7: 'U+110000' is neither"),
        ("U+-1", "line 7: 'U+-1' is neither"),
        ("U+" + "F" * 99, "line 7: 'U+FFFF"),
        ("U+", "line 7: 'U+' is neither"),
    ],
    ids=lambda text: text[:9],
)
def test_a_line_that_is_no_character_is_refused_by_its_number(line, says):
    with pytest.raises(VocabError, match=re.escape(says)) as caught:
        CharTable.from_lines([*MARKS, line], max_characters=50)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("missing", [["<oov>"], ["<pad>", "<eos>"], list(MARKS)], ids=" ".join)
def test_a_table_without_its_marks_is_refused_by_their_names(missing):
    with pytest.raises(VocabError, match=f"lacks {' '.join(missing)};"):
        CharTable([mark for mark in MARKS if mark not in missing] + ["a"], 50)


# Many words as one array


def test_words_are_padded_one_filter_beyond_the_longest():
    chars = ByteChars(50)
    found = pad_words(chars, [chars.ids("a"), chars.ids("abc")], widest_filter=3)
    assert found.dtype == np.int64
    assert found.tolist() == [
        [BEGIN, 97, END, PAD, PAD, PAD, PAD, PAD],
        [BEGIN, 97, 98, 99, END, PAD, PAD, PAD],
    ]


def test_padding_never_goes_beyond_the_full_width():
    chars = ByteChars(6)
    assert pad_words(chars, [chars.ids("a")], widest_filter=5).tolist() == [[BEGIN, 97, END, PAD, PAD, PAD]]
    assert pad_words(chars, [chars.ids("abcd")], widest_filter=2).tolist() == [[BEGIN, 97, 98, 99, 100, END]]


def test_without_a_greatest_length_padding_is_still_one_filter():
    chars = CharTable.count(["a"], max_characters=None)
    found = pad_words(chars, [chars.ids("a" * 70), chars.ids("")], widest_filter=2)
    assert found.shape == (2, 74)
    assert found[0, -3:].tolist() == [2, 0, 0] and found[1].tolist() == [1, 2, *[0] * 72]


def test_no_words_are_an_array_without_rows():
    assert len(pad_words(ByteChars(50), [], widest_filter=7)) == 0


@given(st.lists(tokens(), min_size=1), st.none() | st.integers(8, 50), st.integers(1, 8))
def test_every_filter_sees_nothing_but_padding_where_it_would_at_the_full_width(words, most, widest):
    chars = ByteChars(most)
    ids = [chars.ids(word) for word in words]
    width = pad_words(chars, ids, widest).shape[1]
    assert width >= widest
    for word in ids:
        full = most if most is not None else 10**6
        assert (width - len(word) >= widest) == (full - len(word) >= widest)
