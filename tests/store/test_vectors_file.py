"""Word vectors from every form of file, and files that are none."""

from __future__ import annotations

import gzip
import lzma
import struct
from pathlib import Path

import numpy as np
import pytest

from bilmo.errors import BilmoError, DamagedFile, TextError
from bilmo.store.vectors_file import Vectors, read

from old_models import cuts, flips, little_memory

WORDS = ["the", "Oslo", "naïve", "漢字", ".", "3"]
VALUES = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)


def glove(words=WORDS, values=VALUES, between=" ") -> bytes:
    rows = (between.join([word, *(repr(float(v)) for v in row)]) for word, row in zip(words, values, strict=True))
    return "".join(f"{row}\n" for row in rows).encode()


def word2vec(words=WORDS, values=VALUES) -> bytes:
    return f"{len(words)} {values.shape[1]}\n".encode() + glove(words, values)


def binary(words=WORDS, values=VALUES, end=b"\n") -> bytes:
    rows = (word.encode() + b" " + row.astype("<f4").tobytes() + end for word, row in zip(words, values, strict=True))
    return f"{len(words)} {values.shape[1]}\n".encode() + b"".join(rows)


FORMS = {
    "GloVe": glove(),
    "GloVe between tabs": glove(between="\t"),
    "GloVe with spaces at the ends": glove().replace(b"\n", b" \n"),
    "GloVe with carriage returns": glove().replace(b"\n", b"\r\n"),
    "GloVe without a last line end": glove()[:-1],
    "word2vec": word2vec(),
    "word2vec with spaces at the ends": word2vec().replace(b"\n", b" \n"),
    "word2vec binary": binary(),
    "word2vec binary without line ends": binary(end=b""),
}
PACKING = {"plain": bytes, "gz": gzip.compress, "xz": lzma.compress}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors"


@pytest.mark.parametrize("packing", PACKING)
@pytest.mark.parametrize("form", FORMS)
def test_every_file_format_gives_the_same_vectors(path, form, packing):
    path.write_bytes(PACKING[packing](FORMS[form]))
    found = read(path)
    assert found.words == WORDS
    assert found.values.dtype == np.float32
    assert np.array_equal(found.values, VALUES)


@pytest.mark.parametrize("form", [glove, word2vec])
def test_words_with_spaces_in_them(path, form):
    words = ["New York", ". . .", "at name@domain.com", "1 2", "x", "y"]
    if form is glove:
        words.reverse()  # without a header, the first line says how many numbers there are
    path.write_bytes(form(words))
    assert read(path).words == words


@pytest.mark.parametrize("form", [word2vec, binary])
@pytest.mark.parametrize("width", [1, 2, 3, 300, 3000])
def test_every_width(path, form, width):
    values = np.random.default_rng(1).normal(size=(6, width)).astype(np.float32)
    path.write_bytes(form(WORDS, values))
    assert np.array_equal(read(path).values, values)


@pytest.mark.parametrize("number", [b"0 1 ", b"\t\n\t\n", b"    ", b"9 e ", b"\n\n\n\n"], ids=repr)
def test_binary_numbers_that_look_like_text_are_still_binary(path, number):
    values = VALUES.copy()
    values[0, 0] = struct.unpack("<f", number)[0]
    path.write_bytes(binary(values=values))
    assert np.array_equal(read(path).values, values)


def test_a_word_that_occurs_twice_keeps_its_first_vector(path):
    for form in (glove, word2vec, binary):
        path.write_bytes(form(["a", "b", "a", "c", "b", "d"]))
        found = read(path)
        assert found.words == ["a", "b", "c", "d"]
        assert np.array_equal(found.values, VALUES[[0, 1, 3, 5]])


@pytest.mark.parametrize("form", FORMS)
def test_only_some_words(path, form):
    path.write_bytes(FORMS[form])
    found = read(path, only={"3", "the", "nowhere"})
    assert found.words == ["the", "3"]
    assert np.array_equal(found.values, VALUES[[0, 5]])
    with pytest.raises(TextError, match="has none of the requested words"):
        read(path, only={"nowhere"})


@pytest.mark.parametrize("form", FORMS)
def test_at_most_a_number_of_words(path, form):
    path.write_bytes(FORMS[form])
    assert read(path, most=2).words == WORDS[:2]
    assert read(path, most=100).words == WORDS
    assert read(path, only={"Oslo", ".", "3"}, most=2).words == ["Oslo", "."]


def test_numbers_of_unwanted_words_are_not_parsed(path):
    path.write_bytes(b"a 1 2\nb x y\n")
    assert read(path, only={"a"}).words == ["a"]


def test_bytes_that_are_not_text_become_a_replacement_character(path):
    path.write_bytes(b"na\xefve 1 2\nb 3 4\n")
    assert read(path).words == ["na\ufffdve", "b"]


# Tables


def test_a_table_has_the_marks_in_front():
    vocab, values = Vectors(WORDS, VALUES).table()
    assert vocab.words == ("<S>", "</S>", "<UNK>", *WORDS)
    assert values.dtype == np.float32
    assert np.array_equal(values[:2], np.zeros((2, 5), np.float32))
    assert np.allclose(values[2], VALUES.mean(axis=0))
    assert np.array_equal(values[3:], VALUES)


