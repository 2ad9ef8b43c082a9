"""A biLM that is trained with a task starts every sentence as its Embedder does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bilmo.embed.embedder import Embedder
from bilmo.tasks import folder
from bilmo.tasks.classify.classifier import Classifier

from task_data import made, texts

TEXT = [["the", "red", "cat"], ["a"]]


@pytest.mark.parametrize("start", ["settled", "zero"])
def test_a_tuned_network_has_the_start_of_its_embedder(start, tmp_path):
    elmo = Embedder(made(1), start=start)
    task = Classifier(elmo, tune=True, tune_rate=1e-12, hidden=4, epochs=1).fit(*texts(8))
    tuned = task.network_.input.tuned
    with torch.no_grad():
        found = tuned(tuned.batch(TEXT)).values
    for n, (sentence, layers) in enumerate(zip(TEXT, elmo.layers(TEXT), strict=True)):
        assert np.allclose(found[:, n, : len(sentence)], layers, atol=1e-5)
    assert not any(".start." in name for name in task.network_.state_dict())
    folder.save(task, tmp_path / "task")
    some, _ = texts(8, seed=3)
    loaded: Any = folder.load(tmp_path / "task")
    assert np.allclose(loaded.predict_proba(some), task.predict_proba(some), atol=1e-5)
