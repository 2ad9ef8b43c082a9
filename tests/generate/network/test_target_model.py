"""A language model of the target language in the decoder: forward only, and the same in training and in a search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import bilmo
from bilmo.errors import ConfigError, WeightsError
from bilmo.generate.data.target_text import JOIN
from bilmo.generate.folder import load
from bilmo.generate.network.target_model import TargetModel, forward_only, load_forward
from bilmo.generate.translator import Translator
from bilmo.store import model_folder
from bilmo.store.bundle import Bundle
from bilmo.tasks.core.estimator import run_items
from bilmo.tasks.core.events import LayersComputed
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.core.task_folder import save

from generate_data import sentences
from task_data import made

SMALL = {"hidden": 16, "target_width": 16, "word_width": 8, "rate": 0.02, "epochs": 2}


def test_the_forward_direction_alone_computes_the_same_layers(tmp_path):
    bundle = made(0)
    both, forward = bilmo.Embedder(bundle), bilmo.Embedder(forward_only(bundle))
    assert not any("backward" in name for name in forward.bundle.weights)
    for a, b in zip(both.layers([["der", "Hund"], ["."]]), forward.layers([["der", "Hund"], ["."]]), strict=True):
        np.testing.assert_allclose(a[..., :8], b, atol=1e-6)


@torch.no_grad()
def test_word_by_word_it_reads_what_it_reads_at_once(tmp_path):
    target = TargetModel(bilmo.Embedder(forward_only(made(0))), tmp_path)
    texts = [["der", f"{JOIN}.", "Hund"], ["ein", "rote", "Kater"], []]
    taught = target.taught(texts, 4)  # (L+1, B, T, D)
    assert taught.shape == (3, 3, 4, 8) and not taught[:, :, 0].any() and not taught[:, 2].any()
    rows = target.rows(3)
    rows.keep(torch.tensor([1, 0]))
    for t in range(3):
        read = rows.read([texts[1][t], texts[0][t]])
        torch.testing.assert_close(read, taught[:, [1, 0], t + 1], atol=1e-3, rtol=1e-3)
    rows.keep(torch.tensor([0, 0, 1]))
    again = rows.read(["x", "x", "x"])
    torch.testing.assert_close(again[:, 0], again[:, 1])


def test_it_never_sees_words_that_are_not_written_yet(tmp_path):
    target = TargetModel(bilmo.Embedder(forward_only(made(0))), tmp_path)
    first, second = target.taught([["der", "Hund", "sah"]], 4), target.taught([["der", "Hund", "dann"]], 4)
    assert torch.equal(first[:, :, :3], second[:, :, :3]) and not torch.equal(first[:, :, 3], second[:, :, 3])


def test_a_translator_with_a_target_model(tmp_path, monkeypatch):
    model_folder.write(made(1), tmp_path / "target")
    monkeypatch.chdir(tmp_path)
    elmo = bilmo.Embedder(made(0))
    task = Translator(elmo, target_model="target", cache=tmp_path / "cache", **SMALL)
    events = list(task.events(Dataset(*sentences(30))))
    assert sum(isinstance(event, LayersComputed) for event in events) == 2  # of sources, and of targets
    network = task.network_
    results = task.hypotheses(sentences(3)[0], beam=4, best=3)
    for item, found in zip(task.prepared_.items(sentences(3)[0]), results, strict=True):
        for one in found:
            given = run_items(network, [replace(item, target=one.tokens)], network.head.log_probabilities)
            assert sum(given[0]) == pytest.approx(one.log_probability, abs=1e-2)
    save(task, tmp_path / "out")
    monkeypatch.chdir("/")
    again = load(tmp_path / "out", elmo=elmo)
    assert again.predict(sentences(5)[0]) == task.predict(sentences(5)[0])
    (tmp_path / "target").rename(tmp_path / "old")
    model_folder.write(made(2), tmp_path / "target")
    with pytest.raises(WeightsError, match="is not the one that this task was fitted with"):
        load(tmp_path / "out", elmo=elmo)


def test_models_that_cannot_be_used_are_refused(tmp_path):
    bundle = made(0)
    weights = {name: value for name, value in bundle.weights.items() if not name.startswith("forward_stack.")}
    backward = Bundle(replace(bundle.config, directions=("backward",)), weights, layout="made for a test")
    model_folder.write(backward, tmp_path / "backward")
    with pytest.raises(ConfigError, match="the target model has no forward direction"):
        load_forward(str(tmp_path / "backward"))
    elmo = bilmo.Embedder(bundle)
    chinese = (["a cat", "a dog"] * 5, ["一只猫在这里", "一只狗在那里"] * 5)
    with pytest.raises(ConfigError, match=r"target model en knows only \d+% of the (words|characters) of the targets"):
        Translator(elmo, target_model="en", **SMALL).fit(*chinese)
