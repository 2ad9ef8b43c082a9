"""The checkpoint reader: TensorFlow's own file, files of our own writer, and damage of every kind."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from bilmo.errors import BilmoError, DamagedFile, NotAModel, UnsafeFile, WeightsError
from bilmo.formats.tf_checkpoint import MAX_INDEX, MAX_KEY, Checkpoint, find

import tf_bundle as tf
from tf_bundle import write

GOLDEN = Path(__file__).parents[2].parent / "shared" / "golden"
needs_golden = pytest.mark.skipif(not GOLDEN.is_dir(), reason="the golden files do not lie beside the repository")

SMALL = {
    "lm/W": np.arange(6, dtype=np.float32).reshape(2, 3),
    "lm/W/Adagrad": np.full((2, 3), 0.5, np.float32),
    "lm/empty": np.zeros((0, 4), np.float64),
    "step": np.array(1234, np.int64),
}
Values = dict[str, tuple[object, ...]]


def values(prefix: Path) -> Values:
    """The complete content of a checkpoint, to the bit."""
    checkpoint = Checkpoint(prefix)
    arrays = {name: checkpoint.read(name) for name in checkpoint.shapes}
    assert {name: array.shape for name, array in arrays.items()} == checkpoint.shapes
    return bits(arrays)


def bits(arrays: dict[str, np.ndarray]) -> Values:
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}


@contextmanager
def little_memory(limit: int = 2**24) -> Iterator[None]:
    """Python's own tables take up to 8 MB when they happen to grow."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    write(tmp_path / "model.ckpt-7", SMALL, block_size=60, restart_every=2)
    return tmp_path / "model.ckpt-7"


def indexed(folder: Path, *pairs: tuple[bytes, bytes], header: bytes | None = None, data: bytes = b"") -> Path:
    """A checkpoint with this content as its index."""
    prefix = folder / "made"
    tf.write_index(prefix, tf.table([(b"", tf.header() if header is None else header), *pairs]))
    tf.data_file(prefix).write_bytes(data)
    return prefix


# What TensorFlow wrote


@needs_golden
def test_the_golden_checkpoint_holds_the_weights_of_the_hdf5_file():
    checkpoint = Checkpoint(find(GOLDEN / "tf_checkpoint"))
    seen = 0

    def compare(name: str, old: h5py.HLObject) -> None:
        nonlocal seen
        if isinstance(old, h5py.Dataset):
            for ours, theirs in [
                ("RNN/MultiRNNCell/Cell", "rnn/multi_rnn_cell/cell_"),
                ("LSTMCell/W_0", "lstm_cell/kernel"),
                ("LSTMCell/B", "lstm_cell/bias"),
                ("LSTMCell/W_P_0", "lstm_cell/projection/kernel"),
            ]:
                name = name.replace(ours, theirs)
            array = checkpoint.read(f"lm/{name}")
            assert array.dtype == np.float32
            assert array.dtype.isnative
            np.testing.assert_array_equal(array, old[()])
            seen += 1

    with h5py.File(GOLDEN / "bilm-tf" / "lm_weights.hdf5") as file:
        file.visititems(compare)
    assert seen == 33
    assert checkpoint.read("global_step") == 1234
    assert checkpoint.dtypes["global_step"] == "int32"
    assert checkpoint.shapes["lm/softmax/W"] == (449, 16)
    assert checkpoint.shapes["train_perplexity"] == ()


@needs_golden
def test_the_writer_writes_what_tensorflow_wrote(tmp_path):
    golden = find(GOLDEN / "tf_checkpoint")
    checkpoint = Checkpoint(golden)
    write(tmp_path / "again", {name: checkpoint.read(name) for name in checkpoint.shapes})
    assert tf.data_file(tmp_path / "again").read_bytes() == tf.data_file(golden).read_bytes()
    # The last block differs: TensorFlow shortens its key, which only has to be greater than all others.
    theirs, ours = (tf.index_file(path).read_bytes() for path in (golden, tmp_path / "again"))
    same = theirs.index(b"\x00\x01\x03u\x00")
    assert same > 0.95 * len(theirs)
    assert theirs[:same] == ours[:same]


# What the writer writes

