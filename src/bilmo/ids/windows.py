"""The training text as steps: an endless stream cut into windows, or whole sentences.

The rows of a step follow from its number, so a run resumes its text from one number. A sentence of n words is n + 1
steps in each direction: forward, `<S>` and its words are read, and its words and `</S>` are predicted; backward, the
same from its end.

Knows: numpy. Blind to: words, files, networks.
"""

# B rows, T steps

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bilmo.ids.chars import Ids


@dataclass(frozen=True)
class Reading:
    """What one direction reads and predicts, (B, T) each, as word ids."""

    inputs: Ids
    targets: Ids


@dataclass(frozen=True)
class TextStep:
    """One training step's text: the same sentences for both directions."""

    forward: Reading
    backward: Reading
    lengths: Ids
    """(B,)"""

    def rows(self, some: slice) -> TextStep:
        """Some rows of the step, as wide as the longest of them."""
        lengths = self.lengths[some]
        cut = (some, slice(int(lengths.max())))
        forward, backward = (Reading(r.inputs[cut], r.targets[cut]) for r in (self.forward, self.backward))
        return TextStep(forward, backward, lengths)


class TextSteps(Protocol):
    """An epoch's text by step number."""

    def __len__(self) -> int:
        """Steps of an epoch."""

    def __getitem__(self, number: int) -> TextStep:
        """The text of one step."""


class Text:
    """Word ids of all sentences in a row, where each sentence ends, and the ids of the two boundaries."""

    def __init__(self, ids: NDArray[np.uint32], ends: NDArray[np.int64], begin: int, end: int) -> None:
        self.ids, self.ends, self.begin, self.end = ids, ends, begin, end

    def steps(self, sentences: Ids) -> Ids:
        """Steps of some sentences: their words and one boundary each."""
        return self.ends[sentences] - self._starts(sentences) + 1

    def _starts(self, sentences: Ids) -> Ids:
        return np.where(sentences > 0, self.ends[sentences - 1], 0)

    def read(self, sentence: Ids, step: Ids) -> tuple[Reading, Reading]:
        """What both directions read and predict at steps of sentences; both arrays have the same shape."""
        start = self._starts(sentence)
        n = self.ends[sentence] - start  # words of the sentence, so steps 0 to n

        def word(place: Ids) -> Ids:
            """The word at a place of its sentence; beyond its ends any word, replaced by a boundary below."""
            inside = np.minimum(start + np.clip(place, 0, np.maximum(n - 1, 0)), len(self.ids) - 1)
            found: Ids = self.ids[inside].astype(np.int64)
            return found

        forward = Reading(
            inputs=np.where(step == 0, self.begin, word(step - 1)), targets=np.where(step == n, self.end, word(step))
        )
        backward = Reading(
            inputs=np.where(step == 0, self.end, word(n - step)),
            targets=np.where(step == n, self.begin, word(n - 1 - step)),
        )
        return forward, backward


class Stream:
    """As in the paper: sentences in random order form one endless stream, divided among rows and read in windows.

    The state is carried from window to window. Each row is a contiguous piece of the stream.
    """

    def __init__(self, text: Text, order: Ids, *, rows: int, window: int) -> None:
        """`order`: sentence numbers in the order of this epoch."""
        self._text, self._order = text, order
        self._rows, self._window = rows, window
        self._until = np.cumsum(text.steps(order))
        self._each = int(self._until[-1]) // rows

    def __len__(self) -> int:
        return self._each // self._window

    def __getitem__(self, number: int) -> TextStep:
        first = np.arange(self._rows)[:, None] * self._each + number * self._window
        step = first + np.arange(self._window)  # (B, T)
        place = np.searchsorted(self._until, step, side="right")
        step = step - np.where(place > 0, self._until[place - 1], 0)
        return TextStep(*self._text.read(self._order[place], step), np.full(self._rows, self._window))


POOL = 64
"""Batches whose sentences are sorted by length together: enough to find sentences of similar length."""


BLOCK_SENTENCES = 1 << 16
"""Sentences counted at a time."""


class Whole:
    """Whole sentences, those of similar length together, each from the same start.

    A sentence of more than `longest` steps is read in pieces. Sentences are sorted by length within pools, and a pool
    is sorted again for each of its batches: only the order of sentences and little more is kept in memory.
    """

    def __init__(self, text: Text, order: Ids, *, budget: int, longest: int, seed: int | list[int]) -> None:
        """`budget`: steps of a batch, more or less one sentence."""
        self._text, self._order, self._budget, self._longest = text, order, budget, longest
        self._pools = _pools(text, order, budget * POOL)
        batches = [len(self._pool(number).begins) for number in range(len(self._pools) - 1)]
        self._batches = np.cumsum([0, *batches])
        self._shuffled = np.random.default_rng(seed).permutation(int(self._batches[-1]))

    def __len__(self) -> int:
        return len(self._shuffled)

    def __getitem__(self, number: int) -> TextStep:
        batch = self._shuffled[number]
        which = int(np.searchsorted(self._batches, batch, side="right")) - 1
        pool = self._pool(which)
        begin, end = np.append(pool.begins, len(pool.length))[batch - self._batches[which] :][:2]
        rows = slice(begin, end)
        lengths = pool.length[rows]
        step = np.minimum(np.arange(lengths.max()), lengths[:, None] - 1) + pool.first[rows, None]  # (B, T)
        sentence = np.broadcast_to(pool.sentence[rows, None], step.shape)
        return TextStep(*self._text.read(sentence, step), lengths)

    def _pool(self, number: int) -> _Pool:
        order = self._order[self._pools[number] : self._pools[number + 1]].astype(np.int64)
        steps = self._text.steps(order)
        pieces = -(-steps // self._longest)
        sentence = np.repeat(order, pieces)
        first = (np.arange(len(sentence)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * self._longest
        length = np.minimum(np.repeat(steps, pieces) - first, self._longest)
        sort = np.argsort(-length, kind="stable")
        before = np.cumsum(length[sort]) - length[sort]
        # A batch ends where its steps fill the budget.
        begins = np.flatnonzero(np.diff(before // self._budget, prepend=-1))
        return _Pool(sentence[sort], first[sort], length[sort], begins)


@dataclass(frozen=True)
class _Pool:
    """Pieces of sentences, longest first, and where each batch begins among them."""

    sentence: Ids
    first: Ids
    """The step of its sentence at which a piece begins."""
    length: Ids
    begins: Ids


def _pools(text: Text, order: Ids, budget: int) -> list[int]:
    """Where each pool of `budget` steps begins in `order`, and where the last one ends."""
    begins, filled, last = [0], 0, 0
    for at in range(0, len(order), BLOCK_SENTENCES):
        steps = text.steps(order[at : at + BLOCK_SENTENCES])
        pool = (filled + np.cumsum(steps) - steps) // budget
        begins += (np.flatnonzero(np.diff(pool, prepend=last)) + at).tolist()
        filled, last = filled + int(steps.sum()), int(pool[-1])
    return [*begins, len(order)]
