"""How good written texts are: BLEU and chrF by sacrebleu, ROUGE by rouge-score.

Knows: the two packages. Blind to: networks, files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import regex

from bilmo.errors import need
from bilmo.tasks.core.measure import Score

EXTRA = "generate"
ROUGE = ("rouge1", "rouge2", "rougeL")
NAMES = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
HAN = regex.compile(r"\p{Han}")
CHINESE_TOKEN = regex.compile(r"\p{Han}|[^\W_]+")


def is_chinese(texts: Sequence[str]) -> bool:
    """Whether at least a fifth of the letters are Chinese."""
    text = "\n".join(texts)
    return 5 * len(HAN.findall(text)) > len(regex.findall(r"\p{L}", text))


def need_bleu() -> Any:
    """The module with the measures of translations."""
    return need("sacrebleu.metrics", extra=EXTRA, purpose="Measuring translations (BLEU)")


def need_rouge() -> Any:
    """The module with the measures of summaries."""
    return need("rouge_score.rouge_scorer", extra=EXTRA, purpose="Measuring summaries (ROUGE)")


def bleu(true: Sequence[str], predicted: Sequence[str], *, chinese: bool = False, lower: bool = False) -> Score:
    """BLEU and chrF of all texts together, with the signatures that say how they were computed."""
    metrics = need_bleu()
    measures = [metrics.BLEU(tokenize="zh" if chinese else "13a", lowercase=lower), metrics.CHRF()]
    if not true:
        return Score("BLEU", 0.0, [("chrF", 0.0)], [], {}, percent=True)
    values = [min(1.0, measure.corpus_score(list(predicted), [list(true)]).score / 100) for measure in measures]
    signatures = [
        f"{name}|{measure.get_signature()}" for name, measure in zip(("BLEU", "chrF2"), measures, strict=True)
    ]
    return Score("BLEU", values[0], [("chrF", values[1])], [], {}, percent=True, notes=signatures)


def rouge(true: Sequence[str], predicted: Sequence[str], *, chinese: bool = False) -> Score:
    """ROUGE-L, ROUGE-1 and ROUGE-2: mean F1 over all texts, in words as they are, or in Chinese characters."""
    found = rouge_values(true, predicted, chinese=chinese)
    details = [(NAMES[name], found[name]) for name in ("rouge1", "rouge2")]
    words = "characters" if chinese else "words without stemming"
    return Score("ROUGE-L", found["rougeL"], details, [], {}, percent=True, notes=[f"ROUGE: mean F1, {words}"])


def rouge_values(true: Sequence[str], predicted: Sequence[str], *, chinese: bool) -> dict[str, float]:
    """The mean F1 of each kind of ROUGE."""
    tokenizer = _ChineseTokens() if chinese else None
    scorer = need_rouge().RougeScorer(ROUGE, use_stemmer=False, tokenizer=tokenizer)
    rows = [scorer.score(a, b) for a, b in zip(true, predicted, strict=True)]
    return {name: sum(row[name].fmeasure for row in rows) / max(1, len(rows)) for name in ROUGE}


class _ChineseTokens:
    """Chinese characters, and words of other scripts."""

    def tokenize(self, text: str) -> list[str]:
        return [found[0] for found in CHINESE_TOKEN.finditer(text.lower())]
