"""Damage to files: single edits, which a case lists and a regression file keeps, and how they are drawn.

An edit is a list: its kind, the number of a file, and what the kind needs. Places are numbers that are taken modulo the
length of what they point into, so that an edit fits files of any length.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

Edit = list[Any]
Entry = bytes | tuple[str, str]
"""The content of a file; or what takes its place: ("link", target), ("folder", ""), ("pipe", "")."""
Files = dict[str, Entry]

PLACES = st.integers(0, 2**20)
BYTES = (
    *(b"\0", b"\xff", b"\n", b'"', b"\0" * 8, b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\r\n", b"[" * 2000, b"9" * 5000),
    *(b"\x00\x00\xc0\x7f", b"\x00\x00\x80\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc3", b"-1", b"1e999", b"NaN"),
)
"""What is written over or between: bounds of numbers, NaN and infinity as float32, half characters, long runs."""
VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 2, 50, 2**31 - 1, 2**31, 2**63 - 1, 2**64, 10**18, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *(None, True, False, "", "x", "\ud800", "x" * 3000, "..", "/etc/passwd", "relu", [], {}, [[]], [1, 2], {"a": 1}),
)
RAW = ("9" * 5000, "-" + "9" * 5000, "[" * 3000, "1e999", "0" * 300 + "1", '{"a":' * 2000)
"""JSON that `json.dumps` does not write."""
PIECES = (
    *"a I 1 . , : ; ' \" ’ - _ + @ / \\ # = { } [ ] < > ! ? ( ) & % the n't www. http:// 宝 玉 。 é NaN null".split(),
    *(" ", "\t", "\n", "\r", "\r\n", "\0", "\x0b", "\x85", "\u2028", "\u3000", "\ufeff", "\ud800", "\u0301", "\u200d"),
    *(
        "\U0001f469",
        "\U0001f1e9",
        "text",
        "label",
        "O",
        "B-PER",
        '""',
        "\n\n",
        "[train]",
        '{"text":',
        '"""',
        "'" * 3,
        "1e5",
        "true",
    ),
)
"""What random text is made of: whatever a pattern or a format treats differently."""
TARGETS = ("/dev/zero", "/dev/null", "../outside/secret.txt", "../outside", "missing", "", "/")
"""Where links lead; "" is the link itself."""
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
MARK = '"\\u0000raw"'


KINDS = (
    *("flip", "write", "insert", "cut", "delete", "repeat", "remove", "swap", "link", "folder", "pipe"),
    *("value", "raw", "drop", "key", "line", "text"),
)


def edits(
    names: Sequence[str], *, most: int = 3, kinds: Sequence[str] = (), only: Sequence[str] = ()
) -> st.SearchStrategy[list[Edit]]:
    """Some edits of files with these names; of all kinds and files, or only of some."""
    numbers = st.sampled_from([sorted(names).index(name) for name in only or names])
    known: dict[str, st.SearchStrategy[Any]] = {
        "flip": st.tuples(PLACES, st.integers(0, 7)),
        "write": st.tuples(PLACES, st.sampled_from(BYTES).map(_text) | st.binary(min_size=1, max_size=8).map(_text)),
        "insert": st.tuples(PLACES, st.sampled_from(BYTES).map(_text) | st.binary(min_size=1, max_size=8).map(_text)),
        "cut": st.tuples(PLACES),
        "delete": st.tuples(PLACES, st.integers(1, 64)),
        "repeat": st.tuples(PLACES, st.integers(1, 64), st.sampled_from((2, 3, 1000, 20_000))),
        "remove": st.just(()),
        "swap": st.tuples(numbers),
        "link": st.tuples(st.sampled_from(TARGETS)),
        "folder": st.just(()),
        "pipe": st.just(()),
        "value": st.tuples(PLACES, st.sampled_from(VALUES)),
        "raw": st.tuples(PLACES, st.sampled_from(RAW)),
        "drop": st.tuples(PLACES),
        "key": st.tuples(PLACES, st.sampled_from(("", "x", "a" * 3000, "\ud800"))),
        "line": st.tuples(PLACES, PLACES),
        "text": st.tuples(PLACES, TEXTS),
    }
    one = st.one_of(
        [
            st.tuples(st.just(kind), numbers, more).map(lambda parts: [parts[0], parts[1], *parts[2]])
            for kind, more in known.items()
            if kind in (kinds or KINDS)
        ]
    )
    return st.lists(one, min_size=1, max_size=most)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def apply(files: Files, some: Sequence[Edit]) -> Files:
    """The files after these edits; an edit that does not fit its file changes nothing."""
    names = sorted(files)
    found = dict(files)
    for kind, number, *more in some:
        name = names[number % len(names)]
        content = found.get(name)
        if kind == "remove":
            found.pop(name, None)
        elif kind == "swap":
            other = names[more[0] % len(names)]
            if other in found and content is not None:
                found[name], found[other] = found[other], content
        elif kind in ("link", "folder", "pipe"):
            found[name] = (kind, more[0] if more else "")
        elif isinstance(content, bytes):
            found[name] = (_in_json if kind in JSON_EDITS else BYTE_EDITS[kind])(content, kind, *more)
    return found


