"""TensorFlow checkpoints (version 2, "tensor bundle") as NumPy arrays, one tensor at a time, without TensorFlow.

A checkpoint is `<prefix>.index`, a sorted table in LevelDB's format, and data files with the raw numbers:

    index file   = data blocks, one metaindex block (empty), the index block, a footer of 48 bytes
    block        = entries, offsets of the entries with a complete key, their number; then kind and checksum
    entry        = bytes shared with the previous key, further bytes of the key, bytes of the value; key; value
    key -> value = "" -> BundleHeaderProto, the name of a tensor -> BundleEntryProto

Every number in these files is checked against the size of the data before it is used.

Knows: bytes, NumPy, the errors. Blind to: the network, what any tensor means, every other layout.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import google_crc32c
import numpy as np

from bilmo.errors import DamagedFile, NotAModel, UnsafeFile, WeightsError

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
FOOTER, TRAILER = 48, 5
TYPES = {1: "float32", 2: "float64", 3: "int32", 9: "int64", 14: "bfloat16", 19: "float16"}
STORED = TYPES | {14: "uint16"}
OTHERS = {4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 10: "bool", 17: "uint16"}
# Far above any real checkpoint, whose few hundred tensors make an index of about ten kilobytes.
MAX_INDEX, MAX_TENSORS, MAX_KEY, MAX_VALUE = 2**24, 100_000, 2**10, 2**16
MAX_AXES, MAX_NUMBERS, MAX_SHARDS = 32, 2**48, 99_999
CHUNK = 2**24
CURE = "Copy all files of the checkpoint again from the source."
DISTRUST = "No real checkpoint does that: do not use the file."


def find(folder: Path) -> Path | None:
    """The prefix of the newest checkpoint in a folder, or None.

    The file `checkpoint` names the newest one by a path on the machine that wrote it; only its last part is used.
    """
    paths = (path for path in folder.glob("*.index") if path.is_file() and not path.name.startswith("."))
    names = {path.name.removesuffix(".index") for path in paths}
    if not names:
        return None
    record = folder / "checkpoint"
    if record.is_file():
        with record.open("rb") as file:
            text = file.read(2**20).decode("utf-8", "replace")
        said = re.search(r"""^[ \t]*model_checkpoint_path\s*:\s*["']([^"'\n]*)["']""", text, re.MULTILINE)
        if said and (last := re.split(r"[/\\]", said[1])[-1]) in names:
            return folder / last
    steps = {name: int((re.findall(r"-([0-9]+)$", name) or [-1])[0]) for name in names}
    return folder / max(names, key=lambda name: (steps[name], name))


class Checkpoint:
    """The tensors of a checkpoint: names and shapes from the index, values on demand."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self._entries: dict[str, _Entry] = {}
        index = prefix.with_name(prefix.name + ".index")
        table = _table(index)
        key, value = next(table, (None, b""))
        if key != b"":
            raise DamagedFile(f"{index}: the table does not start with the header of a checkpoint. {CURE}")
        self._shards = _shards(value, index)
        for key, value in table:
            if key.startswith(b"\0"):  # a slice of a partitioned variable, which also has an entry as a whole
                continue
            name = _name(key, index)
            self._entries[name] = _entry(value, f"{index}: entry of {name!r}", self._shards)
        self.shapes = {name: entry.shape for name, entry in self._entries.items()}
        self.dtypes = {name: entry.type_name for name, entry in self._entries.items()}

    def read(self, name: str) -> np.ndarray:
        """The values of one tensor, verified by their checksum; bfloat16 becomes float32."""
        if name not in self._entries:
            raise WeightsError(
                f"{self.prefix}: no tensor {name!r} among the {len(self._entries)} of this checkpoint. "
                "Is it the checkpoint of another model?"
            )
        entry = self._entries[name]
        if entry.sliced:
            raise WeightsError(
                f"{self.prefix}: {name!r} is a partitioned variable, stored in slices, which bilmo does not read. "
                "Save the checkpoint again without a partitioner."
            )
        if entry.dtype not in TYPES:
            raise WeightsError(
                f"{self.prefix}: {name!r} has type {entry.type_name}; accepted: {', '.join(TYPES.values())}. "
                "It is not a weight of a network."
            )
        numbers = self._bytes(name, entry).view(np.dtype(STORED[entry.dtype]).newbyteorder("<"))
        if TYPES[entry.dtype] == "bfloat16":  # the upper half of a float32
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        return numbers.reshape(entry.shape)

    def _bytes(self, name: str, entry: _Entry) -> np.ndarray:
        path = self.prefix.with_name(f"{self.prefix.name}.data-{entry.shard:05d}-of-{self._shards:05d}")
        if not path.is_file():
            raise DamagedFile(f"{path}: the file is missing; it contains the values of {name!r}. {CURE}")
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            if entry.offset + entry.size > length:
                raise DamagedFile(
                    f"{path}: the file ends at byte {length}, but {name!r} takes bytes {entry.offset} to "
                    f"{entry.offset + entry.size}. {CURE}"
                )
            file.seek(entry.offset)
            values = np.empty(entry.size, np.uint8)
            crc = 0
            for start in range(0, entry.size, CHUNK):
                part = values[start : start + CHUNK]
                file.readinto(part.data)
                crc = google_crc32c.extend(crc, part.tobytes())
        if _mask(crc) != entry.crc:
            raise DamagedFile(f"{path}: the checksum of {name!r} does not match its values. {CURE}")
        return values


