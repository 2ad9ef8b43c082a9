"""Weights files that refer to other files, claim more than they hold, or are damaged."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from bilmo.errors import BilmoError, DamagedFile, UnsafeFile, WeightsError
from bilmo.formats import open as layouts
from bilmo.formats.hdf5 import WeightsFile, is_hdf5

import old_models
from old_models import cuts, flips, little_memory, write_hdf5

NAME = "CNN_proj/b_proj"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model without one of its tensors, which a test then adds in its own way."""
    write_hdf5(tmp_path / "model")
    with h5py.File(tmp_path / "model" / "weights.hdf5", "a") as file:
        del file[NAME]
    return tmp_path / "model"


def refused(model: Path, error: type[BilmoError], says: str) -> None:
    with little_memory(), pytest.raises(error, match=says) as caught:
        layouts.read(model)
    assert str(model / "weights.hdf5") in str(caught.value)


def test_shapes_are_known_without_a_value_being_read(tmp_path):
    old_models.write_arrays(
        tmp_path / "w.h5", {"a/b": np.ones((2, 3)), "c": np.array(1, np.float32), "d": np.ones((0, 4))}
    )
    with WeightsFile(tmp_path / "w.h5") as file:
        assert file.shapes == {"a/b": (2, 3), "c": (), "d": (0, 4)}
        assert file.top == {"a", "c", "d"}
        assert file.read("a/b").tolist() == [[1, 1, 1], [1, 1, 1]]
        assert file.read("c") == 1


def test_a_file_is_known_by_its_first_bytes_or_its_ending(tmp_path):
    old_models.write_arrays(tmp_path / "no ending", {"a": np.ones(2)})
    for name in ("x.hdf5", "x.H5", "x.bin"):
        (tmp_path / name).write_bytes(b"")
    assert [is_hdf5(path) for path in sorted(tmp_path.iterdir())] == [True, True, False, True]
    assert not is_hdf5(tmp_path / "x.bin")


def test_a_link_into_another_file_is_refused(model):
    old_models.write_arrays(model.parent / "secret", {"x": np.ones(4, np.float32)})
    with h5py.File(model / "weights.hdf5", "a") as file:
        file[NAME] = h5py.ExternalLink(str(model.parent / "secret"), "/x")
    refused(model, UnsafeFile, r"CNN_proj/b_proj is a link \(ExternalLink\).*copy them into it")


def test_a_link_that_takes_the_place_of_a_group_is_refused(model):
    with h5py.File(model / "weights.hdf5", "a") as file:
        del file["CNN_proj"]
        file["CNN_proj"] = h5py.ExternalLink("/etc/passwd", "/")
    refused(model, UnsafeFile, "CNN_proj is a link")


def test_a_soft_link_is_refused(model):
    with h5py.File(model / "weights.hdf5", "a") as file:
        file[NAME] = h5py.SoftLink("/CNN/b_cnn_0")
    refused(model, UnsafeFile, r"CNN_proj/b_proj is a link \(SoftLink\)")


def test_values_kept_in_another_file_are_refused(model):
    (model.parent / "raw").write_bytes(bytes(16))
    with h5py.File(model / "weights.hdf5", "a") as file:
        file.create_dataset(NAME, shape=(4,), dtype="f4", external=[(str(model.parent / "raw"), 0, 16)])
    refused(model, UnsafeFile, "CNN_proj/b_proj stores its values in another file, which bilmo does not open")


def test_a_virtual_dataset_is_refused(model):
    old_models.write_arrays(model.parent / "secret", {"x": np.ones(4, np.float32)})
    layout = h5py.VirtualLayout(shape=(4,), dtype="f4")
    layout[:] = h5py.VirtualSource(str(model.parent / "secret"), "x", shape=(4,))
    with h5py.File(model / "weights.hdf5", "a") as file:
        file.create_virtual_dataset(NAME, layout)
    refused(model, UnsafeFile, "CNN_proj/b_proj stores its values in another file")


def test_a_giant_that_is_only_claimed_is_refused(tmp_path):
    old = write_hdf5(tmp_path)
    old.options["lstm"] |= {"projection_dim": 10**6, "dim": 10**7}
    old_models.write_json(tmp_path / "options.json", old.options)
    cells = {"W_0": (2 * 10**6, 4 * 10**7), "B": (4 * 10**7,), "W_P_0": (10**7, 10**6)}
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        del file["CNN_proj"], file["RNN_0"], file["RNN_1"]
        file.create_dataset("CNN_proj/W_proj", shape=(7, 10**6), dtype="f4", chunks=(7, 1000))
        file.create_dataset("CNN_proj/b_proj", shape=(10**6,), dtype="f4", chunks=(1000,))
        for direction in (0, 1):
            for layer in (0, 1):
                for part, shape in cells.items():
                    name = old_models.CELL.format(direction, layer) + part
                    file.create_dataset(name, shape=shape, dtype="f4", chunks=tuple(min(n, 1000) for n in shape))
    assert (tmp_path / "weights.hdf5").stat().st_size < 10**5
    refused(tmp_path, UnsafeFile, r"W_0 claims 320,000,000,000,000 bytes in a file of ")


