"""A loaded model at work: sentences in, numpy out, in the order they came.

Knows: Bundle, layouts, the network. Blind to: files of vectors, tasks, the command line.
"""

# B sentences, T tokens with both boundaries, U distinct words, D one direction, L layers

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilmo.embed.module import ElmoModule
from bilmo.embed.words import WordCache
from bilmo.embed.workers import side_by_side
from bilmo.errors import ConfigError, NoSoftmax
from bilmo.ids.batch import Key, Sentence, by_length, listed
from bilmo.ids.chars import Ids
from bilmo.legacy import cached, layouts
from bilmo.net.bilm import Rows, State, settle, spread
from bilmo.net.config import Direction
from bilmo.net.layers import Layers
from bilmo.net.mix import How, Mix, Norm
from bilmo.store.bundle import Bundle

Start = Literal["settled", "zero", "carry"]
All = Literal["all"]
Vectors = NDArray[np.float32]

BATCH_TOKENS = 2048
"""Tokens of a batch, boundaries included; how sentences are grouped never changes a vector."""


def load(path: str | PathLike[str], *, start: Start = "settled", cache: str | PathLike[str] | None = None) -> Embedder:
    """Load a model: our folder or any old layout, as a folder, a zip or the weights file itself.

    start: what every sentence starts from. "settled" is one state, the same for all, so that a sentence always
        has the same vectors; "zero" is no memory at all; "carry" goes on where the call before ended, row by row,
        as the old systems do.
    cache: vectors that an old system computed beforehand for the words of a vocabulary (HDF5 with the dataset
        `embedding`, vocab.txt beside it); other words still come from the model's own word encoder.
    """
    bundle = layouts.read(Path(path))
    known = cached.read(Path(cache), bundle.config.width) if cache is not None else None
    return Embedder(bundle, start=start, known=known)


