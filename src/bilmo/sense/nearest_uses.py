"""The stored uses nearest to a vector: exact by comparing all, or approximate with faiss.

Up to EXACT_USES all uses are compared, which needs no other library. Above that, faiss sorts the uses into cells by
k-means and keeps a short code of each. A search reads the codes of the cells nearest to the vector, and compares
the vectors of the best of them exactly.

Knows: segments, faiss (only if it is used). Blind to: models, text.
"""

# N uses, W width of a vector

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import DamagedFile, need
from bilmo.sense.segment import VECTORS as VECTORS_FILE
from bilmo.sense.segment import Floats, Segment, Stored, kinds, unpacked
from bilmo.store.atomic import new_file

Numbers = NDArray[np.intp]

EXACT_USES = 100_000
"""Uses of a segment up to which all are compared."""
BLOCK_USES = 1 << 13
"""Uses compared at a time."""
TIE = 1e-5
"""More than what rounding changes in a cosine: candidates this close to the last one are compared once more."""

CELL_USES = 512
"""Uses per cell, on average, up to MOST_CELLS cells."""
MOST_CELLS = 1_024
TRAIN_USES = 40
"""Uses per cell from which k-means learns."""
CODE_WIDTH = 4
"""Numbers of a vector that become one code of four bits."""
PROBED = 0.08
"""Share of the cells that a search reads; at least LEAST_PROBED."""
LEAST_PROBED = 32
CANDIDATES = 20
"""Codes whose vectors are compared exactly, for each use that is wanted; at least LEAST_CANDIDATES."""
LEAST_CANDIDATES = 200


def installed() -> bool:
    """Whether faiss can be imported."""
    return find_spec("faiss") is not None


def nearest(segment: Segment, vector: Floats, most: int, among: Numbers | None = None) -> tuple[Numbers, Floats]:
    """Up to `most` uses and their cosines with a vector (W,), nearest first; equal ones in the order of the text.

    among: the uses that are compared; by default all.
    """
    total = len(segment) if among is None else len(among)
    numbers, scores = np.empty(0, np.intp), np.empty(0, np.float32)
    for begin in range(0, total, BLOCK_USES):
        end = min(total, begin + BLOCK_USES)
        values = segment.part(begin, end) if among is None else segment.take(among[begin:end])
        here = np.arange(begin, end) if among is None else among[begin:end]
        numbers, scores = _best(np.concatenate([numbers, here]), np.concatenate([scores, values @ vector]), most)
    return compared(segment, vector, most, numbers)


def _best(numbers: Numbers, scores: Floats, most: int) -> tuple[Numbers, Floats]:
    """Those that may be among the best, all ties included."""
    if len(scores) <= most:
        return numbers, scores
    kept = scores >= np.partition(scores, -most)[-most] - TIE
    return numbers[kept], scores[kept]


def compared(segment: Segment, vector: Floats, most: int, candidates: Numbers) -> tuple[Numbers, Floats]:
    """The nearest of some uses. The same use gets the same cosine, whichever others it is compared with."""
    candidates = np.sort(candidates)
    scores = (segment.take(candidates) * vector).sum(axis=1)
    order = np.argsort(-scores, kind="stable")[:most]
    return candidates[order], scores[order]


class Approximate:
    """A structure of faiss over all uses of a segment."""

    def __init__(self, path: Path) -> None:
        faiss = need("faiss", extra="search", purpose="Approximate search")
        try:
            self._index = faiss.read_index(str(path))
        except (RuntimeError, MemoryError) as error:
            raise DamagedFile(f"{path}: cannot be read by faiss {faiss.__version__} ({error}).") from None
        self._path = path
        self._index.nprobe = max(LEAST_PROBED, round(PROBED * self._index.nlist))

    def nearest(self, segment: Segment, vector: Floats, most: int) -> tuple[Numbers, Floats]:
        """As the function `nearest`, but a few of the nearest may be missed."""
        wanted = max(LEAST_CANDIDATES, CANDIDATES * most)
        _, found = self._index.search(np.ascontiguousarray(vector[None]), min(wanted, len(segment)))
        numbers = found[0][found[0] >= 0].astype(np.intp)
        if numbers.max(initial=0) >= len(segment):
            raise DamagedFile(f"{self._path}: belongs to another index. Build the index again.")
        return compared(segment, vector, most, numbers)


def write_approximate(folder: Path, target: Path, uses: int, width: int, stored: Stored) -> None:
    """Make the structure for the uses of a segment. Vectors are read in blocks; only the codes are in memory."""
    faiss: Any = need("faiss", extra="search", purpose="Approximate search")
    values = np.memmap(folder / VECTORS_FILE, dtype=kinds(width, stored)[VECTORS_FILE].base, mode="r")
    vectors = values.reshape(uses, width)
    cells = int(min(MOST_CELLS, max(1, uses // CELL_USES)))
    index = faiss.IndexIVFPQFastScan(
        faiss.IndexFlatIP(width), width, cells, -(-width // CODE_WIDTH), 4, faiss.METRIC_INNER_PRODUCT
    )
    drawn = np.sort(np.random.default_rng(0).choice(uses, min(uses, TRAIN_USES * cells), replace=False))
    index.cp.max_points_per_centroid = TRAIN_USES
    index.train(unpacked(vectors[drawn]))
    for begin in range(0, uses, BLOCK_USES):
        index.add(unpacked(vectors[begin : begin + BLOCK_USES]))
    with new_file(target) as partial:
        faiss.write_index(index, str(partial))