def touched(names: Sequence[str], some: Sequence[Edit]) -> set[str]:
    """The files that these edits change."""
    numbers = {number for kind, number, *more in some for number in (number, *(more if kind == "swap" else ()))}
    return {sorted(names)[number % len(names)] for number in numbers}


def _place(content: bytes | bytearray, place: int) -> int:
    return place % max(1, len(content))


def _flip(content: bytes, kind: str, place: int, bit: int) -> bytes:
    bad = bytearray(content or b"\0")
    bad[_place(bad, place)] ^= 1 << bit
    return bytes(bad)


def _write(content: bytes, kind: str, place: int, data: str) -> bytes:
    at, new = _place(content, place), base64.b64decode(data)
    return content[:at] + new + content[at + (len(new) if kind == "write" else 0) :]


def _cut(content: bytes, kind: str, place: int) -> bytes:
    return content[: _place(content, place)]


def _delete(content: bytes, kind: str, place: int, length: int) -> bytes:
    at = _place(content, place)
    return content[:at] + content[at + length :]


def _repeat(content: bytes, kind: str, place: int, length: int, times: int) -> bytes:
    at = _place(content, place)
    return content[:at] + content[at : at + length] * times + content[at + length :]


def _line(content: bytes, kind: str, one: int, other: int) -> bytes:
    """One line in the place of another."""
    lines = content.split(b"\n")
    lines[one % len(lines)] = lines[other % len(lines)]
    return b"\n".join(lines)


def _insert_text(content: bytes, kind: str, place: int, text: str) -> bytes:
    """Random text from some place on; from the start if the place is an even number."""
    at = _place(content, place) if place % 2 else 0
    return content[:at] + text.encode("utf-8", "surrogatepass")


BYTE_EDITS: dict[str, Callable[..., bytes]] = {
    **{"flip": _flip, "write": _write, "insert": _write, "cut": _cut, "delete": _delete},
    **{"repeat": _repeat, "line": _line, "text": _insert_text},
}
JSON_EDITS = ("value", "raw", "drop", "key")


def _in_json(content: bytes, kind: str, place: int, new: Any = None) -> bytes:
    """Change one value of a JSON file, or of the header of a safetensors file."""
    start = content[8:9] == b"{" and int.from_bytes(content[:8], "little") <= len(content) - 8
    header = content[8 : 8 + int.from_bytes(content[:8], "little")] if start else content
    try:
        data = json.loads(header)
    except (ValueError, RecursionError):
        return content
    spots = _spots(data)
    if not spots:
        return content
    owner, key = spots[place % len(spots)]
    if kind == "drop":
        del owner[key]
    elif kind == "key":
        if isinstance(owner, dict):
            owner[new] = owner.pop(key)
    else:
        owner[key] = new if kind == "value" else "\0raw"
    text = json.dumps(data).replace(MARK, new if kind == "raw" else MARK).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + len(header) :] if start else text


def _spots(data: Any) -> list[tuple[Any, Any]]:
    """Every place in JSON data, as the list or object that holds it and its key."""
    if not isinstance(data, dict | list):
        return []
    keys = list(data) if isinstance(data, dict) else range(len(data))
    return [spot for key in keys for spot in [(data, key), *_spots(data[key])]]


def read(folder: Path) -> Files:
    """All files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def write(folder: Path, files: Files) -> None:
    """Write files to a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content[0] == "link":
            path.symlink_to(content[1] or path)
        elif content[0] == "folder":
            path.mkdir()
        else:
            os.mkfifo(path)
