"""A writer of TensorFlow checkpoints (V2), from the format's description and apart from the reader it tests.

`write` makes a whole checkpoint; the smaller functions make its parts, so that a test can make a bad one.
Names in key order go to the data files in turn; the metaindex block is empty, as TensorFlow leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import google_crc32c
import numpy as np

MAGIC = bytes.fromhex("57fb808b247547db")
NUMBERS = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int64": 9, "uint16": 17, "float16": 19}
BFLOAT16, STRING = 14, 7


def write(
    prefix: Path,
    tensors: Mapping[str, np.ndarray],
    shards: int = 1,
    *,
    block_size: int = 2**18,
    restart_every: int = 16,
    dtypes: Mapping[str, int] | None = None,
) -> None:
    """Write `<prefix>.index` and its data files; `dtypes` declares another type for an array, by its number."""
    files = [bytearray() for _ in range(shards)]
    pairs = [(b"", header(shards))]
    for i, name in enumerate(sorted(tensors, key=str.encode)):
        array = np.asarray(tensors[name])
        raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
        dtype = (dtypes or {}).get(name, NUMBERS[array.dtype.newbyteorder("=").name])
        place = i % shards
        pairs.append((name.encode(), entry(dtype, array.shape, place, len(files[place]), len(raw), masked(raw))))
        files[place] += raw
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for i, content in enumerate(files):
        data_file(prefix, i, shards).write_bytes(content)
    write_index(prefix, table(pairs, block_size=block_size, restart_every=restart_every))


def write_index(prefix: Path, content: bytes) -> None:
    index_file(prefix).write_bytes(content)


def index_file(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".index")


def data_file(prefix: Path, shard: int = 0, shards: int = 1) -> Path:
    return prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{shards:05d}")


# Messages


def varint(value: int) -> bytes:
    value %= 2**64  # a negative number is written as its complement
    parts = []
    while value >= 128:
        parts.append(value % 128 + 128)
        value //= 128
    return bytes([*parts, value])


def number(field: int, value: int) -> bytes:
    """A field with a number; zero is not written."""
    return varint(field << 3) + varint(value) if value else b""


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def header(shards: int = 1, *, big_endian: bool = False, min_consumer: int = 0) -> bytes:
    version = number(1, 1) + number(2, min_consumer)
    return number(1, shards) + number(2, int(big_endian)) + message(3, version)


def entry(dtype: int, shape: Sequence[int], shard: int, offset: int, size: int, crc: int, more: bytes = b"") -> bytes:
    axes = b"".join(message(2, number(1, axis)) for axis in shape)
    checksum = varint(6 << 3 | 5) + crc.to_bytes(4, "little")
    return (
        number(1, dtype) + message(2, axes) + number(3, shard) + number(4, offset) + number(5, size) + checksum + more
    )


# The table


def masked(data: bytes) -> int:
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def block(pairs: Iterable[tuple[bytes, bytes]], restart_every: int = 16) -> bytes:
    """Entries without the shared start of their keys, and the offsets of the entries with a complete key."""
    content, restarts, before = bytearray(), [0], b""
    for i, (key, value) in enumerate(pairs):
        if i and i % restart_every == 0:
            restarts.append(len(content))
            before = b""
        shared = 0
        while shared < min(len(key), len(before)) and key[shared] == before[shared]:
            shared += 1
        own = key[shared:]
        content += varint(shared) + varint(len(own)) + varint(len(value)) + own + value
        before = key
    return bytes(content) + b"".join(at.to_bytes(4, "little") for at in [*restarts, len(restarts)])


def table(pairs: Sequence[tuple[bytes, bytes]], *, block_size: int = 2**18, restart_every: int = 16) -> bytes:
    """The index file; a block ends with the entry that takes it to `block_size`."""
    blocks: list[tuple[bytes, bytes]] = []
    held: list[tuple[bytes, bytes]] = []
    for pair in pairs:
        held.append(pair)
        if sum(len(key) + len(value) for key, value in held) >= block_size:
            blocks.append((pair[0], block(held, restart_every)))
            held = []
    if held:
        blocks.append((held[-1][0], block(held, restart_every)))
    return sealed(blocks)


def sealed(blocks: Iterable[tuple[bytes, bytes]], *, compression: int = 0) -> bytes:
    """An index file of given blocks, each under its last key; checksums are correct for any content."""
    file = bytearray()

    def add(content: bytes) -> bytes:
        handle = varint(len(file)) + varint(len(content))
        content += bytes([compression])
        file.extend(content + masked(content).to_bytes(4, "little"))
        return handle

    index = [(key, add(content)) for key, content in blocks]
    metaindex = add(block([]))
    return finished(file, metaindex + add(block(index, restart_every=1)))


def finished(file: bytes | bytearray, handles: bytes) -> bytes:
    """A file with its footer."""
    return bytes(file) + handles.ljust(40, b"\0") + MAGIC
