"""An index: every use of every word of a text, for searches by similarity.

    index = Index.build("en", "text.txt", "uses")
    index = Index.open("uses")                                    # at once, whatever its size
    for use in index.search(elmo, "He sat on the [bank]."):
        print(use.cosine, use.file, use.line, use.text)

Knows: Embedder, segments, the run that builds. Blind to: the command line.
"""

# W width of a vector

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from os import PathLike
from pathlib import Path
from typing import Self, Unpack, get_args

import numpy as np

from bilmo import progress as bars
from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.embed.options import LoadOptions, check_workers
from bilmo.errors import ConfigError, TextError
from bilmo.formats.open import files_of
from bilmo.ids.batch import Sentence
from bilmo.net.mix import How
from bilmo.sense import index_parts, index_run, nearest_uses
from bilmo.sense.index_folder import (
    CELLS,
    REMEDY,
    STATISTICS,
    IndexConfig,
    is_index,
    read_config,
    read_segment,
    read_statistics,
    segment_folder,
)
from bilmo.sense.index_parts import start_workers
from bilmo.sense.index_run import Event, check_model
from bilmo.sense.places import Place, in_files
from bilmo.sense.segment import Floats, Stored
from bilmo.sense.space import MIX, Space
from bilmo.store.hashed_folder import HashedFolder
from bilmo.store.output import check_output
from bilmo.text.brackets import marked
from bilmo.text.files import STDIN, Paths, listed_paths

log = logging.getLogger("bilmo")


@dataclass(frozen=True)
class Use:
    """A word in a sentence of a text that was searched."""

    cosine: float
    word: str
    text: str
    """The sentence as it is written, with the word in square brackets."""
    file: str
    line: int
    """Number of the line in the file, from 1."""
    tokens: list[str]
    """The tokens of the sentence."""
    position: int
    """Position of the word among the tokens, from 0."""