@dataclass(frozen=True)
class _Entry:
    """Where a tensor is stored, from the index; only its size has been checked against type and shape."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    sliced: bool

    @property
    def type_name(self) -> str:
        return TYPES.get(self.dtype) or OTHERS.get(self.dtype) or f"number {self.dtype} of TensorFlow's list"


class _Reader:
    """Reads bytes one after another; the end of the data raises an error that names `where`."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data, self.where, self.at = data, where, 0

    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        if count > self.left():
            raise DamagedFile(f"{self.where} claims {count} bytes, but {self.left()} are left. {CURE}")
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
        if byte < 128 and value < 2**64:
            return value
        raise DamagedFile(f"{self.where} has a number of more than 64 bits. {CURE}")


class _Message:
    """The fields of a protocol buffer by number; of repeated fields the last one counts, as usual."""

    def __init__(self, data: bytes, where: str) -> None:
        self.where = where
        self.fields: dict[int, list[int | bytes]] = {}
        walk = _Reader(data, where)
        while walk.left():
            tag = walk.varint()
            match tag & 7:
                case 0:
                    value: int | bytes = walk.varint()
                case 1:
                    value = int.from_bytes(walk.take(8), "little")
                case 2:
                    value = walk.take(walk.varint())
                case 5:
                    value = int.from_bytes(walk.take(4), "little")
                case kind:
                    raise DamagedFile(f"{where} has a field of the unknown kind {kind}. {CURE}")
            self.fields.setdefault(tag >> 3, []).append(value)

    def number(self, field: int) -> int:
        value = self.fields.get(field, [0])[-1]
        if isinstance(value, bytes):
            raise DamagedFile(f"{self.where} has bytes in field {field} instead of a number. {CURE}")
        return value

    def messages(self, field: int) -> Iterator[_Message]:
        for value in self.fields.get(field, []):
            if isinstance(value, int):
                raise DamagedFile(f"{self.where} has a number in field {field} instead of a message. {CURE}")
            yield _Message(value, self.where)


def _shards(value: bytes, index: Path) -> int:
    """Check the header; returns the number of data files."""
    header = _Message(value, f"{index}: header")
    if header.number(2) != 0:
        raise NotAModel(
            f"{index}: the checkpoint was written on a big-endian machine; bilmo reads little-endian ones. "
            "Load it with TensorFlow and save it again on a little-endian machine."
        )
    if any(version.number(2) > 1 for version in header.messages(3)):
        raise NotAModel(f"{index}: the format is newer than version 1, the only accepted one.")
    if not 1 <= header.number(1) <= MAX_SHARDS:
        raise DamagedFile(
            f"{index}: the header claims {header.number(1)} data files; accepted: 1 to {MAX_SHARDS}. {CURE}"
        )
    return header.number(1)


def _entry(value: bytes, where: str, shards: int) -> _Entry:
    message = _Message(value, where)
    axes: list[int] = []
    for shape in message.messages(2):
        axes += (axis.number(1) for axis in shape.messages(2))
        if shape.number(3):
            raise DamagedFile(f"{where} has a shape of unknown rank. {CURE}")
    if any(axis >= 2**63 for axis in axes):  # a negative number
        raise DamagedFile(f"{where} has a negative axis in its shape. {CURE}")
    if len(axes) > MAX_AXES or math.prod(axis or 1 for axis in axes) > MAX_NUMBERS:
        raise UnsafeFile(
            f"{where} claims an absurd shape of {len(axes)} axes, longest {max(axes)}; accepted: up to "
            f"{MAX_AXES} axes and {MAX_NUMBERS} numbers. {DISTRUST}"
        )
    dtype, shard, offset, size, crc = (message.number(field) for field in (1, 3, 4, 5, 6))
    entry = _Entry(dtype, tuple(axes), shard, offset, size, crc, sliced=7 in message.fields)
    if shard >= shards:
        raise DamagedFile(f"{where} names data file {shard} of {shards}, counted from 0. {CURE}")
    if dtype in TYPES and not entry.sliced:
        needed = math.prod(axes) * np.dtype(STORED[dtype]).itemsize
        if size != needed:
            raise DamagedFile(
                f"{where} has {size} bytes, but {entry.type_name} of shape {entry.shape} takes {needed}. {CURE}"
            )
    return entry


