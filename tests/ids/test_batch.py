from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.ids.batch import Indexer, by_length
from bilmo.ids.chars import ByteChars, CharTable
from bilmo.ids.vocab import Vocab

from strategies import configs, indexer_of, texts, tokens

BYTES = Indexer(chars=ByteChars(50), vocab=None, widest_filter=3)
WORDS = Vocab(["<S>", "</S>", "<UNK>", "the", "cat", "The"])


def spelled(batch, row):
    """Words of a row as the forward stack reads them, from their bytes."""
    names = {256: "<S>", 257: "</S>"}
    words = []
    for place in batch.forward[row, : batch.lengths[row]]:
        inside = [id for id in batch.words.chars[place].tolist() if id < 258]
        words.append(names[inside[0]] if inside and inside[0] > 255 else bytes(inside).decode())
    return words


def test_a_sentence_stands_between_its_boundaries():
    batch = BYTES.batch([["The", "cat"], [], ["a", "The", "b"]])
    assert batch.lengths.tolist() == [4, 2, 5]
    assert [spelled(batch, row) for row in range(3)] == [
        ["<S>", "The", "cat", "</S>"],
        ["<S>", "</S>"],
        ["<S>", "a", "The", "b", "</S>"],
    ]


def test_a_batch_holds_each_word_once_in_the_order_of_first_use():
    batch = BYTES.batch([["b", "a", "b"], ["a", "c"]])
    assert batch.forward.tolist() == [[0, 1, 2, 1, 3], [0, 2, 4, 3, 0]]
    assert batch.backward.tolist() == [[3, 1, 2, 1, 0], [3, 4, 2, 0, 0]]
    assert [row[1] for row in batch.words.chars.tolist()] == [256, *b"ba", 257, *b"c"]
    assert batch.words.ids is None


@given(configs(), texts())
def test_backward_is_forward_reversed_within_each_rows_own_length(config, text):
    batch = indexer_of(config).batch(text)
    assert batch.forward.shape == batch.backward.shape == (len(text), max(map(len, text)) + 2)
    for forward, backward, length, sentence in zip(batch.forward, batch.backward, batch.lengths, text, strict=True):
        assert length == len(sentence) + 2
        assert forward[:length].tolist() == backward[:length][::-1].tolist()


@given(configs(), texts())
def test_every_place_points_at_the_key_of_its_word(config, text):
    indexer = indexer_of(config)
    keys, places = indexer.places(text)
    assert len(set(keys)) == len(keys)
    for row, length, sentence in zip(places.forward, places.lengths, text, strict=True):
        found = [keys[place] for place in row[:length]]
        assert found == [indexer.key(word) for word in ("<S>", *sentence, "</S>")]
    used = {int(place) for row, length in zip(places.forward, places.lengths, strict=True) for place in row[:length]}
    assert used == set(range(len(keys)))


@given(configs(), st.lists(tokens(), min_size=1, max_size=5))
def test_words_hold_the_keys_row_by_row(config, tokens_):
    indexer = indexer_of(config)
    keys = [indexer.key(word) for word in tokens_]
    words = indexer.words(keys)
    assert (words.chars is None) == (indexer.chars is None) and (words.ids is None) == (indexer.vocab is None)
    for row, (characters, id) in enumerate(keys):
        if words.chars is not None:
            padded = words.chars[row].tolist()
            assert padded[: len(characters)] == list(characters)
            assert set(padded[len(characters) :]) <= {indexer.chars.pad}
        if words.ids is not None:
            assert words.ids[row] == id


def test_a_literal_mark_in_the_text_is_that_mark():
    batch = BYTES.batch([["<S>", "x", "</S>"]])
    assert batch.forward.tolist() == [[0, 0, 1, 2, 2]]


@pytest.mark.parametrize(
    "one, other",
    [
        ("a" * 48 + "b", "a" * 48 + "c"),  # cut before they differ
        ("字" * 17, "字" * 20),
        ("", "\ud800"),  # nothing is left of a lone surrogate
        ("a\udc80", "a"),
    ],
    ids=["cut", "Chinese", "empty", "surrogate"],
)
def test_two_spellings_with_the_same_bytes_share_one_row(one, other):
    batch = BYTES.batch([[one, "x", other]])
    assert len(batch.words.chars) == 4
    assert batch.forward[0, 1] == batch.forward[0, 3] != batch.forward[0, 2]


def test_two_unknown_words_share_one_row_of_a_word_table():
    batch = Indexer(chars=None, vocab=WORDS).batch([["dog", "cat", "ant", "<UNK>"]])
    assert batch.words.chars is None
    assert batch.words.ids.tolist() == [0, 2, 4, 1]
    assert batch.forward.tolist() == [[0, 1, 2, 1, 1, 3]]


