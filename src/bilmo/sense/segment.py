"""One folder of an index: the uses of the texts that were indexed together. It never changes once it is complete.

    vectors.bin      one row per use: the vector, as float16 or int8
    words.bin        per use: the number of its word
    uses.bin         per use: its sentence, and its position there
    sentences.bin    per sentence: where it stands in text.bin, its file, its line
    text.bin         the tokens of all sentences
    names.json       the words and the names of the files; while the segment is built, also how far it is
    hashes.bin       of all blocks of all .bin files, in this order

While it is built, rows are appended, and names.json is replaced when a part is on the disk: a run that was stopped
continues from there. If a file has changed since then, the run starts over.

Knows: places, files read in place. Blind to: models, how vectors are compared.
"""

# N uses, W width of a vector

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.word_space import unit
from bilmo.errors import BilmoError, DamagedFile
from bilmo.sense.mapped_file import READ_BYTES, MappedRows, block_hashes, hashes_length
from bilmo.sense.places import Place
from bilmo.store.atomic import new_file, sync
from bilmo.store.validate import checked, parse_json, regular_file

Floats = NDArray[np.float32]
Stored = Literal["float16", "int8"]

VECTORS, WORDS, USES, SENTENCES, TEXT = "vectors.bin", "words.bin", "uses.bin", "sentences.bin", "text.bin"
NAMES, HASHES = "names.json", "hashes.bin"
LARGEST_NAMES = 1 << 32
"""Bytes of names.json, which grows with the number of distinct words."""
USE = np.dtype([("sentence", "<u4"), ("position", "<u4")])
SENTENCE = np.dtype([("begin", "<u8"), ("length", "<u4"), ("file", "<u4"), ("line", "<u4")])
END = "\n"
"""After each token in text.bin; a space before it means that white space follows the token."""


@dataclass
class Names:
    """The content of names.json."""

    words: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each file."""
    lines: int = 0
    """Lines of text that are done."""
    text: str = ""
    """A fingerprint of these lines."""
    hashes: dict[str, str] = field(default_factory=dict)
    """Of the content of each file while the segment is built, and of this one without its own hash."""

    def own_hash(self) -> str:
        """The hash of everything here except itself."""
        rest = asdict(self) | {"hashes": {name: value for name, value in self.hashes.items() if name != NAMES}}
        return hashlib.blake2b(json.dumps(rest).encode()).hexdigest()


def kinds(width: int, stored: Stored) -> dict[str, np.dtype[Any]]:
    """The rows of each file."""
    vector = np.dtype(("<f2" if stored == "float16" else "i1", (width,)))
    return {VECTORS: vector, WORDS: np.dtype("<u4"), USES: USE, SENTENCES: SENTENCE, TEXT: np.dtype("u1")}


class NewSegment:
    """A segment that is being built; it continues where `commit` was last called."""

    def __init__(self, folder: Path, width: int, stored: Stored) -> None:
        self.folder, self._kinds, self._stored = folder, kinds(width, stored), stored
        folder.mkdir(exist_ok=True)
        for name in self._kinds:
            (folder / name).touch()
            regular_file(folder / name, "Remove it, and run the same command again.")
        self.names = _read_names(folder / NAMES)
        self._hashes = {name: _hash_of(folder / name, self.names.sizes.get(name, 0)) for name in self._kinds}
        if any(value.hexdigest() != self.names.hashes.get(name) for name, value in self._hashes.items()):
            self.names = Names()  # a file has changed, or there is none yet
            self._hashes = {name: hashlib.blake2b() for name in self._kinds}
        sizes = self.names.sizes
        self._files = {name: (folder / name).open("r+b") for name in self._kinds}
        for name, file in self._files.items():
            file.truncate(sizes.get(name, 0))
            file.seek(0, os.SEEK_END)
        self._numbers = {word: number for number, word in enumerate(self.names.words)}
        self._rows = {name: sizes.get(name, 0) // kind.itemsize for name, kind in self._kinds.items()}

    @property
    def uses(self) -> int:
        """Uses so far."""
        return self._rows[WORDS]

    @property
    def sentences(self) -> int:
        """Sentences so far."""
        return self._rows[SENTENCES]

    @property
    def row_bytes(self) -> int:
        """Bytes of a stored vector."""
        return self._kinds[VECTORS].itemsize

    def add(self, places: Sequence[Place], vectors: Floats) -> None:
        """Append sentences and the vectors (N, W) of their words."""
        self.append(places, packed(vectors, self._stored).tobytes())

    def append(self, places: Sequence[Place], vectors: bytes) -> None:
        """Append sentences and the stored vectors of their words."""
        words, uses, sentences, texts = [], [], [], []
        begin = self._rows[TEXT]
        for number, place in enumerate(places, start=self._rows[SENTENCES]):
            pairs = zip(place.tokens, place.spaced, strict=True)
            text = "".join(f"{token} {END}" if space else token + END for token, space in pairs).encode()
            if not self.names.files or self.names.files[-1] != place.file:
                self.names.files.append(place.file)
            sentences.append((begin, len(text), len(self.names.files) - 1, place.line))
            begin += len(text)
            texts.append(text)
            for position in place.words:
                words.append(self._numbers.setdefault(place.tokens[position], len(self._numbers)))
                uses.append((number, position))
        self._write(VECTORS, vectors)
        for name, rows in ((WORDS, words), (USES, uses), (SENTENCES, sentences)):
            self._write(name, np.array(rows, dtype=self._kinds[name]).tobytes())
        self._write(TEXT, b"".join(texts))

    def _write(self, name: str, data: bytes) -> None:
        self._files[name].write(data)
        self._hashes[name].update(data)
        self._rows[name] += len(data) // self._kinds[name].itemsize

    def commit(self, lines: int, text: str) -> None:
        """Make what was added last: the next NewSegment of this folder continues from here. See Names."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        sizes = {name: self._rows[name] * kind.itemsize for name, kind in self._kinds.items()}
        hashes = {name: value.hexdigest() for name, value in self._hashes.items()}
        self.names = Names(list(self._numbers), self.names.files, sizes, lines, text, hashes)
        hashes[NAMES] = self.names.own_hash()
        with new_file(self.folder / NAMES) as partial:
            partial.write_text(json.dumps(asdict(self.names)), encoding="utf-8")

    def close(self) -> None:
        """Close the files; what was not committed is dropped by the next NewSegment."""
        for file in self._files.values():
            file.close()

    def hash_blocks(self) -> None:
        """Complete the segment, after the last commit."""
        self.close()
        with new_file(self.folder / HASHES) as partial:
            partial.write_bytes(b"".join(block_hashes(self.folder / name) for name in self._kinds))
        sync(self.folder)