def _table(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of an index file, with rising keys; blocks must not overlap, so reading always ends."""
    if not path.is_file():
        raise NotAModel(
            f"{path}: there is no such file. A TensorFlow checkpoint consists of a file .index and files such "
            "as .data-00000-of-00001; give their common name without these endings. "
            "Single-file checkpoints (before TensorFlow 1.0) must be saved again with TensorFlow."
        )
    if path.stat().st_size > MAX_INDEX:
        raise UnsafeFile(f"{path}: the index is larger than {MAX_INDEX} bytes. {DISTRUST}")
    data = path.read_bytes()
    if len(data) < FOOTER or data[-len(MAGIC) :] != MAGIC:
        raise DamagedFile(f"{path}: the file does not end as the index of a TensorFlow checkpoint does. {CURE}")
    footer = _Reader(data[-FOOTER : -len(MAGIC)], f"{path}: footer")
    footer.varint(), footer.varint()  # the metaindex, which is empty in a checkpoint
    begin = footer.varint()
    index = _block(data, begin, footer.varint(), path)
    end, before, count = 0, None, 0
    for _, handle in _pairs(index, f"{path}: index block"):
        walk = _Reader(handle, f"{path}: index block")
        start, size = walk.varint(), walk.varint()
        if start < end or start + size + TRAILER > begin:
            raise DamagedFile(f"{path}: the blocks of the table overlap or lie outside the file. {CURE}")
        end = start + size + TRAILER
        for key, value in _pairs(_block(data, start, size, path), f"{path}: block at byte {start}"):
            if before is not None and key <= before:
                raise DamagedFile(f"{path}: the names in the table are out of order. {CURE}")
            before, count = key, count + 1
            if count > MAX_TENSORS:
                raise UnsafeFile(f"{path}: the index lists more than {MAX_TENSORS} tensors. {DISTRUST}")
            yield key, value


def _block(data: bytes, start: int, size: int, path: Path) -> bytes:
    end = start + size
    if end + TRAILER > len(data) - FOOTER:
        raise DamagedFile(f"{path}: a block takes bytes {start} to {end + TRAILER} of a file of {len(data)}. {CURE}")
    kind = data[end]  # covered by the checksum
    if _mask(google_crc32c.value(data[start : end + 1])) != int.from_bytes(data[end + 1 : end + 5], "little"):
        raise DamagedFile(f"{path}: the checksum of the block at byte {start} does not match. {CURE}")
    if kind != 0:
        raise NotAModel(
            f"{path}: the index is compressed ({'snappy' if kind == 1 else f'kind {kind}'}); bilmo reads "
            "uncompressed ones. Load the checkpoint with TensorFlow 1.2 or newer and save it again."
        )
    return data[start:end]


def _pairs(block: bytes, where: str) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of one block; the offsets at its end only show where the entries end."""
    end = len(block) - 4 * (int.from_bytes(block[-4:], "little") + 1)
    if end < 0:
        raise DamagedFile(f"{where} is shorter than its list of offsets. {CURE}")
    walk = _Reader(block[:end], where)
    key = b""
    while walk.left():
        shared, own, size = walk.varint(), walk.varint(), walk.varint()
        if shared > len(key):
            raise DamagedFile(f"{where} shares {shared} bytes with a name of {len(key)}. {CURE}")
        if shared + own > MAX_KEY or size > MAX_VALUE:
            raise UnsafeFile(
                f"{where} claims a name of {shared + own} bytes with an entry of {size}; accepted: "
                f"{MAX_KEY} and {MAX_VALUE}. {DISTRUST}"
            )
        key = key[:shared] + walk.take(own)
        yield key, walk.take(size)


def _name(key: bytes, path: Path) -> str:
    try:
        return key.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DamagedFile(f"{path}: the table has a name that is not text: {key[:40]!r}. {CURE}") from error


def _mask(crc: int) -> int:
    """A checksum as these files store it: rotated and shifted, because the data may contain checksums itself."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
