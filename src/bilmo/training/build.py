"""From a recipe and the words of a corpus to the model that is trained.

Knows: recipes, configs, vectors files. Blind to: training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilmo.errors import ConfigError
from bilmo.ids.batch import Indexer
from bilmo.ids.chars import CharTable
from bilmo.ids.vocab import Vocab
from bilmo.net.bilm import BiLM, settle
from bilmo.net.config import BiLMConfig
from bilmo.net.softmax import Softmax
from bilmo.store import vectors_file as vectors
from bilmo.store.bundle import Bundle
from bilmo.training.model import PER_WORD_WEIGHTS, LanguageModel, TrainingOptions
from bilmo.training.recipe import NetworkRecipe, TextRecipe


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within it torch's random numbers follow from the seed; afterwards the user's random state is as it was before."""
    with torch.random.fork_rng(devices=[]):  # no random number is drawn on another device
        torch.default_generator.manual_seed(seed)
        yield


@dataclass(frozen=True)
class ModelPlan:
    """A model to be made: its network, the words and characters of its ids, and what its weights start from."""

    config: BiLMConfig
    vocab: Vocab
    chars: CharTable | None
    given: vectors.Vectors | None
    """Word vectors from a file."""
    base: Bundle | None = None
    """The model to fine-tune, with one row per word of `vocab` in every table of words."""

    def model(self, seed: int, prior: Tensor | None = None, options: TrainingOptions | None = None) -> LanguageModel:
        """A model to train; the same seed gives the same weights.

        prior: (V,) log-probabilities that a new softmax starts with; without them all words are equally likely.
        """
        with seeded(seed):
            model = self._new(options)
        if prior is not None:
            with torch.no_grad():
                model.softmax.bias.copy_(prior)
        if self.given is not None:
            self._give(model, self.given)
        if self.base is not None:
            model.load_weights(self.base.weights, self.base.start)
        return model

    def parameters(self) -> int:
        """The number of parameters, counted without making the model."""
        with torch.device("meta"):
            return sum(parameter.numel() for parameter in self._new().parameters())

    def _new(self, options: TrainingOptions | None = None) -> LanguageModel:
        return LanguageModel(BiLM(self.config), Softmax(len(self.vocab), self.config.width), options)

    def _give(self, model: LanguageModel, given: vectors.Vectors) -> None:
        """Put the given vectors in their rows; a word without one starts as an unknown word."""
        names, values = given.table()
        rows = values[names.ids(word.lower() if given.lower else word for word in self.vocab.words)]
        table = model.bilm.words.table
        assert table is not None
        with torch.no_grad():
            table.weight.copy_(torch.from_numpy(rows))
            table.marks.copy_(torch.from_numpy(values[:3]))

    def indexer(self) -> Indexer:
        """The indexer that makes batches for the network."""
        return Bundle(self.config, {}, layout="", vocab=self.vocab, chars=self.chars).indexer()


def plan_model(recipe: NetworkRecipe, text: TextRecipe, words: list[str], counts: NDArray[np.int64]) -> ModelPlan:
    """The plan of a new model for these words, which are in descending order of frequency."""
    vocab = _vocab(text, words, counts)
    given: vectors.Vectors | None = None
    chars: CharTable | None = None
    if recipe.vectors_file is not None:
        wanted = {form for word in vocab.words for form in (word, word.lower())} | {"<unk>"}
        given = vectors.read(recipe.vectors_file, only=wanted)
    unicode = recipe.chars == "unicode" or (recipe.chars == "auto" and _is_chinese(words, counts))
    if "chars" in recipe.parts and unicode:
        trained = words[3 : _frequent(counts, 1)]  # characters that occur only in held-out text could not be learned
        chars = CharTable.count(trained, max_characters=recipe.max_characters)
    config = recipe.config(
        len(vocab), characters=chars.rows if chars else None, given=given.values.shape[1] if given else None
    )
    return ModelPlan(config, vocab, chars, given)


def _frequent(counts: NDArray[np.int64], least: int) -> int:
    """The number of words, in descending order of frequency, that occur often enough; the marks always count."""
    return int((counts[3:] >= least).sum()) + 3


def _vocab(text: TextRecipe, words: list[str], counts: NDArray[np.int64]) -> Vocab:
    """The words that are predicted."""
    frequent = _frequent(counts, text.min_count)
    if frequent == 3:
        raise ConfigError(
            f"min_count is {text.min_count}, and no word of the text occurs that often; the most frequent one occurs "
            f"{counts.max()} times. Lower min_count."
        )
    return Vocab(words[: min(frequent, text.vocab_size or frequent)])


def _is_chinese(words: list[str], counts: NDArray[np.int64]) -> bool:
    """Whether most words of the text are written in Chinese characters."""
    chinese = np.array([any("\u4e00" <= character <= "\u9fff" for character in word) for word in words], dtype=bool)
    return bool(2 * counts[chinese].sum() > counts.sum())


def plan_finetuning(
    base: Bundle, text: TextRecipe, words: list[str], counts: NDArray[np.int64], add_words: int
) -> ModelPlan:
    """The plan of a model that continues `base` on other text, of which `add_words` new words are added.

    A model without rows for words (characters only, no softmax) takes its vocabulary from the text.
    """
    if base.start is None:  # what its sentences start from when it embeds
        base = replace(base, start=settle(base.network(), base.indexer().batch([[]])))
    if base.vocab is None or not (base.has_softmax or base.config.words.table):
        return ModelPlan(base.config, _vocab(text, words, counts), base.chars, None, base)
    known = base.vocab
    frequent = words[: _frequent(counts, text.min_count)]
    vocab = Vocab((*known.words, *[word for word in frequent if word not in known][:add_words]))
    more = len(vocab) - len(known)
    weights = {
        name: _with_rows(value, _unknown(base, name, known.unknown), more) if name in PER_WORD_WEIGHTS else value
        for name, value in base.weights.items()
    }
    if more and base.has_softmax:  # the new words together start as likely as an unknown word was
        weights["softmax.bias"][-more:] -= math.log(more)
    config = base.config
    if config.words.table:
        config = replace(config, words=replace(config.words, table=replace(config.words.table, rows=len(vocab))))
    return ModelPlan(config, vocab, base.chars, None, replace(base, config=config, weights=weights, vocab=vocab))


def _unknown(base: Bundle, name: str, id: int) -> Tensor:
    """The row of the unknown word; a table of given vectors keeps it among its trained marks."""
    table = base.config.words.table
    if name == "words.table.weight" and table and table.given:
        name = "words.table.marks"
    return base.weights[name][id]


def _with_rows(value: Tensor, row: Tensor, more: int) -> Tensor:
    """Append copies of one row."""
    return torch.cat([value, row.expand(more, *row.shape)])
