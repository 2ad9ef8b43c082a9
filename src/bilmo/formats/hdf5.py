"""A weights file in HDF5, read so that it cannot refer to other files or claim more data than it holds.

Knows: h5py. Blind to: what the tensors mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from bilmo.errors import BilmoError, DamagedFile, UnsafeFile, WeightsError
from bilmo.formats.weight_map import Array
from bilmo.store.bundle import Shape

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MOST_OBJECTS, DEEPEST = 10_000, 12
"""A real weights file has some dozens of tensors, six groups deep."""
SLACK, RATIO = 1 << 26, 100
"""At most 64 MB plus a hundred times the file's size is read; weights never compress better."""


def is_hdf5(path: Path) -> bool:
    """Whether a file is HDF5, by its name or its first bytes."""
    if path.suffix.lower() in (".hdf5", ".h5"):
        return True
    with path.open("rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


class WeightsFile:
    """The datasets of an HDF5 file by name; use it in a `with` block."""

    def __init__(self, path: Path) -> None:
        import h5py  # imported here, because it takes a moment and most models do not need it

        self.path = path
        with _naming(path):
            self._file = h5py.File(path, "r")
        self._shapes: dict[str, Shape] | None = None
        self._objects = 0
        self._taken = 0

    def __enter__(self) -> WeightsFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    @property
    def top(self) -> set[str]:
        """Names at the top level; they show what kind of file it is."""
        with _naming(self.path):
            return set(self._file)

    @property
    def shapes(self) -> dict[str, Shape]:
        """Every dataset with its shape; no values are read, but every link is checked."""
        if self._shapes is None:
            with _naming(self.path):
                self._shapes = {name: tuple(dataset.shape) for name, dataset in self._walk(self._file, "", 0)}
        return self._shapes

    def _walk(self, group: Any, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
        import h5py

        for name in group:
            full = f"{prefix}{name}"
            self._objects += 1  # counted for the whole file: groups that contain each other would never end
            if depth > DEEPEST or self._objects > MOST_OBJECTS:
                raise UnsafeFile(f"{self.path}: {full} has more groups than any model")
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise UnsafeFile(
                    f"{self.path}: {full} is a link ({type(link).__name__}). Weights must be stored in the file "
                    "itself; copy them into it."
                )
            item = group[name]
            if isinstance(item, h5py.Group):
                yield from self._walk(item, f"{full}/", depth + 1)
            elif isinstance(item, h5py.Dataset):
                if item.external or item.is_virtual:
                    raise UnsafeFile(
                        f"{self.path}: {full} stores its values in another file, which bilmo does not open"
                    )
                yield full, item

    def read(self, name: str) -> Array:
        """The values of one dataset; impossible sizes are refused before memory is allocated."""
        with _naming(self.path):
            dataset = self._file[name]
            if dataset.dtype.kind != "f":
                raise WeightsError(
                    f"{self.path}: {name} contains {dataset.dtype}; weights must be floating-point numbers"
                )
            stored, size = dataset.id.get_storage_size(), dataset.size * dataset.dtype.itemsize
            held = self.path.stat().st_size
            chunk = int(np.prod(dataset.chunks, dtype=np.float64)) * dataset.dtype.itemsize if dataset.chunks else 0
            self._taken += max(size, chunk)
            if self._taken > SLACK + RATIO * held:
                raise UnsafeFile(f"{self.path}: {name} claims {max(size, chunk):,} bytes in a file of {held:,}")
            if not dataset.chunks and stored != size:
                raise DamagedFile(f"{self.path}: {name} should have {size:,} bytes, but has {stored:,}")
            return np.asarray(dataset[()])


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn the many errors that h5py raises for a damaged file into one."""
    try:
        yield
    except BilmoError:
        raise
    except Exception as error:
        raise DamagedFile(f"{path}: cannot be read as HDF5 ({error}). It is truncated, damaged or not HDF5.") from None
