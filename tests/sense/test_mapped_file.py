"""Rows of files that are read in place, and compared with hashes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.errors import DamagedFile
from bilmo.sense import mapped_file
from bilmo.sense.mapped_file import BLOCK, MappedRows, block_hashes

KINDS = [
    np.dtype("<u4"),
    np.dtype(("<f2", (5,))),
    np.dtype(("i1", (BLOCK + 3,))),
    np.dtype([("a", "<u8"), ("b", "u1")]),
]


def written(path, kind, rows):
    data = np.random.default_rng(rows).bytes(rows * kind.itemsize)
    path.write_bytes(data)
    return np.ndarray((rows, *kind.shape), kind.base, buffer=data)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("rows", [0, 1, 2, 3000])
def test_rows_are_those_of_the_file(tmp_path, kind, rows):
    rows = min(rows, 40_000 // kind.itemsize + 2) if rows else 0
    wanted = written(tmp_path / "rows", kind, rows)
    found = MappedRows(tmp_path / "rows", kind, rows, block_hashes(tmp_path / "rows"), "")
    assert len(found) == rows
    drawn = np.random.default_rng(0).integers(0, max(1, rows), 7 if rows else 0)
    assert found.take(drawn).tobytes() == wanted[drawn].tobytes()
    assert found.part(rows // 3, rows).tobytes() == wanted[rows // 3 :].tobytes()


@settings(max_examples=40)
@given(st.data())
def test_a_changed_byte_is_noticed_by_whoever_reads_its_block(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("rows") / "rows"
    kind = np.dtype(("u1", (data.draw(st.sampled_from([1, 7, 5000])),)))
    rows = 20_000 // kind.itemsize
    written(path, kind, rows)
    hashes = block_hashes(path)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    row = at // kind.itemsize
    for read in (
        lambda one: one.take(np.array([row])),
        lambda one: one.part(row, row + 1),
        lambda one: one.part(0, rows),
    ):
        with pytest.raises(DamagedFile, match=r"damaged near byte [\d,]+ .* Do it again"):
            read(MappedRows(path, kind, rows, hashes, "Do it again."))


def test_other_blocks_of_a_damaged_file_can_be_read(tmp_path):
    kind = np.dtype("u1")
    wanted = written(tmp_path / "rows", kind, 3 * BLOCK)
    hashes = block_hashes(tmp_path / "rows")
    content = bytearray(tmp_path.joinpath("rows").read_bytes())
    content[BLOCK] ^= 1
    tmp_path.joinpath("rows").write_bytes(content)
    found = MappedRows(tmp_path / "rows", kind, 3 * BLOCK, hashes, "")
    assert (found.part(0, BLOCK) == wanted[:BLOCK]).all()
    assert found.take(np.array([2 * BLOCK]))[0] == wanted[2 * BLOCK]
    with pytest.raises(DamagedFile):
        found.part(BLOCK - 1, BLOCK + 1)


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b""])
def test_a_file_of_another_size_is_refused(tmp_path, change):
    written(tmp_path / "rows", np.dtype("<u4"), 2000)
    hashes = block_hashes(tmp_path / "rows")
    tmp_path.joinpath("rows").write_bytes(change(tmp_path.joinpath("rows").read_bytes()))
    with pytest.raises(DamagedFile, match="should have 8,000"):
        MappedRows(tmp_path / "rows", "<u4", 2000, hashes, "")
    tmp_path.joinpath("rows").unlink()
    with pytest.raises(DamagedFile, match="is missing"):
        MappedRows(tmp_path / "rows", "<u4", 2000, hashes, "")


def test_hashes_do_not_depend_on_how_much_is_read_at_a_time(tmp_path, monkeypatch):
    written(tmp_path / "rows", np.dtype("u1"), 10 * BLOCK + 5)
    wanted = block_hashes(tmp_path / "rows")
    monkeypatch.setattr(mapped_file, "READ_BYTES", 3 * BLOCK)
    assert block_hashes(tmp_path / "rows") == wanted and len(wanted) == mapped_file.hashes_length(10 * BLOCK + 5)