class Index:
    """Every use of every word of a text, each with its vector; on disk, read in place."""

    def __init__(self, folder: Path) -> None:
        """Use `Index.open`."""
        self.folder = folder
        self._read()

    def _read(self) -> None:
        self.config: IndexConfig = read_config(self.folder)
        self._files = HashedFolder(self.folder, self.config.sha256, REMEDY)
        self._files.check(STATISTICS)
        self._space = Space(index_run.mix_of(self.config), read_statistics(self.folder))
        self._segments = [read_segment(self.folder, number, self.config) for number in range(len(self.config.texts))]
        self._cells: dict[int, nearest_uses.Approximate] = {}
        slow = sum(added.uses for added in self.config.texts if added.approximate)
        if slow and not nearest_uses.installed():
            log.info(
                "%s: all %s uses are compared; search is faster with faiss: pip install 'bilmo[search]', or in a "
                "clone: pip install '.[search]'",
                self,
                slow,
            )

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Self:
        """Open an index immediately: large files are read in place, and each block is checked when it is first read."""
        return cls(Path(folder))

    @classmethod
    def build(
        cls,
        model: str | PathLike[str] | Embedder,
        texts: Paths,
        folder: str | PathLike[str],
        *,
        mix: How = MIX,
        dtype: Stored = "float16",
        workers: int = 1,
        progress: bool = False,
        **loading: Unpack[LoadOptions],
    ) -> Self:
        """Index every use of every word of text files of any size, as `bilmo index` does.

        The same call resumes a run that was interrupted; the folder appears when it is complete.

        model: the name or the path of a model, or a loaded model.
        texts: a text file, a folder of text files, or several of them.
        folder: the folder to write.
        mix: the layers that are compared, as in `Embedder.embed`; the default is the best for nearest uses.
        dtype: number format of the stored vectors; "int8" takes half the space of "float16".
        workers: number of processes that compute, as in `bilmo.embed_files`; the index is the same.
        progress: show a progress bar on a terminal or in a notebook.
        loading: settings of `bilmo.load`, such as `lang="zh"`; a loaded model keeps its own.
        """
        events = index_events(
            model, texts, folder, mix=mix, dtype=dtype, workers=workers, progress=progress, loading=loading
        )
        _to_the_end(events, progress)
        return cls(Path(folder))

    def add(self, model: Embedder, texts: Paths, *, workers: int = 1, progress: bool = False) -> None:
        """Add the uses of more texts. The statistics stay those of the first texts.

        model: the model that the index was built with. The other arguments are those of `build`.
        """
        events = index_events(model, texts, self.folder, add=True, workers=workers, progress=progress)
        _to_the_end(events, progress)
        self._read()

    def __len__(self) -> int:
        """Number of uses."""
        return sum(map(len, self._segments))

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, uses={len(self)}, model={self.config.model_name!r})"

    def search(self, model: Embedder, text: str, topn: int = 10, *, same_word: bool = False) -> list[Use]:
        """The uses nearest to the word in square brackets, as in "He sat on the [bank].", nearest first.

        model: the model that the index was built with.
        same_word: only uses of the same word, in upper and lower case.
        """
        if topn < 1:
            raise ConfigError(f"topn is {topn}; it must be 1 or more")
        check_model(model, self.folder, self.config)
        sentence, position = marked(model.split, text)
        found = self.search_at(model, sentence, position, topn, same_word=same_word)
        if not found:
            raise TextError(
                f"{sentence[position]!r} is not used in {self.folder}, and only uses of the same word are searched"
            )
        return found

    def search_at(
        self, model: Embedder, sentence: Sentence, position: int, topn: int, *, same_word: bool = False
    ) -> list[Use]:
        """The same for one token of a sentence. The model is not checked again; there may be no use."""
        vector = self._space.vector(model, sentence, position)
        return self.nearest(vector, topn, word=sentence[position] if same_word else None)

    def nearest(self, vector: Floats, topn: int, *, word: str | None = None) -> list[Use]:
        """The uses nearest to a vector (W,) of length 1; with `word`, only uses of this word."""
        found: list[tuple[float, int, int]] = []
        for number, segment in enumerate(self._segments):
            among = None if word is None else segment.uses_of(word)
            if among is None and (cells := self._approximate(number)):
                uses, cosines = cells.nearest(segment, vector, topn)
            else:
                uses, cosines = nearest_uses.nearest(segment, vector, topn, among)
            found += [(-float(cosine), number, int(use)) for use, cosine in zip(uses, cosines, strict=True)]
        return [_use(-cosine, *self._segments[number].place(use)) for cosine, number, use in nsmallest(topn, found)]

    def uses_of(self, word: str, most: int) -> tuple[list[tuple[Place, int]], Floats, int]:
        """Uses of a word, in upper and lower case: the sentence and position of each, their vectors, and their number.

        If there are more than `most`, they are drawn at equal distances.
        """
        numbers = [segment.uses_of(word) for segment in self._segments]
        total = sum(map(len, numbers))
        drawn = np.linspace(0, total - 1, min(most, total)).astype(np.intp)
        places: list[tuple[Place, int]] = []
        vectors = []
        for segment, uses in zip(self._segments, numbers, strict=True):
            here = uses[drawn[(drawn >= 0) & (drawn < len(uses))]]
            places += map(segment.place, here.tolist())
            vectors.append(segment.take(here))
            drawn -= len(uses)
        return places, np.concatenate(vectors), total

    def some_words(self, most: int) -> list[str]:
        """The words of some uses of every text, drawn at equal distances."""
        found = []
        for segment in self._segments:
            found += segment.words(np.linspace(0, len(segment) - 1, min(most, len(segment))).astype(np.intp))
        return found

    def _approximate(self, number: int) -> nearest_uses.Approximate | None:
        """The structure for approximate search of a segment, if it has one and faiss is there."""
        if not self.config.texts[number].approximate or not nearest_uses.installed():
            return None
        if number not in self._cells:
            self._cells[number] = nearest_uses.Approximate(self._files.check(f"{segment_folder(number)}/{CELLS}"))
        return self._cells[number]


