"""Small models of our own in the old layouts give the vectors that the old systems gave for them.

scripts/make_parity_files.py wrote the files; they are part of the tree, so these tests run in every clone.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import bilmo
from bilmo.formats import open as layouts

PARITY = Path(__file__).parents[1] / "parity"
ROWS = 3
CLOSE = 1e-5


def expected(part: str, start: str) -> tuple[list[list[str]], list[np.ndarray]]:
    """The sentences, and the vectors (layers, tokens, width) that the old system gave for each."""
    sentences = json.loads((PARITY / part / "sentences.json").read_text(encoding="utf-8"))
    with np.load(PARITY / part / "vectors.npz") as file:
        return sentences, [file[f"{start}{k}"] for k in range(len(sentences))]


def assert_close(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert [vectors.shape for vectors in found] == [vectors.shape for vectors in wanted]
    assert max(np.abs(a - b).max() for a, b in zip(found, wanted, strict=True)) < CLOSE


@pytest.mark.parametrize("part", ["allennlp", "bilmtf", "manylangs"])
def test_every_layer_equals_that_of_the_old_system(part):
    sentences, vectors = expected(part, "zero")
    assert_close(bilmo.load(PARITY / part, start="zero").layers(sentences), vectors)


@pytest.mark.parametrize("part", ["allennlp", "bilmtf"])
def test_carried_states_give_the_vectors_of_the_old_system(part):
    sentences, vectors = expected(part, "carry")
    elmo = bilmo.load(PARITY / part, start="carry")
    found = [layers for at in range(0, len(sentences), ROWS) for layers in elmo.layers(sentences[at : at + ROWS])]
    assert_close(found, vectors)
    zero = expected(part, "zero")[1]
    assert max(np.abs(a - b).max() for a, b in zip(vectors, zero, strict=True)) > 100 * CLOSE  # the states matter


@pytest.mark.parametrize("part", ["allennlp", "bilmtf"])
def test_a_converted_model_still_gives_the_vectors_of_the_old_system(part, tmp_path):
    sentences, vectors = expected(part, "zero")
    for to in ("bilmo", "allennlp"):
        layouts.write(layouts.read(PARITY / part), tmp_path / to, to)
        assert_close(bilmo.load(tmp_path / to, start="zero").layers(sentences), vectors)


def test_the_checkpoint_brings_its_softmax():
    bundle = layouts.read(PARITY / "bilmtf")
    assert bundle.has_softmax
    assert "not used" in " ".join(bundle.notes)  # the slots of the optimizer


def test_log_probabilities_equal_those_of_the_old_system():
    sentences, _ = expected("bilmtf", "zero")
    wanted = json.loads((PARITY / "bilmtf" / "log_probs.json").read_text(encoding="utf-8"))
    found = bilmo.load(PARITY / "bilmtf", start="zero").log_probs(sentences)
    for (forward, backward), entry in zip(found, wanted, strict=True):
        np.testing.assert_allclose(forward[: len(entry["forward"])], entry["forward"], atol=CLOSE)
        np.testing.assert_allclose(backward[-len(entry["backward"]) :], entry["backward"], atol=CLOSE)