def test_many_claims_that_are_too_much_together_are_refused(tmp_path):
    with h5py.File(tmp_path / "w.h5", "w") as file:
        for k in range(8):
            file.create_dataset(str(k), shape=(2**22,), dtype="f4", chunks=(2**10,))
    with WeightsFile(tmp_path / "w.h5") as file:
        read = 0
        with pytest.raises(UnsafeFile, match="claims 16,777,216 bytes"):
            for name in file.shapes:
                file.read(name)
                read += 1
    assert read == 4


def test_a_giant_chunk_of_a_small_dataset_is_refused(model):
    with h5py.File(model / "weights.hdf5", "a") as file:
        file.create_dataset(NAME, shape=(4,), maxshape=(None,), dtype="f4", chunks=(2**29,))
    refused(model, UnsafeFile, "CNN_proj/b_proj claims 2,147,483,648 bytes")


def test_values_that_were_never_written_are_damage(model):
    with h5py.File(model / "weights.hdf5", "a") as file:
        file.create_dataset(NAME, shape=(4,), dtype="f4")
    refused(model, DamagedFile, "CNN_proj/b_proj should have 16 bytes, but has 0")


def test_strings_instead_of_numbers_are_refused_without_reading_them(model):
    with h5py.File(model / "weights.hdf5", "a") as file:
        file.create_dataset(NAME, shape=(4,), dtype=h5py.string_dtype(), data=["x" * 10**6] * 4)
    refused(model, WeightsError, "CNN_proj/b_proj contains object; weights must be floating-point numbers")


def test_a_dataset_without_a_shape_is_refused(model):
    with h5py.File(model / "weights.hdf5", "a") as file:
        file[NAME] = h5py.Empty("f4")
    refused(model, DamagedFile, "cannot be read as HDF5")


def test_a_group_in_the_place_of_a_dataset_is_a_missing_tensor(model):
    with h5py.File(model / "weights.hdf5", "a") as file:
        file.create_group(NAME)
    refused(model, WeightsError, "CNN_proj/b_proj is missing")


def test_a_group_that_holds_itself_is_refused(model):
    with h5py.File(model / "weights.hdf5", "a") as file:
        file["CNN_proj/again"] = file["CNN_proj"]
    refused(model, UnsafeFile, "has more groups than any model")


def test_groups_that_hold_each_other_many_times_over_are_refused_soon(model):
    with h5py.File(model / "weights.hdf5", "a") as file:
        inner = file.create_group("level_0")
        for level in range(1, 9):
            outer = file.create_group(f"level_{level}")
            for k in range(10):  # ten to the eighth paths in all
                outer[str(k)] = inner
            inner = outer
    refused(model, UnsafeFile, "has more groups than any model")


def test_more_groups_than_any_model_has_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("bilmo.formats.hdf5.MOST_OBJECTS", 100)
    with h5py.File(tmp_path / "w.h5", "w") as file:
        group = file.create_group("RNN_0")
        for k in range(100):
            group.create_group(str(k))
    with WeightsFile(tmp_path / "w.h5") as file, pytest.raises(UnsafeFile, match="has more groups than any model"):
        assert file.shapes


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"PK\x03\x04", b"<html>"], ids=repr)
def test_something_else_under_the_name_of_weights(tmp_path, content):
    write_hdf5(tmp_path)
    (tmp_path / "weights.hdf5").write_bytes(content)
    refused(tmp_path, DamagedFile, "cannot be read as HDF5 .* truncated, damaged or not HDF5")


def test_cuts_and_flips_of_a_packed_file_are_read_or_refused(tmp_path):
    path = tmp_path / "w.h5"
    arrays = old_models.bilmtf().arrays
    with h5py.File(path, "w", libver="latest") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, chunks=True, compression="gzip", fletcher32=True)
    good = path.read_bytes()
    read = 0
    with little_memory():
        for bad in (*cuts(good), *flips(good, 100)):
            path.write_bytes(bad)
            try:
                with WeightsFile(path) as file:
                    for name in file.shapes:
                        file.read(name)
                read += 1
            except BilmoError as error:
                assert str(path) in str(error)
    assert read < 100
