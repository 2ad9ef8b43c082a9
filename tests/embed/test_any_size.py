"""Sentences and words of any length: the same vectors as in one piece, in bounded memory."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import bilmo
import bilmo.embed.word_cache
import bilmo.net.run
from bilmo.embed.embedder import Embedder
from bilmo.ids.chars import CharTable
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store.bundle import Bundle

GRU = CellConfig(kind="gru", cells=8, project=False, cell_clip=None, projection_clip=None)
HAS_INT8 = "fbgemm" in torch.backends.quantized.supported_engines
PRECISIONS = ["float32", *(["int8"] if HAS_INT8 else [])]


def made(cell=None, chars=None, table=None):
    torch.manual_seed(0)
    chars = chars or CharsConfig(width=4, filters=((1, 8), (3, 8)), highways=1)
    config = bilmo.BiLMConfig(words=WordsConfig(chars=chars), cell=cell or CellConfig(cells=24), width=8)
    return Bundle(config, bilmo.BiLM(config).state_dict(), layout="test", chars=table)


def text(*lengths):
    random = np.random.default_rng(1)
    return [[f"w{n}" for n in random.integers(0, 50, length)] for length in lengths]


def whole(monkeypatch):
    monkeypatch.setattr(bilmo.net.run, "MIN_ROW_STEPS", 1 << 30)


def assert_close(found, expected, share=1e-5):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert np.abs(a - b).max(initial=0) <= share * np.abs(b).max(initial=1e-9)


@pytest.mark.parametrize(
    ("start", "precision"), [("settled", "float32"), *(("carry", precision) for precision in PRECISIONS)]
)
def test_5000_tokens_in_chunks_are_those_of_one_piece(monkeypatch, start, precision):
    sentences = text(5000)
    chunked = Embedder(made(), start=start, precision=precision)
    steps = []
    for direction, (first, second) in chunked._runner.network.stacks.items():
        counted = lambda x, *rest, first=first: steps.append(len(x)) or first(x, *rest)  # noqa: E731
        chunked._runner.network.stacks[direction] = [counted, second]
    found = [chunked.layers(sentences)[0], chunked.layers(text(3))[0]]  # the second goes on from the state of the first
    assert max(steps) <= 4096 and len(steps) == 6
    whole(monkeypatch)
    one_piece = Embedder(made(), start=start, precision=precision)
    assert_close(found, [one_piece.layers(sentences)[0], one_piece.layers(text(3))[0]])


@pytest.mark.parametrize("cell", [CellConfig(cells=24), GRU], ids=["lstm", "gru"])
@pytest.mark.parametrize("mix", ["all", (0,), (0, 1)], ids=str)
@pytest.mark.parametrize("start", ["settled", "zero", "carry"])
def test_rows_of_any_lengths_in_any_chunks_are_the_same(monkeypatch, cell, mix, start):
    calls = [text(7, 1, 0, 12, 5), text(2, 9), text(1, 1, 20, 4)]
    bundle = made(cell)
    whole(monkeypatch)
    elmo = Embedder(bundle, start=start)
    expected = [elmo.embed(call, mix=mix) for call in calls]
    for least in (1, 5):
        monkeypatch.setattr(bilmo.net.run, "MIN_ROW_STEPS", least)
        monkeypatch.setattr(bilmo.net.run, "CHUNK_STEPS", 1)
        elmo = Embedder(bundle, start=start)
        for call, vectors in zip(calls, expected, strict=True):
            assert_close(elmo.embed(call, mix=mix), vectors)


PEAK = """
import json, resource, sys
import torch
import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store.bundle import Bundle

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

chars = CharsConfig(width=4, filters=((1, 8),), highways=0)
config = bilmo.BiLMConfig(words=WordsConfig(chars=chars), cell=CellConfig(cells=16), width=512)
elmo = Embedder(Bundle(config, bilmo.BiLM(config).state_dict(), layout="test"), start="zero")
elmo.layers([["a"] * 300])
before = peak()
out = elmo.layers([["a"] * int(sys.argv[1])])[0]
print(json.dumps([peak() - before, out.nbytes]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units elsewhere")
def test_a_long_sentence_needs_the_memory_of_its_result_and_little_more():
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PEAK, "30000"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=one_thread)
    more, result = json.loads(run.stdout)
    assert result > 360e6
    assert more < result + 150e6  # in one piece 250 MB more


def test_a_word_of_very_many_characters_beside_short_ones(monkeypatch):
    table = CharTable.count(["abcdefgh"], max_characters=None)
    chars = CharsConfig(
        kind="unicode", rows=table.rows, width=4, filters=((1, 8), (3, 8)), highways=1, max_characters=None
    )
    elmo = Embedder(made(chars=chars, table=table))
    largest = []
    plain = elmo._runner.words._encoder
    monkeypatch.setattr(elmo._runner.words, "_encoder", lambda words: largest.append(words.chars.size) or plain(words))
    long = "abcdefgh" * 25_000
    sentence = ["ab", long, "", "c", *(f"a{k}" for k in range(600)), long + "a"]
    found = elmo.layers([sentence])[0]
    assert np.isfinite(found).all() and found.shape == (3, len(sentence), 16)
    assert max(largest) < 2 * 200_020  # alone, so computed twice, but never padded to the length of another
    words = {word: found[0, k] for k, word in enumerate(sentence)}
    for word in (long, "ab"):
        assert_close([elmo.layers([[word]])[0][0, 0]], [words[word]])
    bytes_too = Embedder(made())  # cut after 48 bytes, as ever
    a, b = bytes_too.layers([[long], [long[:48]]])
    assert_close([a], [b])


def test_long_words_count_in_what_the_cache_holds(monkeypatch):
    table = CharTable.count(["abcdefgh"], max_characters=None)
    chars = CharsConfig(kind="unicode", rows=table.rows, width=4, filters=((1, 8),), highways=0, max_characters=None)
    elmo = Embedder(made(chars=chars, table=table))
    monkeypatch.setattr(bilmo.embed.word_cache, "CACHE_BYTES", 100_000)
    for k in range(20):
        elmo.layers([["a" * (5000 + k)]])
        assert sum(len(characters) for characters, _ in elmo._runner.words._rows) < 12_000


SHAPES = """
import ctypes, torch, bilmo
from pathlib import Path
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store.bundle import Bundle

def megabytes():
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

words = WordsConfig(chars=CharsConfig(width=4, filters=((1, 8), (2, 8)), highways=1))
config = bilmo.BiLMConfig(words=words, cell=CellConfig(cells=256), width=64)
elmo = bilmo.Embedder(Bundle(config, bilmo.BiLM(config).state_dict(), layout="test"))
for rows in range(3, 240):
    elmo.layers([["a"]] * rows)
    if rows == 60:
        before = megabytes()
print(megabytes() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_batches_of_ever_new_sizes_do_not_fill_the_memory():
    bounds = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32", "LRU_CACHE_CAPACITY": "32"}  # as the command line sets them
    command = [sys.executable, "-c", SHAPES]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | bounds)
    assert float(done.stdout) < 64
