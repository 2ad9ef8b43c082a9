"""The comparison of models with different vocabularies counts the same words for each of them."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest
import torch

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.ids.vocab import Vocab
from bilmo.net.config import CellConfig, TableConfig, WordsConfig
from bilmo.net.softmax import Softmax
from bilmo.store.bundle import Bundle

TEXT = [["a", "b", "x"], ["c", "a"]]


@pytest.fixture
def unseen():
    path = Path(__file__).parents[2] / "benchmarks" / "unseen.py"
    spec = importlib.util.spec_from_file_location("unseen_benchmark", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model(seed: int, words: list[str]) -> Embedder:
    vocab = Vocab(["<S>", "</S>", "<UNK>", *words])
    torch.manual_seed(seed)
    config = bilmo.BiLMConfig(
        words=WordsConfig(table=TableConfig(rows=len(vocab), width=6), project=False), cell=CellConfig(cells=8), width=6
    )
    softmax = {f"softmax.{name}": value for name, value in Softmax(len(vocab), 6).state_dict().items()}
    bundle = Bundle(config, bilmo.BiLM(config).state_dict() | softmax, layout="test", vocab=vocab)
    return Embedder(bundle, start="zero")


def test_only_words_that_all_models_know_are_counted(unseen):
    models = {"one": model(0, ["a", "b"]), "two": model(1, ["a", "c", "x"])}  # both know only "a"
    cells = [cell.strip() for cell in unseen.row("made", models, TEXT).strip("|").split("|")]
    assert cells[:3] == ["made", "2", "40.0%"] and cells[5] == "20.0%"
    for elmo, shown in zip(models.values(), (cells[3:5], cells[6:8]), strict=True):
        first, second = elmo.log_probs(TEXT)
        forward, backward = (first[0][0] + second[0][1]) / 2, (first[1][1] + second[1][2]) / 2
        assert [float(cell) for cell in shown] == pytest.approx([math.exp(-forward), math.exp(-backward)], abs=0.06)


def test_the_table_names_models_and_unknown_words(unseen, tmp_path, monkeypatch, capsys):
    (tmp_path / "unseen").mkdir()
    (tmp_path / "unseen" / "made.txt").write_text("a b x\n\nc a\n", encoding="utf-8")
    for name, words in (("one", ["a", "b"]), ("two", ["a", "c"])):
        model(0, words).save(tmp_path / name)
    monkeypatch.setattr(unseen, "RESULTS", tmp_path)
    unseen.main([str(tmp_path / "unseen"), str(tmp_path / "one"), str(tmp_path / "two")])
    page = (tmp_path / "unseen.md").read_text(encoding="utf-8")
    assert "one: unknown | forward | backward" in page and "| made | 2 | 40.0% |" in page
    assert capsys.readouterr().out.startswith("| made | 2 |")
