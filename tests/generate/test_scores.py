"""Measures of written texts, against the packages' own functions and by hand."""

from __future__ import annotations

import pytest
import sacrebleu

from bilmo.errors import MissingExtra
from bilmo.generate import scores

TRUE = ["Ein Mann fährt ein Fahrrad.", "Zwei Hunde spielen im Schnee."]
FOUND = ["Ein Mann fährt Fahrrad.", "Zwei Hunde spielen mit Schnee."]


def test_bleu_is_that_of_sacrebleu():
    found = scores.bleu(TRUE, FOUND)
    assert found.value * 100 == pytest.approx(sacrebleu.corpus_bleu(FOUND, [TRUE]).score)
    assert dict(found.details)["chrF"] * 100 == pytest.approx(sacrebleu.corpus_chrf(FOUND, [TRUE]).score)
    assert "tok:13a" in found.notes[0] and "version:" in found.notes[1]
    assert scores.bleu(TRUE, TRUE).value == 1 and scores.bleu([], []).value == 0
    assert scores.bleu(["A B C D"], ["a b c d"], lower=True).value == 1


def test_chinese_is_measured_in_characters():
    true, found = ["我在北京学习语言"], ["我在北京学习汉语"]
    assert scores.is_chinese(true) and not scores.is_chinese(TRUE)
    value = scores.bleu(true, found, chinese=True)
    assert "tok:zh" in value.notes[0] and value.value * 100 == pytest.approx(
        sacrebleu.corpus_bleu(found, [true], tokenize="zh").score
    )
    rouge = scores.rouge(true, found, chinese=True)  # 8 characters each; 7 in common, all of them in order
    assert dict(rouge.details)["ROUGE-1"] == pytest.approx(7 / 8)
    assert dict(rouge.details)["ROUGE-2"] == pytest.approx(5 / 7)
    assert rouge.value == pytest.approx(7 / 8)


def test_rouge_by_hand():
    found = scores.rouge(["the cat sat on the mat"], ["The cat sat!"])
    assert dict(found.details)["ROUGE-1"] == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert dict(found.details)["ROUGE-2"] == pytest.approx(2 * 1 * 0.4 / 1.4)
    assert found.name == "ROUGE-L" and found.value == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert scores.rouge([], []).value == 0


def test_a_missing_package_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sacrebleu.metrics", None)
    with pytest.raises(MissingExtra, match=r"pip install 'bilmo\[generate\]'"):
        scores.bleu(TRUE, FOUND)
