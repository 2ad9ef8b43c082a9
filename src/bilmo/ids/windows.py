"""The training text as steps: an endless stream cut into windows, or whole sentences.

Both give, for any step number, the same rows: where a run is in its text is one number, which is all that must
be remembered to go on from there. A sentence of n words is n + 1 steps in each direction: ahead `<S>` and its
words are read and its words and `</S>` are predicted; behind the same from the end.

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

    ahead: Reading
    behind: Reading
    lengths: Ids
    """(B,)"""


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

    @property
    def steps(self) -> Ids:
        """Steps of each sentence: its words and one boundary."""
        return np.diff(self.ends, prepend=0) + 1

    def read(self, sentence: Ids, step: Ids) -> tuple[Reading, Reading]:
        """What both directions read and predict at a step of a sentence; both arrays have one shape."""
        start = np.where(sentence > 0, self.ends[sentence - 1], 0)
        n = self.ends[sentence] - start  # words of the sentence, so steps 0 to n

        def word(place: Ids) -> Ids:
            """The word at a place of its sentence; where there is none, a boundary is put in its stead below."""
            inside = np.minimum(start + np.clip(place, 0, np.maximum(n - 1, 0)), len(self.ids) - 1)
            found: Ids = self.ids[inside].astype(np.int64)
            return found

        ahead = Reading(
            inputs=np.where(step == 0, self.begin, word(step - 1)), targets=np.where(step == n, self.end, word(step))
        )
        behind = Reading(
            inputs=np.where(step == 0, self.end, word(n - step)),
            targets=np.where(step == n, self.begin, word(n - 1 - step)),
        )
        return ahead, behind


class Stream:
    """The paper's way: sentences in random order as one endless stream, dealt to rows, read in windows.

    The state is carried from window to window. Each row has a contiguous piece of the stream.
    """

    def __init__(self, text: Text, order: Ids, *, rows: int, window: int) -> None:
        """`order`: sentence numbers in the order of this epoch."""
        self._text, self._order = text, order
        self._rows, self._window = rows, window
        self._until = np.cumsum(text.steps[order])
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
"""Batches' worth of sentences that are sorted by length together: enough to find neighbours of like length."""


class Whole:
    """Whole sentences, those of like length together, every one from the same start.

    A sentence of more than `longest` steps is read in pieces.
    """

    def __init__(self, text: Text, order: Ids, *, budget: int, longest: int, seed: int) -> None:
        """`budget`: steps of a batch, give or take a sentence."""
        self._text = text
        steps = text.steps[order]
        pieces = -(-steps // longest)
        sentence = np.repeat(order, pieces)
        first = (np.arange(len(sentence)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * longest
        length = np.minimum(np.repeat(steps, pieces) - first, longest)

        pool = (np.cumsum(length) - length) // (budget * POOL)
        sort = np.lexsort((-length, pool))
        self._sentence, self._first, self._length = sentence[sort], first[sort], length[sort]
        # A batch ends where the steps before it fill another budget; a new pool begins a new batch.
        before = np.cumsum(self._length) - self._length
        pool_begin = before[np.searchsorted(pool[sort], pool[sort], side="left")]
        batch = (before - pool_begin) // budget
        begins = np.flatnonzero(np.diff(batch, prepend=-1) | np.diff(pool[sort], prepend=-1))
        self._begins, self._ends = begins, np.append(begins[1:], len(sentence))
        self._shuffled = np.random.default_rng(seed).permutation(len(begins))

    def __len__(self) -> int:
        return len(self._begins)

    def __getitem__(self, number: int) -> TextStep:
        batch = self._shuffled[number]
        rows = slice(self._begins[batch], self._ends[batch])
        lengths = self._length[rows]
        step = np.minimum(np.arange(lengths.max()), lengths[:, None] - 1) + self._first[rows, None]  # (B, T)
        sentence = np.broadcast_to(self._sentence[rows, None], step.shape)
        return TextStep(*self._text.read(sentence, step), lengths)
