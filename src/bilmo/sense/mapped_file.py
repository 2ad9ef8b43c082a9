"""Large arrays in files that are read in place. Each block is compared with its hash when it is first read.

So a file of any size is opened at once and takes no memory of its own, and a damaged part of it is still noticed
before anyone sees its values.

Knows: numpy, the file system. Blind to: what the rows mean.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bilmo.errors import DamagedFile
from bilmo.store.validate import regular_file

BLOCK = 1 << 12
"""Bytes of a block. A search reads single rows here and there, so small blocks mean little to hash."""
HASH_BYTES = 8
READ_BYTES = BLOCK << 10
"""Bytes hashed at a time when a file has been written."""


def block_hashes(path: Path) -> bytes:
    """The hashes of all blocks of a file, one after the other."""
    found = bytearray()
    with path.open("rb") as file:
        while some := file.read(READ_BYTES):
            for at in range(0, len(some), BLOCK):
                found += _hash(some[at : at + BLOCK])
    return bytes(found)


def hashes_length(size: int) -> int:
    """Bytes of the hashes of a file of this size."""
    return HASH_BYTES * -(-size // BLOCK)


def _hash(block: bytes | memoryview) -> bytes:
    return hashlib.blake2b(block, digest_size=HASH_BYTES).digest()


class MappedRows:
    """Rows of one kind in a file."""

    def __init__(self, path: Path, dtype: DTypeLike, rows: int, hashes: bytes, remedy: str) -> None:
        """`hashes`: as `block_hashes` gave them; `remedy`: what to do if the file is damaged, as a sentence."""
        self._path, self._remedy = path, remedy
        self._kind, self._rows = np.dtype(dtype), rows
        size = rows * self._kind.itemsize
        found = regular_file(path, remedy).stat().st_size
        if found != size or len(hashes) != hashes_length(size):
            raise DamagedFile(f"{path}: has {found:,} bytes, but should have {size:,}. {remedy}")
        # An empty file cannot be mapped.
        self._raw = np.memmap(path, dtype=np.uint8, mode="r", shape=(size,)) if size else np.empty(0, np.uint8)
        self._values: NDArray[Any] = np.ndarray((rows, *self._kind.shape), self._kind.base, buffer=self._raw)
        self._hashes = hashes
        self._checked = np.zeros(len(hashes) // HASH_BYTES, dtype=bool)

    def __len__(self) -> int:
        return self._rows

    def part(self, begin: int, end: int) -> NDArray[Any]:
        """Rows from `begin` to `end`, in place."""
        width = self._kind.itemsize
        if end > begin:
            self._check(np.arange(begin * width // BLOCK, (end * width - 1) // BLOCK + 1))
        return self._values[begin:end]

    def take(self, numbers: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """A copy of the rows of these numbers."""
        width = self._kind.itemsize
        first = numbers.astype(np.int64) * width // BLOCK
        last = (numbers.astype(np.int64) * width + width - 1) // BLOCK
        most = int((last - first).max(initial=0))
        self._check(np.minimum(np.add.outer(np.arange(most + 1), first), last).ravel())
        found: NDArray[Any] = self._values[numbers]
        return found

    def _check(self, blocks: NDArray[np.integer[Any]]) -> None:
        for block in np.unique(blocks[~self._checked[blocks]]).tolist():
            at = block * BLOCK
            if _hash(self._raw[at : at + BLOCK].data) != self._hashes[block * HASH_BYTES : (block + 1) * HASH_BYTES]:
                raise DamagedFile(f"{self._path}: is damaged near byte {at:,} (its hash differs). {self._remedy}")
            self._checked[block] = True
