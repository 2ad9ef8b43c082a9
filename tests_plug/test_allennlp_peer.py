"""The drop-in against AllenNLP itself, on random weights of two published shapes, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import bilmo
from bilmo.formats import open as layouts
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.plug.allennlp import Elmo, _ElmoCharacterEncoder, batch_to_ids
from bilmo.store.bundle import Bundle
from peer_allennlp import outputs

SHAPES = {"small": (1024, 128, 1), "original": (4096, 512, 2)}
"""Cells, width and highways of the models elmo-small and elmo-original."""


@pytest.mark.parametrize("shape", SHAPES)
def test_vectors_equal_those_of_allennlp(shape, tmp_path):
    cells, width, highways = SHAPES[shape]
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(highways=highways)), cell=CellConfig(cells=cells), width=width
    )
    torch.manual_seed(5)
    bundle = Bundle(config, bilmo.BiLM(config).state_dict(), layout="made for a test")
    layouts.write(bundle, tmp_path / "model", "allennlp")
    script = Path(__file__).with_name("peer_allennlp.py")
    subprocess.run([sys.executable, script, tmp_path / "model", tmp_path / "out.npz"], check=True)
    files = tmp_path / "model" / "options.json", tmp_path / "model" / "weights.hdf5"
    found = outputs(Elmo, _ElmoCharacterEncoder, batch_to_ids, *files)
    with np.load(tmp_path / "out.npz") as expected:
        assert found.keys() == set(expected) - {"ids"}
        for name, values in found.items():
            np.testing.assert_allclose(values, expected[name], atol=1e-5, rtol=1e-5, err_msg=name)
    files[1].unlink()  # hundreds of megabytes
