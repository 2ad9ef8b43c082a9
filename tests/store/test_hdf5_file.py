"""HDF5 files on a disk that is full: an error that can be caught, and a process that lives on and ends normally."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading

import h5py
import numpy as np
import pytest

from bilmo.store.hdf5_file import HDF5Writer, _Disk

LIMITS = [0, 1, 96, 800, 2047, 2048, 2500, 4096, 10_000, 30_000, 60_000, 80_000, 90_000]
WRITE = """
import os, resource, sys
from pathlib import Path
import numpy as np
from bilmo.embed.output import hdf5
from bilmo.embed.output.table import EmbeddedText, Table, VectorSpec
from bilmo.errors import OutputError

spec = VectorSpec(width=8, layers=3, split_by_bilmo=True)
rows = [EmbeddedText(f"word {n}", ["word", str(n)], np.full((3, 2, 8), n, np.float32)) for n in range(150)]
table = Table(spec, lambda: iter(rows), 150, 300)
for limit in map(int, sys.argv[1:]):
    if not os.fork():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            hdf5.write(Path("v.h5"), table)
        except OutputError as error:
            print(limit, error, flush=True)
        sys.exit(0)
    _, status = os.wait()
    assert status == 0, f"with {limit} bytes the process ended with {os.waitstatus_to_exitcode(status)}"
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and limits")
def test_a_full_disk_is_an_error_and_not_a_crash(tmp_path):
    """A crash comes when the process ends, so each limit has a process of its own."""
    command = [sys.executable, "-c", WRITE, *map(str, LIMITS)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{limit} v.h5: cannot be written (File too large)." for limit in LIMITS]
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_is_read_back(tmp_path):
    with HDF5Writer(tmp_path / "a.h5") as new:
        for number in range(1, 300):
            with new.writing() as file:
                file.create_dataset(f"deep/{number}", data=np.arange(number), chunks=(number + 1) // 2)
    with h5py.File(tmp_path / "a.h5") as file:
        assert all(np.array_equal(file[f"deep/{number}"], np.arange(number)) for number in range(1, 300))


class FullDisk(io.FileIO):
    """A file that can be read and cannot grow."""

    room = 3000

    def write(self, data) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        done = super().write(data[: self.room])
        self.room -= done
        return done

    def truncate(self, size: int | None = None) -> int:
        raise OSError(28, "No space left on device")


def test_the_library_finds_what_could_not_be_written(tmp_path):
    """HDF5 reads parts of its file again before it is closed; it must find them, or it cannot close the file."""
    with FullDisk(tmp_path / "a.h5", "w+") as raw:
        disk = _Disk(raw)
        with h5py.File(disk, "w") as file:
            for number in range(200):
                file[f"{number}"] = np.arange(number)
            file.flush()
        with h5py.File(disk, "r") as file:
            assert all(np.array_equal(file[f"{number}"], np.arange(number)) for number in range(200))
    assert "No space left" in str(disk.error)


def test_ctrl_c_waits_until_the_library_has_returned(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), HDF5Writer(tmp_path / "a.h5") as new:
            with new.writing() as file:
                signal.raise_signal(signal.SIGINT)
                file["a"] = [1, 2]
            pytest.fail("Ctrl-C was forgotten")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["a"][...].tolist() == [1, 2]


def test_other_threads_may_write_too(tmp_path):
    def write() -> None:
        with HDF5Writer(tmp_path / "a.h5") as new, new.writing() as file:
            file["a"] = [1, 2]

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["a"][...].tolist() == [1, 2]


def test_the_first_error_is_raised(tmp_path):
    with pytest.raises(ValueError, match="the real one"), HDF5Writer(tmp_path / "a.h5"):
        raise ValueError("the real one")
