"""The parts of a text that is indexed: their vectors are computed by this process or by others, and kept in order.

Another process writes the vectors of a part to a file `FIRST-CHARACTERS-TEXT.part` in the work folder, which ends with
their hash. It is appended to the segment when all parts before it are there, and then removed; a run that is resumed
finds it and uses it.

Knows: Embedder, segments, workers. Blind to: where the text comes from, the folder of an index.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from bilmo.embed.embedder import Embedder
from bilmo.embed.inputs import TextDigest
from bilmo.net.mix import How
from bilmo.sense.index_folder import read_statistics
from bilmo.sense.places import Place, in_line
from bilmo.sense.segment import NewSegment, Stored, packed
from bilmo.sense.space import Floats, Space
from bilmo.store.atomic import new_file
from bilmo.workers import Workers

PART_WORDS = 1 << 15
"""A part ends after the line with this word: a few seconds of work."""
BATCH_SENTENCES = 256
"""Sentences added at a time."""
HASH_BYTES = 32
"""At the end of the file of a part."""
FILES = "*.part"
NAME = re.compile(r"(\d+)-(\d+)-[0-9a-f]+\.part")
"""Names of the files of finished parts."""


@dataclass(frozen=True)
class Step:
    """Some more text is computed."""

    characters: int
    words: int


@dataclass(frozen=True)
class Cut:
    """Some lines of the text."""

    places: list[Place]
    end: int
    """Number of lines up to the end of the part."""
    characters: int
    text: str
    """A fingerprint of the text up to the end of the part."""
    file: Path
    """Where another process writes the vectors."""

    def batches(self) -> Iterator[tuple[list[Place], Step]]:
        """The sentences, some at a time, and how much of the text they are."""
        characters, words = self.characters, sum(len(place.tokens) for place in self.places)
        rest = iter(self.places)
        while some := list(islice(rest, BATCH_SENTENCES)):
            done = sum(len(place.tokens) for place in some)
            step = Step(characters * done // words, done)
            characters, words = characters - step.characters, words - done
            yield some, step


def cuts(
    elmo: Embedder, lines: Iterable[tuple[str, int, str]], digest: TextDigest, first: int, folder: Path
) -> Iterator[Cut]:
    """The parts of the lines from number `first` on; `digest` takes in each line when it is read."""
    places: list[Place] = []
    begin = end = first
    words, before = 0, digest.characters

    def cut() -> Cut:
        characters = digest.characters - before
        file = folder / f"{begin}-{characters}-{digest.value}.part"
        return Cut(places, end, characters, digest.value, file)

    # No batch crosses the end of a part, so a part is the same in every run.
    for name, number, line in lines:
        some = list(in_line(elmo, line, name, number))
        places += some
        end, words = end + 1, words + sum(len(place.tokens) for place in some)
        if words >= PART_WORDS:
            yield cut()
            places, words, begin, before = [], 0, end, digest.characters
    if end > begin:
        yield cut()


IndexWorkers = Workers[Cut, Step | Path]
"""Each task is a part; the last result is its file, which is complete."""


def start_workers(elmo: Embedder, mix: How, stored: Stored, statistics: Path, number: int) -> IndexWorkers:
    """Processes that compute parts; `check_workers` says what they need.

    statistics: the folder in which the statistics are when the first part is computed.
    """
    return Workers(number, partial(_write_part, elmo, mix, stored, statistics))


def _write_part(elmo: Embedder, mix: How, stored: Stored, statistics: Path, cut: Cut) -> Iterator[Step | Path]:
    """Compute a part in a worker."""
    space, content = Space(mix, read_statistics(statistics)), hashlib.blake2b(digest_size=HASH_BYTES)
    with new_file(cut.file) as path, path.open("wb") as file:
        for _, vectors, step in _computed(elmo, space, cut):
            rows = packed(vectors, stored).tobytes()
            content.update(rows)
            file.write(rows)
            yield step
        file.write(content.digest())
    yield cut.file


def _is_there(cut: Cut) -> bool:
    """Whether the vectors of a part are in its file; a damaged file is removed, so that they are computed again."""
    if not cut.file.is_file():
        return False
    content = cut.file.read_bytes()
    whole = hashlib.blake2b(content[:-HASH_BYTES], digest_size=HASH_BYTES).digest() == content[-HASH_BYTES:]
    if not whole:
        cut.file.unlink()
    return whole


def _computed(elmo: Embedder, space: Space, cut: Cut) -> Iterator[tuple[list[Place], Floats, Step]]:
    """The sentences of a part, the vectors of their words, and how much of the text they are."""
    uses = space.uses(elmo, cut.places)
    for some, step in cut.batches():
        yield some, np.concatenate([vectors for _, vectors in islice(uses, len(some))]), step


def append_all(
    elmo: Embedder, parts: Iterable[Cut], segment: NewSegment, space: Space, workers: IndexWorkers | None
) -> Iterator[Step]:
    """Append all parts to the segment; those whose files are there are not computed again."""
    if workers is not None:
        yield from _from_others(parts, segment, workers)
        return
    for cut in parts:
        if _is_there(cut):
            _append_file(segment, cut)
            continue
        for some, vectors, step in _computed(elmo, space, cut):
            segment.add(some, vectors)
            yield step
        segment.commit(cut.end, cut.text)


def _from_others(parts: Iterable[Cut], segment: NewSegment, workers: IndexWorkers) -> Iterator[Step]:
    """Parts may be finished in any order; each waits in its file for those before it."""
    waiting: deque[Cut] = deque()

    def missing() -> Iterator[Cut]:
        for cut in parts:
            waiting.append(cut)
            if not _is_there(cut):
                yield cut

    for _, result in workers.run(missing()):
        if isinstance(result, Step):
            yield result
        while waiting and waiting[0].file.exists():
            _append_file(segment, waiting.popleft())
    for cut in waiting:
        _append_file(segment, cut)


def _append_file(segment: NewSegment, cut: Cut) -> None:
    with cut.file.open("rb") as file:
        for some, _ in cut.batches():
            rows = sum(len(place.words) for place in some)
            segment.append(some, file.read(rows * segment.row_bytes))
    segment.commit(cut.end, cut.text)
    cut.file.unlink()


def characters_waiting(folder: Path, lines: int) -> int:
    """How much text is in the files of finished parts; those that the segment has already are removed."""
    found = 0
    for file in folder.glob(FILES):
        if named := NAME.fullmatch(file.name):
            first, characters = map(int, named.groups())
            if first < lines:
                file.unlink()
            else:
                found += characters
    return found
