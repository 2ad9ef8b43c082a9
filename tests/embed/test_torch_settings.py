"""Embedding neither depends on torch's global settings nor changes them."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

import bilmo
from bilmo.ids.vocab import MARKS, Vocab
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.net.softmax import Softmax
from bilmo.store.bundle import Bundle

TEXT = [[f"word{n % 90}" for n in range(200)], ["a", "cat"], []]

EMBED = """
import pickle, sys
import torch
import bilmo

bundle, text = pickle.load(open(sys.argv[1], "rb"))
random = torch.get_rng_state()
exec(sys.argv[3])
found = []
for precision in ("float32", "int8"):
    elmo = bilmo.Embedder(bundle, precision=precision)
    for mix in ("all", "mean", "top"):
        found += elmo.embed(text, mix=mix)
        found += elmo.embed(text, mix=mix)  # from the cache
    found += elmo.log_probs(text)
assert torch.equal(random, torch.get_rng_state()), "the random state has changed"
pickle.dump(found, open(sys.argv[2], "wb"))
"""


@pytest.fixture(scope="module")
def bundle():
    torch.manual_seed(0)
    words = WordsConfig(chars=CharsConfig(width=4, filters=((1, 16), (2, 16)), highways=1))
    config = bilmo.BiLMConfig(words=words, cell=CellConfig(cells=64), width=32)
    softmax = {f"softmax.{name}": value for name, value in Softmax(5, 32).state_dict().items()}
    weights = bilmo.BiLM(config).state_dict() | softmax
    return Bundle(config, weights, layout="test", vocab=Vocab((*MARKS, "a", "cat")))


def embedded(bundle: Bundle, folder, setting: str) -> list[np.ndarray]:
    """The vectors that a new process with these settings computes."""
    (folder / "given").write_bytes(pickle.dumps((bundle, TEXT)))
    command = [sys.executable, "-c", EMBED, str(folder / "given"), str(folder / "found"), setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: list[np.ndarray] = pickle.loads((folder / "found").read_bytes())
    return found


@pytest.fixture(scope="module")
def expected(bundle, tmp_path_factory):
    return embedded(bundle, tmp_path_factory.mktemp("plain"), "")


def test_loading_and_embedding_leave_the_random_state_as_it_was(expected):
    assert all(vectors.dtype == np.float32 for vectors in expected)


@pytest.mark.parametrize("setting", ["torch.set_default_dtype(torch.float64)", "torch.set_default_device('meta')"])
def test_torch_defaults_change_no_vector(bundle, expected, tmp_path, setting):
    found = embedded(bundle, tmp_path, setting)
    assert len(found) == len(expected)
    assert all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
