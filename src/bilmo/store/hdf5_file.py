"""Write an HDF5 file. An error of the disk is an OSError, and the process survives it.

If a write fails inside the HDF5 library, the library cannot close the file, and the process crashes when it ends. So
HDF5 writes to a Python object that never fails: after the first error it keeps all further writes in memory, and the
error is raised when the library has returned. For the same reason Ctrl-C waits until the library has returned.

Knows: h5py. Blind to: what is written.
"""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py


class HDF5Writer:
    """A new HDF5 file; use it in a `with` block, and call h5py only within `writing`."""

    def __init__(self, path: Path) -> None:
        self._raw = io.FileIO(path, "w+")
        self._disk = _Disk(self._raw)
        with _ctrl_c_waits():
            self._file = h5py.File(self._disk, "w")

    def __enter__(self) -> HDF5Writer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        try:
            with self._checked():
                self._file.close()
        except (OSError, KeyboardInterrupt):
            if error is None:  # else that error is the first one
                raise
        finally:
            self._raw.close()

    @contextmanager
    def writing(self) -> Iterator[h5py.File]:
        """The file, for some calls of h5py; an error of the disk is raised at the end of the block."""
        with self._checked():
            yield self._file

    @contextmanager
    def _checked(self) -> Iterator[None]:
        with _ctrl_c_waits():
            yield
        if self._disk.error is not None:
            raise self._disk.error


class _Disk(io.RawIOBase):
    """The methods that h5py calls on a file. No method raises an error; the first one is kept in `error`."""

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__()
        self._raw = raw
        self._at = self._end = 0
        self._unwritten: list[tuple[int, bytes]] = []
        """Position and content of each write since the first error; HDF5 may read it again before it is closed."""
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = self._end + offset if whence == os.SEEK_END else offset
        return self._at

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self.error is None:
            try:
                self._raw.seek(self._at)
                done = 0
                while done < len(view):
                    done += self._raw.write(view[done:])
            except OSError as error:
                self.error = error
        if self.error is not None:
            self._unwritten.append((self._at, bytes(view)))
        self._at += len(view)
        self._end = max(self._end, self._at)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        done = 0
        try:
            self._raw.seek(self._at)
            while some := self._raw.readinto(view[done:]):
                done += some
        except OSError as error:
            self.error = self.error or error
        view[done:] = bytes(len(view) - done)
        for at, data in self._unwritten:
            first, last = max(at, self._at), min(at + len(data), self._at + len(view))
            if first < last:
                view[first - self._at : last - self._at] = data[first - at : last - at]
        self._at += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        self._end = self._at if size is None else size
        if self.error is None:
            try:
                self._raw.truncate(self._end)
            except OSError as error:
                self.error = error
        return self._end


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Let Ctrl-C interrupt at the end of the block. Python interrupts only the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = threading.Event()
    usual = signal.signal(signal.SIGINT, lambda number, frame: pressed.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if pressed.is_set():
            signal.raise_signal(signal.SIGINT)