@pytest.mark.parametrize("unknown", ["<unk>", "<UNK>"])
def test_the_files_own_vector_for_unknown_words_is_used(unknown):
    words = ["a", unknown, "b", "c", "d", "e"]
    vocab, values = Vectors(words, VALUES).table()
    assert np.array_equal(values[2], VALUES[1])
    assert vocab.words == ("<S>", "</S>", "<UNK>", "a", *(["<unk>"] if unknown == "<unk>" else []), *"bcde")


def test_marks_of_the_file_and_words_that_do_not_fit_a_line_are_left_out():
    words = ["<S>", "a b", "", "</S>", "x\u3000", "c"]
    vocab, values = Vectors(words, VALUES).table()
    assert vocab.words == ("<S>", "</S>", "<UNK>", "c")
    assert np.array_equal(values[3], VALUES[5])
    assert np.array_equal(values[0], np.zeros(5))


def test_whether_words_are_in_lower_case_only():
    assert Vectors(["the", "3", "漢"], VALUES[:3]).lower
    assert not Vectors(["the", "Oslo"], VALUES[:2]).lower


# What is refused


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"", TextError, "begins with an empty line"),
        (b"\n", TextError, "begins with an empty line"),
        (b"word\n", TextError, "vector 1: 0 numbers after the word; it must have 1"),
        (b"a 1 2\nb 1\n", TextError, "vector 2: 1 numbers after the word; it must have 2"),
        (b"a 1 2\n\nb 1 2\n", TextError, "vector 2: 0 numbers after the word; it must have 2"),
        (b"a 1 2\nb 1 x\n", TextError, "vector 2: not all of the 2 values are numbers"),
        (b"a 1 nan\n", DamagedFile, "some values are not finite numbers"),
        (b"a 1 1e999\n", DamagedFile, "some values are not finite numbers"),
        (b"a 1 1e300\n", DamagedFile, "some values are not finite numbers"),
        (b"2 0\na\nb\n", TextError, "declares vectors of width 0; accepted: 1 to 100000"),
        (b"2 99999999999\na\n", TextError, "declares vectors of width 99999999999"),
        (word2vec().replace(b"6 5", b"7 5"), DamagedFile, "its first line declares 7 words, but the file has 6"),
        (word2vec().replace(b"6 5", b"5 5"), DamagedFile, "its first line declares 5 words, but the file has 6"),
        (word2vec().replace(b"6 5", b"6 6"), TextError, "vector 1: 5 numbers after the word; it must have 6"),
        (binary().replace(b"6 5", b"7 5"), DamagedFile, "no word where vector 7 of 7 should begin"),
        (binary()[:-3], DamagedFile, "ends within vector 6 of 6; the file is truncated"),
        (b"6 5\n", DamagedFile, "no word where vector 1 of 6 should begin"),
        (b"1 5\n" + b"x" * 20_000, DamagedFile, "no word where vector 1 of 1 should begin"),
        (binary(values=np.full((6, 5), np.inf, np.float32)), DamagedFile, "some values are not finite numbers"),
    ],
)
def test_files_without_vectors_are_refused(path, content, error, says):
    path.write_bytes(content)
    with pytest.raises(error, match=says) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_a_missing_file(path):
    with pytest.raises(TextError, match="there is no such file"):
        read(path)


def test_a_giant_number_of_words_in_the_header_allocates_nothing(path):
    path.write_bytes(binary().replace(b"6 5", b"99999999999 5"))
    with little_memory(), pytest.raises(DamagedFile, match="no word where vector 7 of 99999999999 should begin"):
        read(path)


@pytest.mark.parametrize("packing", ["gz", "xz"])
def test_a_truncated_compressed_file_is_damaged(path, packing):
    good = PACKING[packing](word2vec(WORDS * 9, np.tile(VALUES, (9, 1))))
    for length in range(10, len(good), 7):
        path.write_bytes(good[:length])
        with pytest.raises(DamagedFile, match="unpacking failed"):
            read(path)


@pytest.mark.parametrize("form", FORMS)
def test_truncated_and_flipped_files_are_read_or_refused(path, form):
    for bad in (*cuts(FORMS[form]), *flips(FORMS[form], 100)):
        path.write_bytes(bad)
        try:
            read(path)
        except BilmoError as error:
            assert str(path) in str(error)


def test_the_words_are_checked_for_upper_case_only_once():
    """A network asks for every word of its vocabulary."""

    class Counted(list[str]):
        passes = 0

        def __iter__(self):
            self.passes += 1
            return super().__iter__()

    words = Counted(["a", "b"])
    found = Vectors(words, VALUES[:2])
    assert all(found.lower for _ in range(3))
    assert words.passes == 1


@pytest.mark.parametrize("header", [b"9" * 5000 + b" 5", b"6 " + b"9" * 5000, b"9" * 19 + b" 5"])
def test_a_header_of_many_digits_is_refused(tmp_path, header):
    (tmp_path / "v.txt").write_bytes(header + b"\n" + glove())
    with pytest.raises(TextError, match="its first line has numbers of more than 18 digits"):
        read(tmp_path / "v.txt")


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path):
    with gzip.open(tmp_path / "v.txt.gz", "wb") as file:
        file.write(glove())
        for _ in range(80):
            file.write(b"1 " * (1 << 19))
    with little_memory(), pytest.raises(TextError, match="line 7: has more than 10,000,000 bytes without a line end"):
        read(tmp_path / "v.txt.gz")
