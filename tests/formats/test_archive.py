"""Models in a zip: equal to folders, and harmful zips are refused."""

from __future__ import annotations

import stat
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bilmo
from bilmo.errors import BilmoError, DamagedFile, NotAModel, UnsafeFile, WeightsError
from bilmo.formats import open as layouts
from bilmo.formats.archive import MOST_FILES, unpacked

from old_models import SENTENCES, cuts, flips, little_memory, write_checkpoint, write_hdf5, write_manylangs, zipped


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """Everything that a test unpacks is removed at its end."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert list(place.glob("bilmo-*")) == []


def write_own(folder: Path) -> None:
    write_hdf5(folder.parent / "source")
    layouts.write(layouts.read(folder.parent / "source"), folder, "bilmo")


WRITERS = {
    "HDF5": write_hdf5,
    "checkpoint": write_checkpoint,
    "ELMoForManyLangs": write_manylangs,
    "ours": write_own,
}


@pytest.mark.parametrize("inside", ["", "136", "a/b"])
@pytest.mark.parametrize("layout", WRITERS)
def test_a_zip_is_the_folder_it_was_made_of(tmp_path, layout, inside):
    WRITERS[layout](tmp_path / "model")
    path = zipped(tmp_path / "model", tmp_path / "model.zip", inside)
    if inside == "a/b":
        with pytest.raises(NotAModel, match="is not a model; it contains b"):
            layouts.read(path)
        return
    folder, archive = (bilmo.load(p, start="zero").layers(SENTENCES) for p in (tmp_path / "model", path))
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(folder, archive, strict=True))


def test_a_zip_needs_no_ending_and_files_that_macos_adds_are_ignored(tmp_path):
    write_hdf5(tmp_path / "model")
    path = zipped(tmp_path / "model", tmp_path / "136", "elmo")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/elmo/._weights.hdf5", b"x")
    assert layouts.read(path).config == layouts.read(tmp_path / "model").config


def test_mistakes_in_a_zip_are_named_by_the_zip(tmp_path):
    write_hdf5(tmp_path / "model", as_dumped=True, layers=1)
    (tmp_path / "model" / "options.json").write_text("{}")
    path = zipped(tmp_path / "model", tmp_path / "model.zip", "elmo")
    with pytest.raises(BilmoError) as caught:
        layouts.read(path)
    assert str(caught.value).startswith(f"{path}/elmo/options.json: ")
    assert "temporary" not in str(caught.value)


def test_notes_on_a_zip_name_the_zip(tmp_path):
    write_hdf5(tmp_path / "model")
    (tmp_path / "model" / "other.h5").write_bytes(b"")
    (note,) = layouts.read(zipped(tmp_path / "model", tmp_path / "model.zip")).notes
    assert note.startswith(f"not read: {tmp_path}/model.zip/other.h5: ")


def test_an_empty_zip_and_one_without_a_model(tmp_path):
    for files, says in (((), "it contains nothing"), (("readme.txt", "b.txt"), "it contains b.txt, readme.txt")):
        path = tmp_path / "some.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name in files:
                archive.writestr(name, "hello")
        with pytest.raises(NotAModel, match=says) as caught:
            layouts.read(path)
        assert str(caught.value).startswith(f"{path}: ")


# Harm


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/tmp/evil", "..\\evil", "C:/evil", "C:\\evil", "\\\\host\\evil", "a/..", ".."]
)
def test_a_path_out_of_the_folder_is_refused(tmp_path, name):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("options.json", "{}")
        archive.writestr(zipfile.ZipInfo(name), b"evil")
    with pytest.raises(UnsafeFile, match=r"evil\.zip: .* would be unpacked outside its folder"):
        layouts.read(path)
    assert [file.name for file in tmp_path.rglob("*evil*")] == ["evil.zip"]


def test_a_link_is_refused(tmp_path):
    path = tmp_path / "evil.zip"
    member = zipfile.ZipInfo("options.json")
    member.create_system = 3
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(UnsafeFile, match=r"'options\.json' is a link; a model may contain only files"):
        layouts.read(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("weights.hdf5", "w") as member:
        for _ in range(80):
            member.write(bytes(1 << 20))
    with little_memory(), pytest.raises(UnsafeFile, match=r"would unpack from .* to 83,886,080 bytes"):
        layouts.read(path)


def test_many_small_bombs_are_one_large_one(tmp_path):
    path = tmp_path / "bomb.zip"
    block = bytes(1 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for k in range(3):
            with archive.open(f"{k}.hdf5", "w") as member:
                for _ in range(30):
                    member.write(block)
    with little_memory(), pytest.raises(UnsafeFile, match=r"would unpack from .* to 94,371,840 bytes"):
        layouts.read(path)


def test_too_many_files_are_refused(tmp_path):
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for k in range(MOST_FILES + 1):
            archive.writestr(str(k), b"")
    with pytest.raises(UnsafeFile, match="contains 10,001 files; no model has more than 10,000"):
        layouts.read(path)


def test_more_than_the_disk_holds_is_refused(tmp_path, monkeypatch):
    write_hdf5(tmp_path / "model")
    path = zipped(tmp_path / "model", tmp_path / "model.zip")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(UnsafeFile, match=r"but .* has only 1,000 free"):
        layouts.read(path)


# Damage


def test_a_wrong_checksum_is_damage(tmp_path):
    write_hdf5(tmp_path / "model")
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for file in (tmp_path / "model").iterdir():
            archive.write(file, file.name)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"projection_dim"', b'"Projection_dim"'))
    with pytest.raises(DamagedFile, match=r"cannot be unpacked \(Bad CRC-32 for file 'options.json'\)"):
        layouts.read(path)


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_cuts_and_flips_are_read_or_refused(tmp_path, kind):
    write_hdf5(tmp_path / "model", filters=((1, 2),), layers=1)
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w", kind) as archive:
        for file in (tmp_path / "model").iterdir():
            archive.write(file, file.name)
    good = path.read_bytes()
    for bad in cuts(good):
        path.write_bytes(bad)
        with pytest.raises(BilmoError, match=str(path)):
            layouts.read(path)
    tail = good[-200:]  # the list of files, where a zip is read first
    for bad in (*flips(good, 40), *(good[:-200] + end for end in flips(tail, 60))):
        path.write_bytes(bad)
        try:
            layouts.read(path)
        except BilmoError as error:
            assert str(path) in str(error)


def test_a_zip_with_a_file_that_is_also_a_folder_is_damaged(tmp_path):
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"")
        archive.writestr("a/b", b"")
    with pytest.raises(DamagedFile, match="cannot be unpacked"):
        layouts.read(path)


def test_a_name_longer_than_any_file_system_takes_is_damage(tmp_path):
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a" * 300, b"")
    with pytest.raises(DamagedFile, match="cannot be unpacked"):
        layouts.read(path)


def test_a_locked_zip_is_not_read(tmp_path):
    write_hdf5(tmp_path / "model")
    path = zipped(tmp_path / "model", tmp_path / "model.zip")
    data = bytearray(path.read_bytes())
    for begin, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(begin, at + 1)) >= 0:
            data[at + flag] |= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match="encrypted"):
        layouts.read(path)


def test_a_mistake_while_the_folder_is_used_is_not_blamed_on_the_zip(tmp_path):
    write_hdf5(tmp_path / "model")
    path = zipped(tmp_path / "model", tmp_path / "model.zip")
    for error in (WeightsError("w"), RuntimeError("r"), ValueError("v"), EOFError("e")):
        with pytest.raises(type(error), match=f"^{error}$"), unpacked(path):
            raise error