def _read_names(path: Path) -> Names:
    """How far a segment is; nothing, if it was not started or the file is damaged."""
    try:
        found = read_names(path)
    except BilmoError:
        return Names()
    return found if found.hashes.get(NAMES) == found.own_hash() else Names()


def _hash_of(path: Path, size: int) -> Any:
    """The hash of the first bytes of a file, to be continued."""
    found = hashlib.blake2b()
    with path.open("rb") as file:
        while size and (some := file.read(min(size, READ_BYTES))):
            found.update(some)
            size -= len(some)
    return found


def read_names(path: Path) -> Names:
    """The content of names.json."""
    return checked(parse_json(path, LARGEST_NAMES), Names, str(path))


def packed(values: Floats, stored: Stored) -> NDArray[Any]:
    """Vectors of length 1 as they are stored."""
    if stored == "float16":
        return np.asarray(values, dtype="<f2")
    largest = np.abs(values).max(axis=-1, keepdims=True, initial=1e-12)
    return np.asarray(np.rint(values * (127 / largest)), dtype="i1")


def unpacked(values: NDArray[Any]) -> Floats:
    """Stored vectors; those of int8 get their length back, which is 1."""
    found = values.astype(np.float32)
    return unit(found) if values.dtype == np.int8 else found


_NONE = np.empty(0, dtype=np.intp)


class Segment:
    """A complete segment, read in place."""

    def __init__(self, folder: Path, width: int, stored: Stored, hashes: bytes, names: Names, remedy: str) -> None:
        self._names, self._folder, self._remedy = names, folder, remedy
        at = 0
        files: dict[str, MappedRows] = {}
        for name, kind in kinds(width, stored).items():
            size = names.sizes.get(name, 0)
            length = hashes_length(size)
            files[name] = MappedRows(folder / name, kind, size // kind.itemsize, hashes[at : at + length], remedy)
            at += length
        self._files: Mapping[str, MappedRows] = files

    def __len__(self) -> int:
        return len(self._files[WORDS])

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self._files[SENTENCES])

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        """The numbers of words, by their lower-case form."""
        found = defaultdict(list)
        for number, word in enumerate(self._names.words):
            found[word.casefold()].append(number)
        return found

    def part(self, begin: int, end: int) -> Floats:
        """The vectors (N, W) of neighbouring uses."""
        return unpacked(self._files[VECTORS].part(begin, end))

    def take(self, uses: NDArray[np.intp]) -> Floats:
        """The vectors (N, W) of some uses."""
        return unpacked(self._files[VECTORS].take(uses))

    def uses_of(self, word: str) -> NDArray[np.intp]:
        """The numbers of all uses of a word, in upper and lower case."""
        wanted = self._numbers.get(word.casefold(), [])
        return np.flatnonzero(np.isin(self._files[WORDS].part(0, len(self)), wanted)) if wanted else _NONE

    def words(self, uses: NDArray[np.intp]) -> list[str]:
        """The words of some uses."""
        with self._fitting():
            return [self._names.words[number] for number in self._files[WORDS].take(uses)]

    def place(self, use: int) -> tuple[Place, int]:
        """The sentence of a use, and its position there."""
        with self._fitting():
            (found,) = self._files[USES].part(use, use + 1)
            (sentence,) = self._files[SENTENCES].part(int(found["sentence"]), int(found["sentence"]) + 1)
            begin, position = int(sentence["begin"]), int(found["position"])
            text = self._files[TEXT].part(begin, begin + int(sentence["length"])).tobytes().decode()
            pieces = text.split(END)[:-1]
            place = Place(
                [piece.removesuffix(" ") for piece in pieces],
                [piece.endswith(" ") for piece in pieces],
                self._names.files[int(sentence["file"])],
                int(sentence["line"]),
            )
            place.tokens[position]  # there is one
            return place, position

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Report numbers in one file that do not fit another, although both have the right hashes."""
        try:
            yield
        except (IndexError, ValueError):
            raise DamagedFile(f"{self._folder}: its files do not fit each other. {self._remedy}") from None
