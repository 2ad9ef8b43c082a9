"""Vectors of words without context, each computed once: real text repeats its words.

Any number of threads may use one cache.

Knows: a word encoder, Indexer. Blind to: sentences.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

import torch
from torch import Tensor

from bilmo.ids.batch import Indexer, Key, Words
from bilmo.net.kernels.threads import side_by_side

CACHE_BYTES = 1 << 26
"""Bytes of words and their vectors that are kept."""
KEY_BYTES = 250
"""Bytes, roughly, that Python needs for the key and the row of a word, whatever its length."""
ONE_CALL_WORDS = 32
"""Up to this many words, one call with all threads is faster than two parallel halves."""
GROUP_WORDS, GROUP_CHARACTERS = 512, 1 << 16
"""Words encoded at a time, grouped by length; and their characters, padding included."""

_lock = Lock()
"""Held while a cache is read or changed, not while words are encoded. One for all caches, so that one handler frees it
in a forked process."""
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class WordCache:
    """Vectors of words that occurred before; preloaded ones are never dropped."""

    def __init__(self, encoder: Callable[[Words], Tensor], indexer: Indexer, width: int) -> None:
        self._encoder, self._indexer, self._width = encoder, indexer, width
        self._table = _empty(0, width)
        self._rows: dict[Key, int] = {}
        self._preloaded = 0
        self._bytes = 0

    def preload(self, keys: Sequence[Key], vectors: Tensor) -> None:
        """Fill an empty cache with words whose vectors were computed beforehand."""
        self._table = vectors.clone()
        self._rows = {key: row for row, key in enumerate(keys)}
        self._preloaded = len(vectors)

    def preloaded(self) -> tuple[list[Key], Tensor]:
        """The preloaded words and their vectors."""
        with _lock:
            return list(self._rows)[: self._preloaded], self._table[: self._preloaded]

    def vectors(self, keys: Sequence[Key]) -> Tensor:
        """(U, D) of distinct words."""
        with _lock:
            rows = [self._rows.get(key, -1) for key in keys]
            if -1 not in rows:
                return self._table[torch.tensor(rows, device="cpu")]
            found = [place for place, row in enumerate(rows) if row >= 0]
            vectors = _empty(len(keys), self._width)
            vectors[found] = self._table[[rows[place] for place in found]]
        missing = [place for place, row in enumerate(rows) if row < 0]
        new = [keys[place] for place in missing]
        vectors[missing] = encoded = self._encode(new)
        with _lock:
            self._add(new, encoded)
        return vectors

    def _encode(self, keys: list[Key]) -> Tensor:
        """(U, D) of distinct words by the encoder, in groups of similar length that stay small when padded."""
        vectors = _empty(len(keys), self._width)

        def encode(part: list[int]) -> None:
            group: list[int] = []
            for at, n in enumerate(part):
                group.append(n)
                full = at + 1 == len(part) or len(group) == GROUP_WORDS
                if full or (len(group) + 1) * len(keys[part[at + 1]][0]) > GROUP_CHARACTERS:
                    # A product of one row is rounded differently. A word that is alone is computed twice, so that its
                    # vector does not depend on which words were new.
                    both = group * 2 if len(group) == 1 else group
                    vectors[group] = self._encoder(self._indexer.words([keys[n] for n in both]))[: len(group)]
                    group = []

        order = sorted(range(len(keys)), key=lambda n: len(keys[n][0]))
        parts = [order] if len(keys) <= ONE_CALL_WORDS else [order[::2], order[1::2]]
        side_by_side([partial(encode, part) for part in parts])
        return vectors

    def _add(self, keys: list[Key], vectors: Tensor) -> None:
        """Keep words that no other thread has added; if they do not fit, drop all but the preloaded ones first."""
        new = [n for n, key in enumerate(keys) if key not in self._rows]
        size = sum(4 * self._width + 8 * len(keys[n][0]) + KEY_BYTES for n in new)
        if self._bytes + size > CACHE_BYTES:  # simpler than tracking recent use
            self._rows = {key: row for key, row in self._rows.items() if row < self._preloaded}
            self._table, self._bytes = self._table[: self._preloaded].clone(), 0
        first = len(self._rows)
        beyond = first + len(new) - len(self._table)
        if beyond > 0:
            more = _empty(max(beyond, len(self._table) // 2), self._width)
            self._table = torch.cat([self._table, more])
        self._table[first : first + len(new)] = vectors[new]
        self._rows |= {keys[n]: first + k for k, n in enumerate(new)}
        self._bytes += size


def _empty(rows: int, width: int) -> Tensor:
    """A table on the CPU in float32, whatever torch's defaults are."""
    return torch.empty(rows, width, dtype=torch.float32, device="cpu")
