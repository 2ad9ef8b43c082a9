"""The language model that is trained: network, softmax, and the state that sentences start from; and its loss.

Knows: net, windows, loss. Blind to: files, optimizers, epochs.
"""

# B rows, T steps, N steps of all rows, V words of the vocabulary

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bilmo.ids.batch import Batch, Indexer, Words
from bilmo.ids.chars import UNKNOWN, Ids
from bilmo.ids.vocab import MARKS
from bilmo.ids.windows import Reading, TextStep
from bilmo.net.bilm import BiLM
from bilmo.net.config import Direction
from bilmo.net.layers import Packing
from bilmo.net.run import Part
from bilmo.net.softmax import Softmax
from bilmo.net.start import StartState
from bilmo.net.state import State
from bilmo.training.loss import Loss


class WordArrays:
    """Every word of a corpus as arrays for the word encoder, spelled out once."""

    def __init__(self, words: list[str], indexer: Indexer) -> None:
        keys = [indexer.key(word) for word in words]
        arrays = indexer.words(keys)
        self._chars: NDArray[np.uint32] | None = None
        if arrays.chars is not None:
            self._chars = arrays.chars.astype(np.uint32)
            self._lengths = np.array([len(key[0]) for key in keys])
        self._ids = arrays.ids
        self._widest = indexer.widest_filter

    def pick(self, words: Ids) -> Words:
        """Some words by number; arrays are as wide as the longest of them needs."""
        chars = None
        if self._chars is not None:
            width = min(int(self._lengths[words].max()) + self._widest, self._chars.shape[1])
            chars = self._chars[words, :width].astype(np.int64)
        return Words(chars, None if self._ids is None else self._ids[words])


@dataclass(frozen=True)
class StepLoss:
    """The loss of a step of text, in nats per word."""

    loss: Tensor
    """The mean over both directions, with gradients."""
    each: dict[Direction, float]
    """The mean of each direction."""
    words: int
    """Words that each direction predicted, boundaries included, in all rows of the step."""
    own: int
    """The same in the rows that were computed."""
    targets: Tensor
    """(2N,): all words that were predicted in the step, as rows of the softmax."""


PER_WORD_WEIGHTS = ("softmax.weight", "softmax.bias", "words.table.weight")
"""Weights with one row for each word of the vocabulary, by their names in a model's file."""


@dataclass(frozen=True)
class TrainingOptions:
    """Options that apply only while training; evaluations ignore them."""

    dropout: float = 0.0
    """Share of each layer's input that is set to 0; the skip connection sees the rest."""
    vector_dropout: float = 0.0
    """Share of a step's distinct words that are read without their given vector."""
    bfloat16_products: bool = False
    """Multiply in bfloat16; weights, sums and the cell state of an LSTM stay float32."""


class LanguageModel(nn.Module):
    """Network, softmax, learned start; both directions share word encoder and softmax."""

    def __init__(self, bilm: BiLM, softmax: Softmax, options: TrainingOptions | None = None) -> None:
        super().__init__()
        self.options = options or TrainingOptions()
        self.bilm = bilm
        self.softmax = softmax
        self.start = StartState(bilm.zero_state(1), learned=True)

    def load_weights(self, weights: dict[str, Tensor], start: State | None) -> None:
        """Load these values; a missing softmax or start stays unchanged."""
        state = {name if name.startswith("softmax.") else f"bilm.{name}": value for name, value in weights.items()}
        if start is not None:
            state |= {f"start.{name}": part for name, part in StartState.tensors(start).items()}
        self.load_state_dict(self.state_dict() | state)

    def start_state(self, rows: int) -> State:
        """The learned start, for many rows."""
        state: State = self.start(rows)
        return state

    def forward(
        self,
        text: TextStep,
        words: WordArrays,
        targets: Callable[[Ids], Ids],
        state: State,
        loss: Loss,
        *,
        head_only: bool = False,
        rows: slice | None = None,
    ) -> tuple[StepLoss, State]:
        """The loss of each direction on a step of text, and the state after it.

        head_only: train only the softmax; the network stays unchanged.
        rows: compute only these rows of the step; the state is that of these rows. All that is random is the same as
            if all rows were computed, so that several processes can share a step.
        """
        whole = self._readings(text)
        part, own = (None, slice(None)) if rows is None else _part(text, rows)
        computed = text if rows is None else text.rows(rows)
        readings = self._readings(computed)
        inputs = torch.from_numpy(np.stack([reading.inputs for reading in readings.values()]))  # (1 or 2, B, T)
        distinct, places = torch.unique(inputs, return_inverse=True)
        picked = words.pick(distinct.numpy())
        if self.training and self.options.vector_dropout:
            everywhere = np.unique(np.stack([reading.inputs for reading in whole.values()]))
            picked = self._without_some_vectors(picked, np.searchsorted(everywhere, distinct.numpy()), len(everywhere))
        batch = Batch(forward=places[0].numpy(), backward=places[-1].numpy(), lengths=computed.lengths, words=picked)
        device = self.softmax.weight.device
        with (
            torch.set_grad_enabled(torch.is_grad_enabled() and not head_only),
            self._products(),
        ):
            layers, after = self.bilm(
                batch, state, dropout=self.options.dropout, only_top=True, separate_graphs=True, part=part
            )
        outputs = torch.cat(layers.tops).float()
        packing = layers.packing if rows is None else Packing(text.lengths)
        wanted = [torch.from_numpy(targets(packing.pack(r.targets).numpy())) for r in whole.values()]
        with self._products():
            mean, each = loss(self.softmax, outputs, torch.cat([some[own] for some in wanted]).to(device))
        halves = [float(half.double().mean()) for half in each.chunk(len(wanted))]
        losses = dict(zip(readings, halves, strict=True))
        return StepLoss(mean, losses, len(wanted[0]), len(wanted[0][own]), torch.cat(wanted)), after

    def _readings(self, text: TextStep) -> dict[Direction, Reading]:
        """What each direction of the network reads and predicts."""
        readings: dict[Direction, Reading] = {"forward": text.forward, "backward": text.backward}
        return {direction: readings[direction] for direction in self.bilm.config.directions}

    def _products(self) -> torch.autocast:
        """While training, products in bfloat16 if that is set; evaluations are always in float32."""
        device = self.softmax.weight.device.type
        return torch.autocast(device, torch.bfloat16, enabled=self.options.bfloat16_products and self.training)

    def _without_some_vectors(self, words: Words, numbers: Ids, most: int) -> Words:
        """A share of the words read as if they had no vector, so that their spelling is learned too.

        numbers: of these words among the `most` distinct words of the step.
        """
        assert words.ids is not None
        dropped = torch.rand(most).numpy()[numbers] < self.options.vector_dropout
        boundary = words.ids < MARKS.index(UNKNOWN)
        return replace(words, ids=np.where(dropped & ~boundary, MARKS.index(UNKNOWN), words.ids))


def _part(text: TextStep, rows: slice) -> tuple[Part, Tensor]:
    """Which packed positions of a step belong to some of its rows, as `run` needs it and as numbers (N,)."""
    numbers = np.broadcast_to(np.arange(len(text.lengths))[:, None], text.forward.inputs.shape)
    row = Packing(text.lengths).pack(numbers)
    own = torch.nonzero(torch.isin(row, torch.arange(len(text.lengths))[rows]))[:, 0]
    return Part(len(row), own), own
