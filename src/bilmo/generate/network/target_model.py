"""A language model of the target language, which reads what the decoder has written so far.

Only its forward direction is used: the backward one would read words that are not written yet, and is never run.

Knows: Embedder, layer store, the network of a biLM. Blind to: the decoder, the search, files.
"""

# B targets, T words, N rows, L layers, D width of one direction

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.errors import ConfigError
from bilmo.generate.data.target_text import JOIN
from bilmo.ids.batch import Batch, Indexer
from bilmo.ids.chars import SENTENCE_BEGIN
from bilmo.net.state import State
from bilmo.store.bundle import Bundle
from bilmo.tasks.core.events import LayersComputed, WaitingForLayers
from bilmo.tasks.network.layer_store import LayerStore, Waiting

LEAST_KNOWN = 0.2
"""The share of the target text that a model of its language knows at least."""


def forward_only(bundle: Bundle) -> Bundle:
    """The model without its backward direction and its softmax."""
    if "forward" not in bundle.config.directions:
        raise ConfigError("the target model has no forward direction; the decoder writes forward")
    kept = {
        name: value for name, value in bundle.weights.items() if not name.startswith(("backward_stack.", "softmax."))
    }
    start = bundle.start and State({"forward": bundle.start.stacks["forward"]})
    return replace(bundle, config=replace(bundle.config, directions=("forward",)), weights=kept, start=start)


def load_forward(path: str) -> Embedder:
    """The forward direction of a model, by its name or path."""
    return Embedder(forward_only(load(Path(path)).bundle))


def check_language(elmo: Embedder, name: str, tokens: Sequence[Sequence[str]]) -> None:
    """Refuse a model that knows few of the characters, or of the words, of the target text."""
    words = [plain_word(token) for some in tokens[:2000] for token in some]
    chars, vocab = elmo.bundle.chars, elmo.bundle.vocab
    if chars is not None:
        known = set(chars.lines())
        found, what = [character in known for word in words for character in word], "characters"
    elif vocab is not None:
        lower = elmo.bundle.indexer().lower
        found, what = [(word.lower() if lower else word) in vocab for word in words], "words"
    else:
        return
    share = sum(found) / max(1, len(found))
    if share < LEAST_KNOWN:
        raise ConfigError(
            f"the target model {name} knows only {share:.0%} of the {what} of the targets, so it is a model of "
            "another language; give one that was trained on text like the targets"
        )


def plain_word(token: str) -> str:
    """A target word as the model knows it, without marks."""
    return token.replace(JOIN, "") or JOIN


class TargetModel:
    """The layers of the last word that was written, for given targets and for rows of a search."""

    def __init__(self, elmo: Embedder, cache: Path | None = None) -> None:
        """`elmo` has the forward direction only."""
        self.store = LayerStore(elmo, cache)
        self.layers, self.width = self.store.shape

    def fill(self, targets: Sequence[Sequence[str]]) -> Iterator[LayersComputed | WaitingForLayers]:
        """Compute and store the layers of all targets of a data set."""
        for state in self.store.fill([_plain(target) for target in targets if target]):
            yield WaitingForLayers() if isinstance(state, Waiting) else LayersComputed(state.done, state.total)

    def taught(self, targets: Sequence[Sequence[str]], steps: int) -> Tensor:
        """(L+1, B, T, D): the layers of the word before each step; zeros before the first one."""
        values = np.zeros((len(targets), steps, self.layers, self.width), dtype=np.float32)
        read = [(k, _plain(target[: steps - 1])) for k, target in enumerate(targets) if target[: steps - 1]]
        whole = [_plain(targets[k]) for k, _ in read]
        for (k, words), layers in zip(read, self.store.layers(whole), strict=True):
            values[k, 1 : len(words) + 1] = layers[: len(words)]
        return torch.from_numpy(values).permute(2, 0, 1, 3)

    def rows(self, number: int) -> TargetRows:
        """Rows of a search, before their first word."""
        return TargetRows(self.store.elmo, number)


class TargetRows:
    """Runs the model, one word after the other in each row."""

    def __init__(self, elmo: Embedder, number: int) -> None:
        self._network = elmo.bundle.shared_network()
        self._indexer: Indexer = elmo.bundle.indexer()
        self._state = elmo.start_state
        self._read([SENTENCE_BEGIN])
        self._state = self._state.select(torch.zeros(number, dtype=torch.long))

    def read(self, words: Sequence[str]) -> Tensor:
        """One word of each row to its layers (L+1, N, D), rounded as stored layers are."""
        return self._read([plain_word(word) for word in words]).half().float()

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows."""
        self._state = self._state.select(rows)

    def _read(self, words: Sequence[str]) -> Tensor:
        keys = [self._indexer.key(word) for word in words]
        distinct = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        places = np.array([[distinct[key]] for key in keys])
        lengths = np.ones(len(words), dtype=np.int64)
        batch = Batch(places, places, lengths, self._indexer.words(list(distinct)))
        layers, self._state = self._network(batch, self._state)
        values: Tensor = layers.padded().values[:, :, 0]
        return values


def _plain(target: Sequence[str]) -> list[str]:
    return [plain_word(token) for token in target]
