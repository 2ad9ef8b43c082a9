"""The benchmark of translations and summaries: that it records, resumes, and writes its table."""

from __future__ import annotations

import importlib.util
import json
import lzma
import sys
from pathlib import Path

import pytest

from generate_data import news, sentences

PLACE = Path(__file__).parents[2] / "benchmarks" / "generate.py"
TINY = {"hidden": 8, "target_width": 8, "word_width": 8, "rate": 0.02, "epochs": 1}


@pytest.fixture
def benchmark(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("generate_benchmark", PLACE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "generate_benchmark", module)
    spec.loader.exec_module(module)
    (tmp_path / "multi30k").mkdir()
    (tmp_path / "wikinews").mkdir()
    (tmp_path / "results").mkdir()
    for name, ending, number in (("train", ".xz", 40), ("val", "", 6), ("test_2016_flickr", "", 6)):
        for language, texts in zip(("en", "de"), sentences(number, seed=number), strict=True):
            opened = lzma.open if ending else open
            with opened(tmp_path / "multi30k" / f"{name}.{language}{ending}", "wt", encoding="utf-8") as file:
                file.write("".join(f"{text}\n" for text in texts))
    for name, number in (("train", 40), ("dev", 5), ("test", 6)):
        rows = [{"paras": paras, "title": title} for paras, title in zip(*news(number), strict=True)]
        with lzma.open(tmp_path / "wikinews" / f"{name}.jsonl.xz", "wt", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(module, "DATA", tmp_path)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    questions = [module.Question(name, name.split("-")[0], 2, 2, TINY) for name in ("multi30k-10", "wikinews")]
    monkeypatch.setattr(module, "QUESTIONS", tuple(questions))
    return module


def test_outcomes_are_recorded_once_and_shown_in_a_table(benchmark, model, tmp_path, capsys):
    given = [str(model), "--variants", "words,elmo", "--work", str(tmp_path / "runs")]
    benchmark.main([*given, "--only", "multi30k-10"])
    log = tmp_path / "results" / "generate.jsonl"
    first = log.read_text(encoding="utf-8")
    assert len(first.splitlines()) == 4 and "epoch 1" in capsys.readouterr().out
    benchmark.main(given)
    second = log.read_text(encoding="utf-8")
    assert second.startswith(first) and len(second.splitlines()) == 8
    assert "multi30k-10-words-1" not in "".join(
        line for line in capsys.readouterr().out.splitlines() if "epoch" in line
    )
    page = (tmp_path / "results" / "generate.md").read_text(encoding="utf-8")
    assert page.count("\n| words |") == 2 and page.count("\n| elmo |") == 2
    assert "## multi30k-10" in page and "ROUGE-L of the first sentence" in page
    found = json.loads(second.splitlines()[0])["found"]
    assert found["words per second, beam 5"] > 0 and 0 <= found["BLEU, lower-cased and tokenized"] <= 1


def test_a_slice_records_nothing(benchmark, model, tmp_path):
    given = ["--variants", "static", "--work", str(tmp_path / "runs"), "--examples", "12", "--seeds", "1"]
    benchmark.main([str(model), *given, "--only", "wikinews"])
    assert not (tmp_path / "results" / "generate.jsonl").exists()


def test_bleu_of_lower_cased_words(benchmark):
    assert benchmark.tokenized_bleu(["Ein Mann, ein Hund."], ["ein mann , ein hund ."]) == pytest.approx(1)
