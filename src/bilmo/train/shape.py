"""From a recipe and the words of a corpus to the network that is to be trained.

Knows: recipes, configs, vectors files. Blind to: training.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bilmo.ids.batch import Indexer
from bilmo.ids.chars import CharTable
from bilmo.ids.vocab import Vocab
from bilmo.net.bilm import BiLM
from bilmo.net.config import BiLMConfig, CellConfig, CharsConfig, TableConfig, WordsConfig
from bilmo.net.softmax import Softmax
from bilmo.store import vectors
from bilmo.store.bundle import Bundle
from bilmo.train.model import LanguageModel
from bilmo.train.recipe import VECTORS, NetworkRecipe, TextRecipe


@dataclass(frozen=True)
class Shape:
    """A network to be made, and the names of its ids."""

    config: BiLMConfig
    vocab: Vocab
    chars: CharTable | None
    given: vectors.Vectors | None

    def model(self, seed: int) -> LanguageModel:
        """A fresh model; the same seed gives the same weights."""
        torch.manual_seed(seed)
        model = LanguageModel(BiLM(self.config), Softmax(len(self.vocab), self.config.width))
        if self.given is not None:
            self._give(model, self.given)
        return model

    def _give(self, model: LanguageModel, given: vectors.Vectors) -> None:
        """Put the given vectors in their rows; a word without one begins as an unknown word."""
        names, values = given.table()
        rows = values[names.ids(word.lower() if given.lower else word for word in self.vocab.words)]
        table = model.bilm.words.table
        assert table is not None
        with torch.no_grad():
            table.weight.copy_(torch.from_numpy(rows))
            table.marks.copy_(torch.from_numpy(values[:3]))

    def indexer(self) -> Indexer:
        """Words to ids, the way the network wants them."""
        return Bundle(self.config, {}, layout="", vocab=self.vocab, chars=self.chars).indexer()


def shape_of(recipe: NetworkRecipe, text: TextRecipe, words: list[str], counts: NDArray[np.int64], lang: str) -> Shape:
    """The shape for these words, which come by falling count."""
    frequent = int((counts[3:] >= text.min_count).sum()) + 3
    vocab = Vocab(words[: min(frequent, text.vocab_size or frequent)])
    parts = {"vectors"} if recipe.words.startswith(VECTORS) else set(recipe.words.split("+"))
    given = None
    table = None
    if "table" in parts:
        table = TableConfig(rows=len(vocab), width=recipe.table_width or recipe.width)
    if "vectors" in parts:
        wanted = {form for word in vocab.words for form in (word, word.lower())} | {"<unk>"}
        given = vectors.read(Path(recipe.words.removeprefix(VECTORS)), only=wanted)
        table = TableConfig(rows=len(vocab), width=given.values.shape[1], given=True, tuned=recipe.tuned, lower=False)
    chars, characters = None, None
    if "chars" in parts:
        unicode = recipe.chars == "unicode" or (recipe.chars == "auto" and lang == "zh")
        characters = CharTable.count(words[3:], max_characters=recipe.max_characters) if unicode else None
        chars = CharsConfig(
            kind="unicode" if characters else "bytes",
            rows=characters.rows if characters else 261,
            width=recipe.char_width,
            filters=recipe.filters,
            activation=recipe.activation,
            highways=recipe.highways,
            max_characters=recipe.max_characters,
        )
    encoder = WordsConfig(chars=chars, table=table, project=True)
    projected = recipe.cell == "lstm" and recipe.cells != recipe.width
    cell = CellConfig(
        kind=recipe.cell,
        cells=recipe.cells if recipe.cell == "lstm" else recipe.width,
        project=projected,
        cell_clip=recipe.clip if recipe.cell == "lstm" else None,
        projection_clip=recipe.clip if projected else None,
    )
    config = BiLMConfig(
        words=WordsConfig(chars=chars, table=table, project=encoder.outputs != recipe.width),
        cell=cell,
        width=recipe.width,
        layers=recipe.layers,
        skip=recipe.skip,
    )
    return Shape(config, vocab, characters, given)