names = st.lists(st.sampled_from(["lm", "/", "RNN_0", "RNN_1", "cell", "é", "W"]), min_size=1, max_size=12).map("".join)
arrays = st.sampled_from(["f4", "f8", "f2", "i4", "i8"]).flatmap(
    lambda kind: nps.arrays(kind, nps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
)


@given(st.dictionaries(names, arrays, max_size=40), st.integers(1, 4), st.integers(1, 400), st.integers(1, 20))
def test_reading_gives_back_what_was_written(tensors, shards, block_size, restart_every):
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "model.ckpt"
        write(prefix, tensors, shards, block_size=block_size, restart_every=restart_every)
        assert values(prefix) == bits(tensors)


def test_many_tensors_in_many_blocks(tmp_path):
    tensors = {f"layer_{i // 10}/unit_{i}": np.array([i], np.int32) for i in range(2000)}
    write(tmp_path / "many", tensors, shards=3, block_size=500)
    assert values(tmp_path / "many") == bits(tensors)


def test_bfloat16_becomes_float32(tmp_path):
    wide = np.array([0.0, -0.0, 1.5, -3.0, np.inf, np.nan, 2.0**-130], np.float32)
    halves = (wide.view(np.uint32) >> 16).astype(np.uint16)
    write(tmp_path / "b", {"w": halves}, dtypes={"w": tf.BFLOAT16})
    checkpoint = Checkpoint(tmp_path / "b")
    assert checkpoint.dtypes == {"w": "bfloat16"}
    assert bits({"w": checkpoint.read("w")}) == bits({"w": wide})


def test_a_tensor_longer_than_one_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr("bilmo.formats.tf_checkpoint.CHUNK", 1000)
    tensors = {"a": np.arange(1003, dtype=np.float64), "b": np.arange(250, dtype=np.float32)}
    write(tmp_path / "long", tensors)
    assert values(tmp_path / "long") == bits(tensors)


def test_only_the_tensor_asked_for_is_read(tmp_path):
    write(tmp_path / "two", SMALL, shards=2)
    tf.data_file(tmp_path / "two", 1, 2).unlink()
    checkpoint = Checkpoint(tmp_path / "two")
    assert set(checkpoint.shapes) == set(SMALL)
    np.testing.assert_array_equal(checkpoint.read("lm/W"), SMALL["lm/W"])
    with pytest.raises(DamagedFile, match=r"two\.data-00001-of-00002: the file is missing.*step"):
        checkpoint.read("step")


# What is refused by name


def test_other_types_are_listed_and_refused(tmp_path):
    tensors = {"graph": np.zeros(9, np.uint8), "flags": np.zeros(2, np.uint8), "w": np.ones(2, np.float32)}
    write(tmp_path / "s", tensors, dtypes={"graph": tf.STRING, "flags": 21})
    checkpoint = Checkpoint(tmp_path / "s")
    assert checkpoint.shapes == {"graph": (9,), "flags": (2,), "w": (2,)}
    assert checkpoint.dtypes["graph"] == "string"
    assert checkpoint.read("w").tolist() == [1, 1]
    with pytest.raises(WeightsError, match="'graph' has type string; accepted: float32"):
        checkpoint.read("graph")
    with pytest.raises(WeightsError, match="'flags' has type number 21"):
        checkpoint.read("flags")


def test_a_partitioned_variable_is_listed_and_refused(tmp_path):
    slices = tf.message(7, tf.message(1, tf.number(2, 2)))
    part = (b"\0table\0\1\1\1\1", tf.entry(1, (2,), 0, 0, 8, tf.masked(bytes(8))))
    whole = (b"table", tf.entry(1, (4,), 0, 0, 0, 0, slices))
    checkpoint = Checkpoint(indexed(tmp_path, part, whole, data=bytes(8)))
    assert checkpoint.shapes == {"table": (4,)}
    with pytest.raises(WeightsError, match="'table' is a partitioned variable"):
        checkpoint.read("table")


def test_an_unknown_name_is_refused(prefix):
    with pytest.raises(WeightsError, match="no tensor 'lm/X' among the 4"):
        Checkpoint(prefix).read("lm/X")


def test_without_an_index_it_is_not_a_model(tmp_path):
    with pytest.raises(NotAModel, match=r"none\.index: there is no such file"):
        Checkpoint(tmp_path / "none")


@pytest.mark.parametrize(
    ("header", "error", "says"),
    [
        (tf.header(big_endian=True), NotAModel, "big-endian"),
        (tf.header(min_consumer=2), NotAModel, "newer than version 1"),
        (tf.header(0), DamagedFile, "0 data files"),
        (tf.header(-1), DamagedFile, "data files; accepted: 1 to 99999"),
        (b"\x0a\x00", DamagedFile, "bytes in field 1 instead of a number"),
        (b"\x18\x01", DamagedFile, "number in field 3 instead of a message"),
        (b"\x0b", DamagedFile, "unknown kind 3"),
        (b"\x08" + b"\xff" * 9 + b"\x02", DamagedFile, "more than 64 bits"),
        (b"\x08" + b"\x80" * 30 + b"\x01", DamagedFile, "more than 64 bits"),
        (b"\x1a\x7f", DamagedFile, "claims 127 bytes, but 0 are left"),
    ],
)
def test_bad_headers(tmp_path, header, error, says):
    with pytest.raises(error, match=rf"made\.index: .*{says}"):
        Checkpoint(indexed(tmp_path, header=header))


@pytest.mark.parametrize(
    ("entry", "error", "says"),
    [
        (tf.entry(1, (-1,), 0, 0, 4, 0), DamagedFile, "negative axis"),
        (tf.entry(1, (2, 3), 0, 0, 20, 0), DamagedFile, r"has 20 bytes, but float32 of shape \(2, 3\) takes 24"),
        (tf.entry(1, (), 0, 0, -4, 0), DamagedFile, "takes 4"),
        (tf.entry(1, (), 1, 0, 4, 0), DamagedFile, "names data file 1 of 1"),
        (tf.entry(1, (), -1, 0, 4, 0), DamagedFile, "names data file"),
        (tf.entry(1, (2**40, 2**40), 0, 0, 4, 0), UnsafeFile, "absurd shape"),
        (tf.entry(1, (0, 2**40, 2**40), 0, 0, 0, 0), UnsafeFile, "absurd shape"),
        (tf.entry(1, (1,) * 33, 0, 0, 4, 0), UnsafeFile, "absurd shape of 33 axes"),
        (tf.entry(7, (2**62, 2**62), 0, 0, 4, 0), UnsafeFile, "absurd shape"),
        (tf.number(1, 1) + tf.message(2, tf.number(3, 1)), DamagedFile, "unknown rank"),
        (bytes(2**16 + 1), UnsafeFile, "entry of 65537"),
    ],
)
def test_bad_entries(tmp_path, entry, error, says):
    with pytest.raises(error, match=rf"made\.index: .*{says}"):
        Checkpoint(indexed(tmp_path, (b"w", entry), data=bytes(99)))


@pytest.mark.parametrize(("offset", "size"), [(0, 2**42), (-8, 8), (2**63 - 1, 8), (93, 8), (100, 8)])
def test_values_outside_the_data_file_are_refused_before_memory_is_allocated(tmp_path, offset, size):
    prefix = indexed(tmp_path, (b"w", tf.entry(1, (size // 4,), 0, offset, size, 0)), data=bytes(100))
    with little_memory(), pytest.raises(DamagedFile, match="the file ends at byte 100, but 'w' takes"):
        Checkpoint(prefix).read("w")


# Bad tables


def refused(folder: Path, content: bytes, error: type[BilmoError], says: str) -> None:
    tf.write_index(folder / "bad", content)
    with little_memory(), pytest.raises(error, match=rf"bad\.index: .*{says}"):
        Checkpoint(folder / "bad")


def test_a_wrong_magic_number(tmp_path, prefix):
    refused(tmp_path, tf.index_file(prefix).read_bytes()[:-8] + bytes(8), DamagedFile, "does not end as the index")
    refused(tmp_path, b"", DamagedFile, "does not end as the index")
    refused(tmp_path, tf.MAGIC, DamagedFile, "does not end as the index")


def test_a_compressed_index_is_refused_with_advice(tmp_path):
    content = tf.block([(b"", tf.header())])
    refused(tmp_path, tf.sealed([(b"", content)], compression=1), NotAModel, "snappy.*save it again")
    refused(tmp_path, tf.sealed([(b"", content)], compression=2), NotAModel, "kind 2")


def test_a_table_without_a_header(tmp_path):
    refused(tmp_path, tf.table([]), DamagedFile, "does not start with the header")
    refused(tmp_path, tf.table([(b"w", tf.entry(1, (), 0, 0, 4, 0))]), DamagedFile, "does not start with the header")


def test_names_that_repeat_or_are_out_of_order_or_not_text_are_refused(tmp_path):
    pair = tf.entry(1, (), 0, 0, 4, 0)
    for keys in ([b"w", b"w"], [b"w", b"v"], [b""]):
        pairs = [(b"", tf.header()), *((key, pair) for key in keys)]
        refused(tmp_path, tf.table(pairs), DamagedFile, "out of order")
        refused(tmp_path, tf.table(pairs, block_size=1), DamagedFile, "out of order")
    refused(tmp_path, tf.table([(b"", tf.header()), (b"\xff", pair)]), DamagedFile, "not text")


def test_absurd_claims_are_refused(tmp_path, monkeypatch):
    pairs = [(b"", tf.header()), (b"w" * (MAX_KEY + 1), b"")]
    refused(tmp_path, tf.table(pairs), UnsafeFile, f"name of {MAX_KEY + 1} bytes")
    monkeypatch.setattr("bilmo.formats.tf_checkpoint.MAX_TENSORS", 50)
    crowd = [(b"", tf.header()), *((b"\0%06d" % i, b"") for i in range(50))]
    refused(tmp_path, tf.table(crowd), UnsafeFile, "more than 50 tensors")
    with tf.index_file(tmp_path / "bad").open("wb") as file:
        file.truncate(MAX_INDEX + 1)
    with little_memory(), pytest.raises(UnsafeFile, match="larger than"):
        Checkpoint(tmp_path / "bad")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "shorter than its list"),
        (b"\xff" * 4, "shorter than its list"),
        (b"\0\0\0\0\2\0\0\0", "shorter than its list"),
        (b"\5\1\1wx\0\0\0\0\1\0\0\0", "shares 5 bytes with a name of 0"),
        (b"\0\x09\1wx\0\0\0\0\1\0\0\0", "claims 9 bytes, but 2 are left"),
        (b"\0\0\x99\1x\0\0\0\0\1\0\0\0", "claims 153 bytes, but 1 are left"),
        (b"\0\0\xff\0\0\0\0\1\0\0\0", "claims 1 bytes, but 0 are left"),
    ],
)
def test_bad_blocks(tmp_path, content, says):
    refused(tmp_path, tf.sealed([(b"", content)]), DamagedFile, says)
    file = content + b"\0" + tf.masked(content + b"\0").to_bytes(4, "little")  # the same as index block
    refused(tmp_path, tf.finished(file, bytes(2) + tf.varint(0) + tf.varint(len(content))), DamagedFile, says)


def test_blocks_that_are_named_twice_or_lie_outside(tmp_path):
    """An index whose entries all refer to one large block would take hours to read."""
    content = tf.block([]) + b"\0"
    block = content + tf.masked(content).to_bytes(4, "little")
    for handles in ([(0, 8), (0, 8)], [(13, 8), (0, 8)], [(0, 999)], [(2**64 - 1, 8)], [(26, 8)]):
        index = tf.block([(b"%d" % i, tf.varint(at) + tf.varint(n)) for i, (at, n) in enumerate(handles)]) + b"\0"
        file = block * 2 + index + tf.masked(index).to_bytes(4, "little")
        says = "overlap or lie outside"
        refused(tmp_path, tf.finished(file, bytes(2) + tf.varint(26) + tf.varint(len(index) - 1)), DamagedFile, says)
    refused(tmp_path, tf.finished(block, bytes(3) + tf.varint(2**64 - 1)), DamagedFile, "of a file of 61")
    refused(tmp_path, tf.finished(block, b"\xff" * 40), DamagedFile, "more than 64 bits")


# Damage


def unseen(path: Path, prefix: Path) -> set[int]:
    """Bytes in which one bit can change without changing a value; every other change and cut is refused."""
    good, expected = path.read_bytes(), values(prefix)
    ignored = set()
    with little_memory():
        for i, bad in enumerate((*flips(good), *(good[:length] for length in range(len(good))))):
            path.write_bytes(bad)
            try:
                got = values(prefix)
            except DamagedFile as error:
                assert path.name in str(error)
            else:
                assert got == expected
                ignored.add(i // 8)
    return ignored


def flips(good: bytes) -> Iterator[bytes]:
    for bit in range(8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        yield bytes(bad)


def test_every_flip_and_every_cut_of_the_index(prefix):
    good = tf.index_file(prefix).read_bytes()
    metaindex = good.rindex(tf.block([]) + b"\0")  # an empty block that nothing reads
    footer = len(good) - 48
    assert unseen(tf.index_file(prefix), prefix) <= {
        *range(metaindex, metaindex + 13),
        *range(footer, footer + 3),  # its address
        footer + 3 + 2,  # the address of the index block ends here, or at the zero after it: the same number
        *range(footer + 3 + 3, footer + 40),  # padding
    }


def test_every_flip_and_every_cut_of_the_data(prefix):
    assert unseen(tf.data_file(prefix), prefix) == set()


def test_a_short_data_file_still_gives_what_it_holds(prefix):
    path = tf.data_file(prefix)
    path.write_bytes(path.read_bytes()[:-1])
    checkpoint = Checkpoint(prefix)
    np.testing.assert_array_equal(checkpoint.read("lm/W"), SMALL["lm/W"])
    with pytest.raises(DamagedFile, match="the file ends at byte 55, but 'step' takes bytes 48 to 56"):
        checkpoint.read("step")


def survives(prefix: Path) -> None:
    """A changed file with correct checksums is read or refused, and never crashes the reader."""
    try:
        checkpoint = Checkpoint(prefix)
    except BilmoError:
        return
    for name in checkpoint.shapes:
        with suppress(BilmoError):
            assert checkpoint.read(name).shape == checkpoint.shapes[name]


def test_every_flip_with_checksums_made_to_fit(prefix):
    pairs = [(b"", tf.header()), (b"lm/W", tf.entry(1, (2, 3), 0, 0, 24, 0)), (b"lm/b", tf.entry(1, (3,), 0, 0, 12, 0))]
    with little_memory():
        for content in flips(tf.block(pairs)):
            tf.write_index(prefix, tf.sealed([(b"lm/b", content)]))
            survives(prefix)
        ready = tf.sealed([(b"lm/b", tf.block(pairs))])
        handle = tf.varint(0) + tf.varint(len(tf.block(pairs)))
        index = tf.block([(b"lm/b", handle)])
        begin = ready.index(index)
        for content in flips(index):
            content += b"\0"
            sealed = ready[:begin] + content + tf.masked(content).to_bytes(4, "little")
            tf.write_index(prefix, sealed + ready[-48:])
            survives(prefix)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.binary(max_size=5), st.binary(max_size=60)), max_size=6), st.binary(max_size=40))
def test_any_bytes_under_fitting_checksums(pairs, junk):
    with tempfile.TemporaryDirectory() as folder, little_memory(2**22):
        prefix = Path(folder) / "any"
        tf.data_file(prefix).write_bytes(junk)
        ordered = sorted(dict(pairs).items())
        tf.write_index(prefix, tf.table([(b"", tf.header()), *((key, value) for key, value in ordered if key)]))
        survives(prefix)
        tf.write_index(prefix, tf.sealed([(b"", tf.block([(b"", tf.header())])), (b"z", junk)]))
        survives(prefix)
        tf.write_index(prefix, tf.finished(junk, junk[:40]))
        survives(prefix)


# Which checkpoint of a folder


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"")


