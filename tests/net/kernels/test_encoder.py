"""The word encoder prepared for inference gives what it gave before, for words of every length."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo.net.kernels.encoder
import bilmo.net.words
from bilmo.ids.batch import Indexer
from bilmo.ids.chars import ByteChars, CharTable
from bilmo.net.bilm import BiLM
from bilmo.net.config import BiLMConfig, CellConfig, CharsConfig, WordsConfig
from bilmo.net.words import PreparedWords

HAS_INT8 = "fbgemm" in torch.backends.quantized.supported_engines
FILTERS = ((1, 3), (2, 5), (7, 6))
words = st.lists(st.text(max_size=60), min_size=1, max_size=9)


def encoder(kind="bytes", activation="relu", max_characters: int | None = 20, rows=261):
    torch.manual_seed(0)
    chars = CharsConfig(
        kind=kind, rows=rows, width=4, filters=FILTERS, activation=activation, max_characters=max_characters
    )
    config = BiLMConfig(words=WordsConfig(chars=chars, highways=1), cell=CellConfig(cells=24), width=8)
    return BiLM(config).words.eval()


def prepared_words(plain, precision):
    with torch.no_grad():
        return PreparedWords(plain, precision)


def given_words(words, max_characters: int | None = 20, table=None):
    indexer = Indexer(table or ByteChars(max_characters), None, widest_filter=7)
    return indexer.words([indexer.key(word) for word in words])


@pytest.fixture(scope="module", params=["relu", "tanh"])
def both(request):
    """An encoder as it is trained, and the same prepared."""
    plain = encoder(activation=request.param)
    return plain, prepared_words(plain, "float32")


@settings(max_examples=40)
@given(words=words)
def test_prepared_words_are_those_of_the_convolutions(both, words):
    plain, prepared = both
    batch = given_words(words)
    with torch.no_grad():
        torch.testing.assert_close(prepared(batch), plain(batch), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("kind", ["bytes", "unicode"])
def test_a_word_of_any_length_is_the_same_in_pieces(monkeypatch, kind, precision):
    if precision == "int8" and not HAS_INT8:
        pytest.skip("this torch does not multiply in eight bits here")
    table = CharTable.count(["abcdefgh"], max_characters=None) if kind == "unicode" else None
    one = prepared_words(encoder(kind, max_characters=None, rows=table.rows if table else 261), precision)
    long = "".join(np.random.default_rng(1).choice(list("abcdefghz"), 200))
    batch = given_words([long], None, table)
    with torch.no_grad():
        whole = one(batch)
        for size in (3, 7, 100, 195, 202, 203, 209):
            monkeypatch.setattr(bilmo.net.words, "CHUNK_CHARACTERS", size)
            torch.testing.assert_close(one(batch), whole, atol=2e-6, rtol=1e-5)
        for module in (bilmo.net.kernels.encoder, bilmo.net.words):
            monkeypatch.setattr(module, "CHUNK_ACTIVATIONS", 50)
        torch.testing.assert_close(one(batch), whole, atol=2e-6, rtol=1e-5)


@pytest.mark.skipif(not HAS_INT8, reason="this torch does not multiply in eight bits here")
@pytest.mark.parametrize("kind", ["bytes", "unicode"])
def test_in_eight_bits_a_word_is_near_and_the_same_beside_any_other(kind):
    table = CharTable.count(["abcdefghij"], max_characters=20) if kind == "unicode" else None
    plain = encoder(kind, rows=table.rows if table else 261)
    prepared = prepared_words(plain, "int8")
    some = ["a", "", "abc", "jihgfedcba", "bb" * 12, *(f"a{k}" for k in range(40))]
    with torch.no_grad():
        expected, found = plain(given_words(some, 20, table)), prepared(given_words(some, 20, table))
        assert torch.cosine_similarity(found, expected).min() > 0.999
        assert not torch.equal(found, expected)
        for k, word in enumerate(some[:6]):
            assert torch.equal(prepared(given_words([word], 20, table))[0], found[k])
