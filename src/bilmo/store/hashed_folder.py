"""A folder whose JSON file holds a SHA-256 of each of its files and of itself, so that damage is detected.

Models, tasks and corpora are saved in such folders. Files that the JSON file does not name, such as a model card, may
change.

Knows: JSON, safetensors, lines of text. Blind to: what the files mean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from bilmo.errors import ConfigError, DamagedFile
from bilmo.store.tensors_file import write_tensors
from bilmo.store.validate import regular_file, sha256_of
from bilmo.text.files import decoded_lines

HASHES = "sha256"
"""The field with the hashes, by file name."""
NOT_KNOWN = ""
"""In place of the hash of a file that was written before its kind was hashed."""


class NewFolder:
    """The files of a folder as they are written, and their hashes; the JSON file is written last."""

    def __init__(self, path: Path, hashes: Mapping[str, str] | None = None) -> None:
        """`hashes`: of files that were written before and stay as they are."""
        self.path, self.hashes = path, dict(hashes or {})

    def add(self, name: str) -> None:
        """Note the hash of a file that is in the folder."""
        self.hashes[name] = sha256_of(self.path / name)

    def write_tensors(self, name: str, tensors: dict[str, Tensor]) -> None:
        """Write a safetensors file."""
        write_tensors(self.path / name, tensors)
        self.add(name)

    def write_lines(self, name: str, lines: Iterable[str]) -> None:
        """Write one entry per line."""
        write_text(self.path / name, "".join(f"{line}\n" for line in lines))
        self.add(name)

    def write_json(self, name: str, data: dict[str, Any]) -> None:
        """Write the JSON file: `data`, and the hashes of all files and of itself."""
        hashes = self.hashes | {name: _own_hash(name, data | {HASHES: self.hashes})}
        content = json.dumps(data | {HASHES: hashes}, indent=1, ensure_ascii=False)
        write_text(self.path / name, content, escaped=True)  # which is valid JSON and is read back as it was


@dataclass(frozen=True)
class HashedFolder:
    """The files of a folder to be read; each is compared with its hash first."""

    path: Path
    hashes: Mapping[str, str]
    remedy: str
    """What to do if a file is damaged, as a sentence."""

    def check(self, name: str) -> Path:
        """The path of a file that is as it was saved."""
        path = regular_file(self.path / name, self.remedy)
        try:
            damaged = self.hashes.get(name) not in (NOT_KNOWN, sha256_of(path))
        except OSError as error:
            raise DamagedFile(f"{path}: cannot be read ({error.strerror}). {self.remedy}") from None
        if damaged:
            raise DamagedFile(f"{path}: {_NOT_AS_SAVED} {self.remedy}")
        return path

    def read_lines(self, name: str) -> list[str]:
        """The lines of a text file."""
        path = self.check(name)
        with path.open("rb") as file:
            return list(decoded_lines(file, str(path)))

    @contextmanager
    def open_tensors(self, name: str) -> Iterator[Any]:
        """An open safetensors file."""
        path = self.check(name)
        try:
            with safe_open(path, framework="pt") as file:
                yield file
        except (SafetensorError, OSError) as error:
            raise DamagedFile(f"{path}: cannot be read as safetensors ({error}). {self.remedy}") from None


_NOT_AS_SAVED = "is not the file that was saved (its SHA-256 differs)."


def check_own_hash(path: Path, data: Mapping[str, Any], remedy: str) -> None:
    """Refuse the data of a JSON file that are not those that were saved; older files have no hash of themselves."""
    found = data.get(HASHES)
    if not isinstance(found, dict) or path.name not in found:
        return
    try:
        damaged = found[path.name] != _own_hash(path.name, data)
    except RecursionError:  # lists inside each other, deeper than any that was saved
        damaged = True
    if damaged:
        raise DamagedFile(f"{path}: {_NOT_AS_SAVED} {remedy}")


def _own_hash(name: str, data: Mapping[str, Any]) -> str:
    """The SHA-256 of all data but this hash itself; neither spaces nor the order of keys change it."""
    hashes = {file: value for file, value in data[HASHES].items() if file != name}
    return hashlib.sha256(json.dumps({**data, HASHES: hashes}, sort_keys=True).encode()).hexdigest()


def check_format(path: Path, number: object, *, oldest: int, newest: int, if_older: str) -> None:
    """Refuse a folder of a format that this version does not read. `if_older`: what to do with one that is too old."""
    if not isinstance(number, int) or oldest <= number <= newest:
        return  # what is not a number is refused as an invalid setting
    readable = f"format {newest}" if oldest == newest else f"formats {oldest} to {newest}"
    advice = "Install a newer version." if number > newest else if_older
    raise ConfigError(f"{path}: has format {number}; this version of bilmo reads {readable}. {advice}")


def write_text(path: Path, text: str, *, escaped: bool = False) -> None:
    r"""Write UTF-8 text with the same line ends on every system.

    escaped: write lone surrogates, which UTF-8 cannot hold, as escapes such as \ud800; otherwise they are an error.
    """
    path.write_text(text, encoding="utf-8", errors="backslashreplace" if escaped else "strict", newline="\n")
