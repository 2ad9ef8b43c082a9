"""The settings of tasks that write text.

Knows: the settings of all tasks. Blind to: data, tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bilmo.errors import ConfigError
from bilmo.net.config import MAX_SIZE
from bilmo.tasks.core.settings import MAX_RATE, Settings, check_choice
from bilmo.text.split import Lang

MAX_BEAM = 1000


@dataclass(frozen=True, kw_only=True)
class GenerateSettings(Settings):
    """The settings of all tasks, those of encoder and decoder, and those of the search."""

    hidden: int = 256
    """Width of one direction of the encoder, and of the decoder."""
    depth: int = 1
    """Number of BiLSTM layers of the encoder."""
    target_width: int = 256
    """Width of the vectors of target words, which are trained with the task."""
    dropout: float = 0.3
    """Dropout on the input vectors of encoder and decoder, and before the last layer."""
    batch: int = 64
    """Examples per step."""
    stop: Literal["measure", "loss"] = "measure"
    """What selects the best epoch: the `measure` of the dev set, written with beam 1, or its `loss` (faster)."""
    target_lang: str = "auto"
    """How target text is split: auto, spaces (already tokenized), en, west, zh."""
    target_model: str | None = None
    """Model of the target language, name or path; the decoder also reads the layers of its forward direction."""
    subwords: int = 0
    """Number of subwords to learn from the targets; 0 for whole words. Subwords are not copied from the source."""
    min_count: int = 2
    """Target words that occur less often can only be copied from the source."""
    most_words: int = 30_000
    """Maximum number of target words."""
    source_limit: int = 250
    """Number of tokens of a source that are read; the rest is cut off."""
    target_limit: int = 250
    """Number of tokens of a target that are learned; the rest is cut off."""
    no_copy: bool = False
    """Do not copy words from the source."""
    untied: bool = False
    """Train the output weights separately from the vectors of target words."""
    smoothing: float = 0.1
    """Label smoothing: the share of the loss that all target words have in common."""
    coverage: float = 0.0
    """Weight of the loss for attention to source words that were already attended to."""
    beam: int = 5
    """Number of partial results that the search keeps; 1 is greedy."""
    length_penalty: float = 1.0
    """Exponent of the length in the score of a result: 0 prefers short results, higher values longer ones."""
    coverage_penalty: float = 0.0
    """Weight of source words without attention in the score of a result; 0 ignores them."""
    shortest: int = 1
    """Minimum number of tokens of a result."""
    longest: int = 0
    """Maximum number of tokens of a result; 0 for that of the longest training target."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("depth", "target_width", "min_count", "most_words", "source_limit", "target_limit"):
            self._within(name, 1, MAX_SIZE)
        check_choice("target_lang", self.target_lang, ("auto", *get_args(Lang)))
        self._within("beam", 1, MAX_BEAM)
        for name in ("shortest", "longest"):
            self._within(name, 0, MAX_SIZE)
        for name in ("coverage", "length_penalty", "coverage_penalty"):
            self._within(name, 0, MAX_RATE)
        if not 0 <= self.smoothing < 1:
            raise ConfigError(f"smoothing is {self.smoothing}; it must be at least 0 and below 1")
        self._within("subwords", 0, MAX_SIZE)
        if self.subwords and self.target_model is not None:
            raise ConfigError("a target model reads whole words; leave out subwords, or target_model")
        if self.longest and self.shortest > self.longest:
            raise ConfigError(f"shortest is {self.shortest}, above longest, which is {self.longest}")


@dataclass(frozen=True, kw_only=True)
class TranslateSettings(GenerateSettings):
    """Also the fields of a file of pairs."""

    source_field: str = "source"
    """Field or column with the source, in JSON lines or in a table that names its columns."""
    target_field: str = "target"
    """Field or column with the translation."""


@dataclass(frozen=True, kw_only=True)
class SummariseSettings(GenerateSettings):
    """Also the fields of a file of texts and summaries; long sources."""

    batch: int = 32
    """Examples per step."""
    source_limit: int = 400
    """Number of tokens of a source that are read; the rest is cut off."""
    target_limit: int = 100
    """Number of tokens of a target that are learned; the rest is cut off."""
    coverage: float = 0.5
    """Weight of the loss for attention to source words that were already attended to."""
    text_field: str = "text"
    """Field or column with the text, in JSON lines or in a table that names its columns; a list is joined."""
    summary_field: str = "summary"
    """Field or column with the summary."""
