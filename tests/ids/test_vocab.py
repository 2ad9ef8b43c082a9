import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.errors import VocabError
from bilmo.ids.vocab import MARKS, Vocab

from strategies import texts

TEXT = [["the", "cat", "the", "dog"], ["cat", "the", "ant"], [], ["dog", "Zoe"]]


def test_the_marks_come_first_in_their_order():
    vocab = Vocab.count(TEXT)
    assert vocab.words[:3] == ("<S>", "</S>", "<UNK>")
    assert (vocab.begin, vocab.end, vocab.unknown) == (0, 1, 2)


def test_words_are_counted_by_falling_count_and_ties_by_code_point():
    assert Vocab.count(TEXT).words[3:] == ("the", "cat", "dog", "Zoe", "ant")


def test_rare_words_are_left_out():
    assert Vocab.count(TEXT, min_count=2).words[3:] == ("the", "cat", "dog")
    assert Vocab.count(TEXT, min_count=4).words == MARKS


@pytest.mark.parametrize("most", [0, 1, 2, 5, 99])
def test_a_greatest_number_of_words_keeps_the_most_frequent_beside_the_marks(most):
    assert Vocab.count(TEXT, max_words=most).words == (*MARKS, *("the", "cat", "dog", "Zoe", "ant")[:most])


def test_a_greatest_number_and_a_least_count_both_hold():
    assert Vocab.count(TEXT, min_count=2, max_words=2).words[3:] == ("the", "cat")
    assert Vocab.count(TEXT, min_count=3, max_words=2).words[3:] == ("the",)


def test_marks_in_the_text_are_not_counted_twice():
    vocab = Vocab.count([["<S>", "a", "</S>", "<UNK>", "<UNK>", "<UNK>"]])
    assert vocab.words == (*MARKS, "a")


def test_a_word_that_one_line_cannot_hold_stays_unknown():
    odd = ["", " ", "a b", "a\n", "\ta", "\u3000", "x\u2028y", "x\x85y", "\x1c"]
    vocab = Vocab.count([[*odd, "fine", "U+0020", "a\u0301"]])
    assert set(vocab.words[3:]) == {"fine", "U+0020", "a\u0301"}
    assert vocab.ids(odd) == [2] * len(odd)


@given(texts())
def test_a_counted_vocabulary_survives_a_file_of_lines(text):
    words = Vocab.count(text).words
    assert tuple("\n".join(words).splitlines()) == words


@given(texts(), st.randoms())
def test_the_same_words_in_another_order_have_the_same_ids(text, random):
    words = [word for sentence in text for word in sentence]
    assert Vocab.count([random.sample(words, len(words))]).words == Vocab.count(text).words


@given(texts())
def test_every_counted_word_finds_its_own_place(text):
    vocab = Vocab.count(text)
    assert vocab.ids(vocab.words) == list(range(len(vocab)))
    assert all(word in vocab for word in vocab.words)


def test_words_have_the_ids_of_their_places_and_others_that_of_unknown():
    vocab = Vocab(["a", "<UNK>", "</S>", "b", "<S>"])
    assert vocab.ids(["b", "a", "c", "<S>", "</S>", "<UNK>", "A"]) == [3, 0, 1, 4, 2, 1, 1]
    assert (vocab.begin, vocab.end, vocab.unknown) == (4, 2, 1)
    assert len(vocab) == 5
    assert "b" in vocab and "c" not in vocab


def test_of_a_word_that_stands_twice_the_last_id_counts_and_the_others_stay_in_place():
    vocab = Vocab([*MARKS, "a", "b", "a", "c"])
    assert vocab.ids(["a", "b", "c"]) == [5, 4, 6]
    assert len(vocab) == 7
    assert vocab.words[3] == "a"


def test_a_blank_entry_keeps_its_id_and_no_word_finds_it():
    vocab = Vocab([*MARKS, "", "a", ""])
    assert vocab.ids(["", "a"]) == [2, 4]
    assert len(vocab) == 6
    assert "" not in vocab


@pytest.mark.parametrize("missing", [["<S>"], ["</S>", "<UNK>"], list(MARKS)], ids=" ".join)
def test_a_vocabulary_without_its_marks_is_refused_by_their_names(missing):
    words = [*(mark for mark in MARKS if mark not in missing), "a"]
    with pytest.raises(VocabError, match=rf"of {len(words)} words lacks {' '.join(missing)}\. Each of <S> </S> <UNK>"):
        Vocab(words)


def test_marks_in_another_case_are_not_the_marks():
    with pytest.raises(VocabError, match=r"lacks <S> </S> <UNK>\."):
        Vocab(["<s>", "</s>", "<unk>"])