class Embedder:
    """A model that embeds. Only a carried state is remembered between calls, and only when asked for."""

    def __init__(
        self, bundle: Bundle, *, start: Start = "settled", known: tuple[list[str], Vectors] | None = None
    ) -> None:
        """`known`: words whose vectors were computed beforehand, and those vectors."""
        if start not in get_args(Start):
            raise ConfigError(f"start is {start!r}; known are {', '.join(get_args(Start))}")
        bundle = settled(bundle) if start == "settled" else bundle
        self.bundle = bundle
        self.config = bundle.config
        self.start = start
        self._indexer = bundle.indexer()
        self._network = bundle.network()
        self._network.prepare()
        self._softmax = bundle.softmax()
        self._carried: State | None = None
        self._words = WordCache(self._network.words, self._indexer, bundle.config.width)
        if known is not None:
            words, vectors = known
            distinct = {self._indexer.key(word): row for row, word in enumerate(words)}  # the last of equal words
            self._words.know(list(distinct), torch.from_numpy(vectors[list(distinct.values())]))

    def layers(self, sentences: Iterable[Sentence]) -> list[Vectors]:
        """For each sentence (L+1, tokens, 2D): layer 0 is the word alone, the others see its context.

        With start="carry" the call is one batch, and sentence k goes on where sentence k of the last call ended.
        """
        return self._layers(sentences, upto=None)

    def _layers(self, sentences: Iterable[Sentence], upto: int | None) -> list[Vectors]:
        """The same up to some layer."""
        sentences = listed(sentences)
        out: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(sentences)
        for numbers, lengths, values in self._run(sentences, upto):
            at = 0
            for k, length in zip(numbers, lengths, strict=True):
                out[k] = values[:, at + 1 : at + length - 1].numpy().copy()
                at += length
        return out

    def embed(self, sentences: Iterable[Sentence], *, mix: How | All = "mean") -> list[Vectors]:
        """For each sentence (tokens, width): its layers mixed, in one of the ways of `bilmo.Mix` that need no training.

        "all" leaves the layers as they are, (L+1, tokens, 2D).
        """
        if mix == "all":
            return self.layers(sentences)
        if mix == "weighted":
            raise ConfigError(
                "a weighted mix is learned with a task: use module(), or mix='mean', which it starts from"
            )
        mixed = self._mix(mix)
        top = max(mixed.chosen)
        above = ((0, self.config.layers - top), (0, 0), (0, 0))  # layers that the mix does not look at
        with torch.inference_mode():
            return [mixed(one_sentence(np.pad(values, above)))[0].numpy() for values in self._layers(sentences, top)]

    def log_probs(self, sentences: Iterable[Sentence]) -> list[Vectors]:
        """For each sentence (2, tokens + 1) natural logs by the full softmax.

        Row 0, forward: each word given those before it, then `</S>`. Row 1, backward: `<S>`, then each word, given
        those after it. A network of one direction has its one row.
        """
        if self._softmax is None or self.bundle.vocab is None:
            raise NoSoftmax(
                f"this model ({self.bundle.layout}) came without a softmax, so it gives vectors but no probabilities. "
                "Of the old layouts only a TensorFlow checkpoint holds one."
            )
        vocab, width = self.bundle.vocab, self.config.width
        sentences = listed(sentences)
        out: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(sentences)
        with torch.inference_mode():
            for numbers, lengths, values in self._run(sentences):
                at = 0
                for k, length in zip(numbers, lengths, strict=True):
                    top = values[-1, at : at + length]  # (T, 2D)
                    at += length
                    ids = torch.tensor([vocab.begin, *vocab.ids(sentences[k]), vocab.end])
                    scores = []
                    for half, direction in enumerate(self.config.directions):
                        output = top[:, half * width : (half + 1) * width]
                        seen, said = (output[:-1], ids[1:]) if direction == "ahead" else (output[1:], ids[:-1])
                        scores.append(self._softmax.log_probs(seen, said))
                    out[k] = torch.stack(scores).numpy()
        return out

    def module(
        self,
        mixes: int = 1,
        tune: bool = False,
        *,
        mix: How = "weighted",
        own: bool = False,
        norm: Norm | None = None,
        dropout: float = 0.0,
        word: bool = False,
    ) -> ElmoModule:
        """The model as a torch module: token lists in, (B, T, width) and mask out.

        mixes: how many mixes, each with weights of its own; with more than one, a tuple of as many tensors comes out.
        tune: train the network too. The module then has a copy, so that this embedder stays as it is.
        The other settings are those of `bilmo.Mix`, where `mix` is its `how`.
        """
        if self.start == "carry":
            raise ConfigError("a module starts every sentence afresh; load the model with start='settled' or 'zero'")
        if mixes < 1:
            raise ConfigError(f"mixes is {mixes}; there must be at least one")
        network = copy.deepcopy(self.bundle.network()) if tune else self._network
        made = [self._mix(mix, own=own, norm=norm, dropout=dropout, word=word) for _ in range(mixes)]
        return ElmoModule(network, self._indexer, self._fresh(1), made, tune=tune)

    def _mix(
        self, how: How, *, own: bool = False, norm: Norm | None = None, dropout: float = 0.0, word: bool = False
    ) -> Mix:
        config = self.config
        size = {"layers": config.layers, "width": config.width, "directions": len(config.directions)}
        return Mix(**size, how=how, own=own, norm=norm, dropout=dropout, word=word)

    def reset(self) -> None:
        """Forget a carried state: the next call starts from zero."""
        self._carried = None

    def _run(
        self, sentences: Sequence[Sentence], upto: int | None = None
    ) -> Iterator[tuple[list[int], list[int], Tensor]]:
        """Groups of sentences through the network.

        For each group: their numbers; their lengths, boundaries included; and their layers (L+1, N, 2D), one
        sentence after the other. Layers above `upto` are not computed.
        """
        if not sentences:
            return
        if self.start == "carry":
            groups = iter([list(range(len(sentences)))])
        else:
            groups = by_length([len(s) for s in sentences], BATCH_TOKENS)
        for numbers in groups:
            keys, (ahead, behind, lengths) = self._indexer.places([sentences[k] for k in numbers])
            with torch.inference_mode():
                values, after = self._in_context(keys, {"ahead": ahead, "behind": behind}, Rows(lengths), upto)
            if self.start == "carry":
                self._carry(after, len(numbers))
            yield numbers, lengths.tolist(), values

    def _in_context(
        self, keys: list[Key], places: dict[Direction, Ids], rows: Rows, upto: int | None
    ) -> tuple[Tensor, State]:
        """Layers (L+1, N, 2D) of a group, one sentence after the other, and the state after it."""
        config, width = self.config, self.config.width
        words = self._words.vectors(keys)  # (U, D)
        before = self._before(len(rows.lengths))
        layers = config.layers if upto is None else upto
        values = torch.empty(layers + 1, int(rows.lengths.sum()), config.vector_width)
        after: State = {}

        def run(half: int, direction: Direction) -> None:
            x = words[rows.pack(places[direction])]  # (N, D)
            outputs, after[direction] = self._network.stack(direction, x, rows, before[direction], layers)
            order = rows.in_sentence_order(reverse=direction == "behind")
            for number, output in enumerate(outputs):
                values[number, :, half * width : (half + 1) * width] = output[order]

        side_by_side([partial(run, half, direction) for half, direction in enumerate(config.directions)])
        return values, after

    def _fresh(self, rows: int) -> State:
        if self.start == "settled" and self.bundle.start is not None:
            return spread(self.bundle.start, rows)
        return self._network.zero_state(rows)

    def _before(self, rows: int) -> State:
        """The state that the rows of a call begin with; carried rows that were never used are zero."""
        state = self._fresh(rows)
        if self._carried is None:
            return state
        return _rows_replaced(state, self._carried)

    def _carry(self, after: State, rows: int) -> None:
        """Remember the rows of this call; rows beyond them stay as they were."""
        if self._carried is not None and len(next(iter(self._carried.values()))[0][0]) > rows:
            after = _rows_replaced(self._carried, after)
        self._carried = after


def settled(bundle: Bundle) -> Bundle:
    """The same model with its settled start, made here where it brought none."""
    if bundle.start is not None:
        return bundle
    return replace(bundle, start=settle(bundle.network(), bundle.indexer().batch([[]])))


def one_sentence(values: Vectors) -> Layers:
    """Layers of a single sentence (L+1, tokens, 2D) as a batch of one."""
    return Layers(torch.from_numpy(values)[:, None], torch.ones(1, values.shape[1], dtype=torch.bool))


def _rows_replaced(state: State, by: State) -> State:
    """A state whose first rows are those of another, as many as both have."""
    out: State = {}
    for direction, stack in state.items():
        pairs = zip(stack, by[direction], strict=True)
        out[direction] = [
            tuple(torch.cat([new[: len(old)], old[len(new) :]]) for old, new in zip(a, b, strict=True))
            for a, b in pairs
        ]
    return out