def index_among(texts: Sequence[Path]) -> Index | None:
    """The index, if the path of an index is given instead of texts."""
    if not any(map(is_index, texts)):
        return None
    if len(texts) > 1:
        raise ConfigError(f"{', '.join(map(str, texts))}: an index cannot be combined with other texts or indexes")
    return Index.open(texts[0])


def _use(cosine: float, place: Place, position: int) -> Use:
    text = place.marked(position)
    return Use(cosine, place.tokens[position], text, place.file, place.line, place.tokens, position)


def index_events(
    model: str | PathLike[str] | Embedder,
    texts: Paths,
    folder: str | PathLike[str],
    *,
    mix: How = MIX,
    dtype: Stored = "float16",
    add: bool = False,
    workers: int = 1,
    progress: bool = False,
    loading: LoadOptions | None = None,
) -> Generator[Event, None, None]:
    """The run of `Index.build` or, with `add`, of `Index.add`: it advances as its events are read."""
    paths, output = listed_paths(texts), Path(folder)
    for path in paths:
        if path != STDIN and not path.exists():
            raise TextError(f"{path}: there is no such file")
    if dtype not in get_args(Stored):
        raise ConfigError(f"dtype is {dtype!r}; accepted: {', '.join(get_args(Stored))}")
    if add:
        before = read_config(output)
        mix, dtype = index_run.mix_of(before), before.stored
    loaded = model if isinstance(model, Embedder) else None
    start = loaded.start if loaded else "settled" if loading is None else loading.get("start", "settled")
    check_workers(workers, start=start, device=loaded.device if loaded else (loading or {}).get("device", "cpu"))
    check_output([output], texts=paths, files=[] if isinstance(model, Embedder) else files_of(Path(model)))
    if isinstance(model, Embedder):
        if loading:
            raise ConfigError(f"{', '.join(loading)}: a loaded model keeps its own settings; load it again with others")
        elmo, name = model, ""
    else:
        with bars.working("loading the model", show=progress):
            elmo, name = load(model, **(loading or {})), Path(model).name
    statistics = index_run.statistics_folder(output, add=add)
    # Forked now, before a progress bar starts a thread.
    processes = start_workers(elmo, mix, dtype, statistics, workers) if workers > 1 else None
    return index_run.run(elmo, paths, output, mix=mix, stored=dtype, name=name, add=add, workers=processes)


def _to_the_end(events: Iterable[Event], progress: bool) -> None:
    with bars.embedding(show=progress) as bar:
        for event in events:
            if isinstance(event, index_run.Started):
                bar.start(event.characters, event.done_characters)
            elif isinstance(event, index_parts.Step):
                bar.advance(event.characters, event.words)


def search_files(elmo: Embedder, texts: Sequence[Path], text: str, topn: int, *, same_word: bool = False) -> list[Use]:
    """The same as `Index.search`, exactly and without an index: the texts are read twice, a part at a time."""
    if STDIN in texts:
        raise TextError(f"{STDIN}: standard input can be read only once, and a search needs two passes. Name a file.")
    sentence, position = marked(elmo.split, text)
    space = Space.of_files(elmo, texts)
    vector = space.vector(elmo, sentence, position)
    word = sentence[position].casefold() if same_word else None

    def asked(token: str) -> bool:
        return word is None or token.casefold() == word

    places = (place for place in in_files(elmo, texts) if any(asked(place.tokens[k]) for k in place.words))
    best: list[tuple[float, int, Place, int]] = []
    for number, (place, vectors) in enumerate(space.uses(elmo, places)):
        cosines = (vectors * vector).sum(axis=1)
        here = [(-float(cosine), number, place, k) for cosine, k in zip(cosines, place.words, strict=True)]
        best = nsmallest(topn, best + [one for one in here if asked(place.tokens[one[3]])], key=lambda one: one[:2])
    if not best:
        raise TextError(f"{sentence[position]!r} is not used in the text")
    return [_use(-cosine, place, position) for cosine, _, place, position in best]
