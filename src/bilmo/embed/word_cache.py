"""Vectors of words without context, each computed once: real text repeats its words.

Knows: the word encoder, Indexer. Blind to: sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from bilmo.ids.batch import Indexer, Key
from bilmo.net.kernels.threads import side_by_side
from bilmo.net.words import WordEncoder

CACHE = 1 << 26
"""Bytes of words and their vectors that are kept."""
KEY = 250
"""Bytes, about, that Python needs for a word's key and place, whatever its length."""
FEW = 32
"""Words up to which the encoder itself does better with all threads than two halves of the words with some each."""
AT_ONCE, CHARACTERS = 512, 1 << 16
"""Words encoded at a time, those of like length together; and their characters, padding included."""


class WordCache:
    """Vectors of words that were met; those known from the start are never forgotten."""

    def __init__(self, encoder: WordEncoder, indexer: Indexer, width: int) -> None:
        self._encoder, self._indexer, self._width = encoder, indexer, width
        self._table = torch.empty(0, width)
        self._rows: dict[Key, int] = {}
        self._known = 0
        self._bytes = 0

    def know(self, keys: Sequence[Key], vectors: Tensor) -> None:
        """Words whose vectors were computed beforehand."""
        self._table = vectors.clone()
        self._rows = {key: row for row, key in enumerate(keys)}
        self._known = len(vectors)

    def known(self) -> tuple[list[Key], Tensor]:
        """The words that are never forgotten, and their vectors."""
        return list(self._rows)[: self._known], self._table[: self._known]

    def vectors(self, keys: Sequence[Key]) -> Tensor:
        """(U, D) of distinct words."""
        missing = [key for key in keys if key not in self._rows]
        if self._bytes + self._size(missing) > CACHE:  # forget all: simpler than to find out which were met last
            self._rows = {key: row for key, row in self._rows.items() if row < self._known}
            self._table, self._bytes = self._table[: self._known].clone(), 0
            missing = [key for key in keys if key not in self._rows]
        if missing:
            self._remember(missing)
        return self._table[torch.tensor([self._rows[key] for key in keys])]

    def _size(self, keys: Sequence[Key]) -> int:
        return sum(4 * self._width + 8 * len(characters) + KEY for characters, _ in keys)

    def _remember(self, keys: list[Key]) -> None:
        first = len(self._rows)
        needed = first + len(keys)
        if needed > len(self._table):
            more = torch.empty(max(needed - len(self._table), len(self._table) // 2), self._width)
            self._table = torch.cat([self._table, more])
        order = sorted(range(len(keys)), key=lambda n: len(keys[n][0]))

        def encode(part: list[int]) -> None:
            for some in _of_like_length(part, keys):
                rows = torch.tensor([first + n for n in some])
                self._table[rows] = self._encoder(self._indexer.words([keys[n] for n in some]))

        parts = [order] if len(keys) <= FEW else [order[::2], order[1::2]]
        side_by_side([partial(encode, part) for part in parts])
        self._rows |= {key: first + n for n, key in enumerate(keys)}
        self._bytes += self._size(keys)


def _of_like_length(order: Sequence[int], keys: Sequence[Key]) -> Iterator[list[int]]:
    """Numbers of words, which come by rising length, in groups that are not too large when padded."""
    group: list[int] = []
    for n in order:
        if group and (len(group) == AT_ONCE or (len(group) + 1) * len(keys[n][0]) > CHARACTERS):
            yield group
            group = []
        group.append(n)
    if group:
        yield group
