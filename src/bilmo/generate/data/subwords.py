"""Target text as subwords: frequent words whole, others in parts, learned from the targets (byte pair encoding).

Knows: tokenizers. Blind to: networks, files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bilmo.errors import need

SPACE = "▁"
"""A space in a subword."""
UNKNOWN = "<unk>"
"""A character that did not occur in the training text."""


def train_subwords(texts: Iterable[str], size: int) -> str:
    """Learn at most `size` subwords; the result is JSON, the same for the same texts."""
    tokenizers = _package()
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token=UNKNOWN))
    spaces, marks = tokenizers.pre_tokenizers.Metaspace(replacement=SPACE), tokenizers.pre_tokenizers.Punctuation()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([spaces, marks])
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, special_tokens=[UNKNOWN], show_progress=False)
    made.train_from_iterator((_one_line(text) for text in texts), trainer)
    found: str = made.to_str()
    return found


class Subwords:
    """Text to subwords and back."""

    def __init__(self, learned: str) -> None:
        """`learned` is what `train_subwords` returned."""
        self._tokenizer: Any = _package().Tokenizer.from_str(learned)

    def tokens(self, text: str) -> list[str]:
        """Text to subwords."""
        line = _one_line(text)
        return list(self._tokenizer.encode(line).tokens) if line else []

    def text(self, tokens: Sequence[str]) -> str:
        """Subwords to text."""
        return "".join(tokens).replace(SPACE, " ").strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _package() -> Any:
    return need("tokenizers", extra="generate", purpose="Subwords")