@pytest.mark.parametrize(
    "path", ["/home/author/elmo/model.ckpt-20", "model.ckpt-20", "../../model.ckpt-20", r"C:\\e\\model.ckpt-20"]
)
def test_the_checkpoint_file_names_the_newest_but_not_the_folder(tmp_path, path):
    touch(tmp_path, "model.ckpt-20.index", "model.ckpt-100.index")
    (tmp_path / "checkpoint").write_text(
        f'model_checkpoint_path: "{path}"\nall_model_checkpoint_paths: "/x/model.ckpt-100"\n'
    )
    assert find(tmp_path) == tmp_path / "model.ckpt-20"


@pytest.mark.parametrize(
    "record",
    [
        None,
        b"",
        b"\xff\xfe\x00",
        b'model_checkpoint_path: "/x/model.ckpt-99"',
        b'model_checkpoint_path: "/x/.."',
        b'model_checkpoint_path: ""',
        b'all_model_checkpoint_paths: "/x/model.ckpt-20"',
    ],
)
def test_without_the_checkpoint_file_the_highest_step_is_the_newest(tmp_path, record):
    touch(tmp_path, "model.ckpt-20.index", "model.ckpt-100.index", "model.ckpt.index", "._model.ckpt-200.index")
    if record is not None:
        (tmp_path / "checkpoint").write_bytes(record)
    assert find(tmp_path) == tmp_path / "model.ckpt-100"


def test_a_checkpoint_elsewhere_is_not_found(tmp_path):
    (tmp_path / "inner").mkdir()
    touch(tmp_path, "model.ckpt-5.index", "inner/variables.index")
    (tmp_path / "inner" / "checkpoint").write_text('model_checkpoint_path: "../model.ckpt-5"')
    assert find(tmp_path / "inner") == tmp_path / "inner" / "variables"


def test_no_checkpoint(tmp_path):
    touch(tmp_path, "options.json", "model.ckpt-5.data-00000-of-00001")
    (tmp_path / "folder.index").mkdir()
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-5"')
    assert find(tmp_path) is None
    assert find(tmp_path / "absent") is None
