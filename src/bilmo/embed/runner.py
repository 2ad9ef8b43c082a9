"""Runs a network on one device: sentences in groups, through the word cache and the recurrent layers.

Knows: Bundle, the network, the word cache. Blind to: raw text, files.
"""

# D one direction, L layers, N tokens of all sentences of a group, boundaries included

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilmo.embed.word_cache import WordCache
from bilmo.errors import ConfigError
from bilmo.ids.batch import Sentence, Words, by_length
from bilmo.net.bilm import BiLM, PreparedBiLM
from bilmo.net.config import Precision
from bilmo.net.kernels.threads import caller_threads
from bilmo.net.layers import Layers
from bilmo.net.mix import Mix
from bilmo.net.state import State
from bilmo.store.bundle import Bundle

Vectors = NDArray[np.float32]

BATCH_TOKENS = 4096
"""Tokens of a batch, boundaries included; how sentences are grouped never changes a vector."""
LONG_SENTENCES = 8
"""Number of long sentences computed together even if they exceed BATCH_TOKENS; 1 if the user set batch_tokens."""


def uses_prepared_weights(device: torch.device) -> bool:
    """Whether weights are packed for inference; on other devices than the CPU the network itself runs."""
    return device.type == "cpu"


class Runner:
    """Computes layers; with `carry`, a call continues where the previous one ended, row by row."""

    def __init__(
        self, bundle: Bundle, start: State, *, carry: bool, precision: Precision, device: torch.device
    ) -> None:
        """`start`: the state of one row that every sentence starts from."""
        self.device = device
        self.network: BiLM | PreparedBiLM
        if uses_prepared_weights(device):
            self.network = bundle.shared_network().prepared(precision)
        elif precision != "float32":
            raise ConfigError(f"precision {precision} works only on the CPU; on {device} use float32")
        else:
            self.network = bundle.network().to(device).requires_grad_(False)
        self.indexer = bundle.indexer()
        self.words = WordCache(self._encoded, self.indexer, bundle.config.width)
        self._config = bundle.config
        self._start = start.to(device)
        self._carry = carry
        self._carried: State | None = None

    def _encoded(self, words: Words) -> Tensor:
        """(U, D) on the CPU, where the word cache is."""
        return self.network.words(words).cpu()

    def preload(self, words: Sequence[str], vectors: Vectors) -> None:
        """Use these vectors of words, which were computed beforehand; for duplicates, the last one wins."""
        distinct = {self.indexer.key(word): row for row, word in enumerate(words)}
        self.words.preload(list(distinct), torch.from_numpy(vectors[list(distinct.values())]))

    def word_vectors(self, words: Sequence[str]) -> Vectors:
        """(words, D): the vector of each word without context."""
        keys = [self.indexer.key(word) for word in words]
        with torch.inference_mode():
            found = self.words.vectors(list(dict.fromkeys(keys)))
        rows = {key: row for row, key in enumerate(dict.fromkeys(keys))}
        return found.numpy()[[rows[key] for key in keys]]

    def run(
        self, sentences: Sequence[Sentence], layers: int, batch_tokens: int | None
    ) -> Iterator[tuple[list[int], list[int], Tensor]]:
        """Groups of sentences through the network; only the first `layers` are computed.

        For each group: the numbers of its sentences; their lengths, boundaries included; and their layers
        (layers, N, 2D) on the device, one sentence after the other.
        """
        if not sentences:
            return
        if self._carry:
            layers = self._config.layers + 1  # the next call continues every layer
            groups = iter([list(range(len(sentences)))])
        else:
            rows = LONG_SENTENCES if batch_tokens is None else 1
            groups = by_length([len(s) for s in sentences], batch_tokens or BATCH_TOKENS, rows)
        for numbers in groups:
            keys, places = self.indexer.places([sentences[k] for k in numbers])
            size = (layers, int(places.lengths.sum()), self._config.vector_width)
            values = torch.empty(size, dtype=torch.float32, device=self.device)
            before = self._start.expand(len(numbers))
            if self._carried is not None:
                before = before.replace_first(self._carried)
            with torch.inference_mode(), caller_threads(1):
                words = self.words.vectors(keys).to(self.device)
                after = self.network.layers(words, places, before, values)
            if self._carry:  # rows beyond those of this call stay as they were
                more = self._carried is not None and self._carried.rows > len(numbers)
                self._carried = self._carried.replace_first(after) if self._carried and more else after
            yield numbers, places.lengths.tolist(), values

    def vectors(
        self,
        sentences: Sequence[Sentence],
        mix: Mix | None,
        batch_tokens: int | None,
        advance: Callable[[float], None] | None = None,
    ) -> list[Vectors]:
        """For each sentence its layers (L+1, tokens, 2D), or these mixed; layers above the mix are not computed.

        advance: called with the number of tokens of each group when it is done.
        """
        out: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(sentences)
        layers = self._config.layers + 1
        for numbers, lengths, values in self.run(sentences, max(mix.chosen) + 1 if mix else layers, batch_tokens):
            if mix is not None:
                # All sentences as one row without padding; zeros stand for the layers that the mix does not read.
                unread = values.new_zeros(layers - len(values), 1, 1).expand(-1, *values.shape[1:])
                values = torch.cat([values, unread]) if len(unread) else values
                with torch.inference_mode():
                    real = torch.ones(1, values.shape[1], dtype=torch.bool, device=self.device)
                    values = mix(Layers(values[:, None], real))[0]
            values = values.cpu()
            at = 0
            for k, length in zip(numbers, lengths, strict=True):
                inside = values[..., at + 1 : at + length - 1, :].numpy()
                out[k] = inside if len(numbers) == 1 else inside.copy()  # a copy does not keep the others in memory
                at += length
            if advance is not None:
                advance(sum(lengths) - 2 * len(lengths))
        return out

    def carried(self) -> dict[str, Vectors]:
        """The state that the next call starts from, by name; empty if there is none."""
        return {name: value.cpu().numpy() for name, value in self._carried.named().items()} if self._carried else {}

    def set_carried(self, carried: Mapping[str, Vectors]) -> None:
        """Let the next call start from a state that `carried` returned; if that is empty, from zero."""
        tensors = {name: torch.from_numpy(value) for name, value in carried.items()}
        self._carried = State.from_named(tensors).to(self.device) if tensors else None