def test_unknown_characters_share_one_row_of_a_character_table():
    indexer = Indexer(chars=CharTable.count(["a"]), vocab=None)
    batch = indexer.batch([["x", "y", "a", "xy"]])
    assert batch.forward.tolist() == [[0, 1, 1, 2, 3, 4]]


def test_words_alike_in_characters_but_not_in_the_vocabulary_stay_apart():
    vocab = Vocab(["<S>", "</S>", "<UNK>", "a" * 50])
    batch = Indexer(chars=ByteChars(50), vocab=vocab).batch([["a" * 50, "a" * 51]])
    assert batch.forward.tolist() == [[0, 1, 2, 3]]
    assert (batch.words.chars[1] == batch.words.chars[2]).all()
    assert batch.words.ids.tolist() == [0, 3, 2, 1]


def test_words_alike_in_the_vocabulary_but_not_in_characters_stay_apart():
    batch = Indexer(chars=ByteChars(50), vocab=WORDS).batch([["dog", "ant"]])
    assert batch.words.ids.tolist() == [0, 2, 2, 1]
    assert batch.forward.tolist() == [[0, 1, 2, 3]]


def test_lower_case_is_for_the_lookup_of_words_only():
    upper = Indexer(chars=ByteChars(50), vocab=WORDS)
    lower = Indexer(chars=ByteChars(50), vocab=WORDS, lower=True)
    asked = ["THE", "The", "the", "Cat", "<S>", "</S>", "<UNK>"]
    assert [upper.key(word)[1] for word in asked] == [2, 5, 3, 2, 0, 1, 2]
    assert [lower.key(word)[1] for word in asked] == [3, 3, 3, 4, 0, 1, 2]
    assert [lower.key(word)[0] for word in asked] == [upper.key(word)[0] for word in asked]


def test_in_lower_case_two_spellings_share_one_row_where_there_are_no_characters():
    batch = Indexer(chars=None, vocab=WORDS, lower=True).batch([["The", "THE", "the"]])
    assert batch.forward.tolist() == [[0, 1, 1, 1, 2]]
    assert batch.words.ids.tolist() == [0, 3, 1]


def test_a_character_table_cuts_a_word_before_it_is_looked_up_and_bytes_do_not():
    table = CharTable.count(["cat"], max_characters=5)
    assert Indexer(chars=table, vocab=WORDS).key("cats")[1] == 4
    assert Indexer(chars=ByteChars(5), vocab=WORDS).key("cats")[1] == 2


def test_no_sentences_are_a_batch_without_rows():
    batch = BYTES.batch([])
    assert batch.forward.shape == batch.backward.shape == (0, 0)
    assert batch.lengths.shape == (0,) and len(batch.words.chars) == 0


def test_arrays_are_of_64_bits():
    batch = Indexer(chars=ByteChars(50), vocab=WORDS).batch([["a"], []])
    arrays = batch.words.chars, batch.words.ids, batch.forward, batch.backward, batch.lengths
    assert {array.dtype for array in arrays} == {np.dtype(np.int64)}


@given(st.lists(st.integers(0, 50)), st.integers(1, 120))
def test_groups_by_length_hold_every_sentence_once_within_the_budget(lengths, budget):
    groups = list(by_length(lengths, budget))
    assert sorted(k for group in groups for k in group) == list(range(len(lengths)))
    for group in groups:
        assert group
        assert len(group) == 1 or sum(lengths[k] + 2 for k in group) <= budget


@given(st.lists(st.integers(0, 50)), st.integers(1, 120))
def test_groups_go_from_long_sentences_to_short_and_leave_no_room_for_the_next(lengths, budget):
    groups = list(by_length(lengths, budget))
    in_order = [lengths[k] for group in groups for k in group]
    assert in_order == sorted(lengths, reverse=True)
    for group, after in pairwise(groups):
        assert sum(lengths[k] + 2 for k in [*group, after[0]]) > budget


def test_a_sentence_longer_than_the_budget_stands_alone():
    assert list(by_length([3, 90, 2], budget=10)) == [[1], [0, 2]]


@given(st.lists(st.integers(0, 400)), st.integers(1, 120), st.integers(2, 8))
def test_long_sentences_go_some_at_a_time_within_a_bound(lengths, budget, rows):
    groups = list(by_length(lengths, budget, rows))
    assert sorted(k for group in groups for k in group) == list(range(len(lengths)))
    for group in groups:
        tokens = sum(lengths[k] + 2 for k in group)
        assert len(group) == 1 or tokens <= (budget if len(group) > rows else rows * budget)


def test_two_rows_of_long_sentences_go_together():
    assert list(by_length([90, 3, 95, 99, 2], budget=100, rows=2)) == [[3, 2], [0, 1], [4]]
    assert list(by_length([90, 3, 95, 99, 2], budget=100)) == [[3], [2], [0, 1], [4]]
