"""Build an index, or add texts to one: a run that can be stopped and resumed. It is a generator of events.

The work folder `.NAME.index` stands beside the index. In it a segment is built part by part; when it is complete, it
is moved into the index, and only then config.json names it.

Knows: Embedder, segments, runs. Blind to: how an index is searched, the command line.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

from bilmo import __version__
from bilmo.embed.embedder import Embedder
from bilmo.embed.inputs import TextDigest
from bilmo.errors import ConfigError, OutputError, TextError
from bilmo.net.mix import How
from bilmo.sense import nearest_uses
from bilmo.sense.index_folder import (
    CELLS,
    CONFIG,
    FORMAT,
    STATISTICS,
    Added,
    IndexConfig,
    read_config,
    read_statistics,
    segment_folder,
    write_config,
    write_statistics,
)
from bilmo.sense.index_parts import FILES, IndexWorkers, Step, append_all, characters_waiting, cuts
from bilmo.sense.segment import NewSegment, Stored
from bilmo.sense.space import Space, sampled
from bilmo.store.atomic import TEMPORARY, sync
from bilmo.store.run import RUN, Identity, Run, open_run
from bilmo.text.files import STDIN, named_lines

INSIDE = "index"
"""The folder in the work folder in which the index, or its new segment, is built."""


@dataclass(frozen=True)
class Started:
    """Before the first part is computed."""

    characters: int
    """Of all the text."""
    done_characters: int
    """Of the text that a run before this one has finished."""


@dataclass(frozen=True)
class Grouping:
    """All vectors are computed; the structure for approximate search is being made."""

    uses: int


@dataclass(frozen=True)
class Finished:
    """The index is complete."""

    uses: int
    """That were added."""
    sentences: int
    all_uses: int
    """Of the index."""
    approximate: bool
    """Whether search is fast because it is approximate."""


Event = Started | Step | Grouping | Finished


@dataclass(frozen=True)
class _Survey:
    """The counts and the hash from one pass over the texts."""

    digest: str
    characters: int
    sample: list[str]


def run(
    elmo: Embedder,
    paths: list[Path],
    output: Path,
    *,
    mix: How,
    stored: Stored,
    name: str,
    add: bool,
    workers: IndexWorkers | None = None,
) -> Generator[Event, None, None]:
    """Build an index of texts, or add them to an existing index; or resume the same run.

    name: of the model, for messages.
    add: then mix and stored must be those of the index.
    workers: processes that compute parts; without them, this process does.
    """
    with workers or nullcontext():
        yield from _run(elmo, paths, output, mix, stored, name, add, workers)


def statistics_folder(output: Path, *, add: bool) -> Path:
    """Where the statistics are while a run computes vectors."""
    return output if add else work_folder(output) / INSIDE


def work_folder(output: Path) -> Path:
    """Where an index is built."""
    return output.with_name(f".{output.name}.index")


def _run(
    elmo: Embedder,
    paths: list[Path],
    output: Path,
    mix: How,
    stored: Stored,
    name: str,
    add: bool,
    workers: IndexWorkers | None,
) -> Generator[Event, None, None]:
    if STDIN in paths:
        raise TextError(f"{STDIN}: standard input can be read only once, and an index needs two passes. Name a file.")
    if elmo.start == "carry":
        raise ConfigError("an index cannot carry a state; load the model with start='settled' or 'zero'")
    config = _config(elmo, mix, stored, name)
    if add:
        before = read_config(output)
        check_model(elmo, output, before)
        if before.lang != config.lang:
            raise ConfigError(f"{output}: was built with lang {before.lang!r}; add texts with the same")
        config = before
    survey = _survey(paths)
    done = [added.text for added in config.texts]
    number = done.index(survey.digest) if survey.digest in done else len(done)
    work, identity = work_folder(output), _identity(elmo, config, survey, number)
    with open_run(output, work, kind="index run", identity=identity, keeps=[INSIDE, FILES]) as run:
        if number < len(done) and not run.resumed:
            raise OutputError(f"{output}: already contains this text; nothing was added")
        if not add and os.path.lexists(output):
            if not (run.resumed and _is_built(output, survey)):
                raise OutputError(
                    f"{output}: already exists. Choose another name, or add texts to an index with --add."
                )
            config = read_config(output)
        if number == len(config.texts):
            try:
                config = yield from _built(elmo, paths, output, run, config, survey, workers)
            except OSError as error:
                kept = " Finished parts are kept; the same command resumes the run." if (work / RUN).exists() else ""
                raise OutputError(f"{output}: cannot be written ({error.strerror or error}).{kept}") from error
        run.remove()
    added = config.texts[number]
    yield Finished(added.uses, added.sentences, sum(one.uses for one in config.texts), added.approximate)


def _config(elmo: Embedder, mix: How, stored: Stored, name: str) -> IndexConfig:
    """The settings of a new index."""
    return IndexConfig(
        bilmo_index=FORMAT,
        model=elmo.bundle.identity("layers"),
        model_name=name,
        start=elmo.start,
        lang=elmo.lang,
        mix=mix if isinstance(mix, str) else [mix] if isinstance(mix, int) else list(mix),
        stored=stored,
        width=elmo.embed([["a"]], mix=mix)[0].shape[-1],
        texts=[],
        sha256={},
    )


def check_model(elmo: Embedder, folder: Path, config: IndexConfig) -> None:
    """Refuse another model than the one that an index was made with."""
    if elmo.bundle.identity("layers") != config.model:
        raise ConfigError(
            f"{folder}: was made with another model ({config.model_name}); use that one, or build an index with yours"
        )
    if elmo.start != config.start:
        raise ConfigError(f"{folder}: was made with start={config.start!r}; load the model with the same")


def _survey(paths: list[Path]) -> _Survey:
    """Read all texts once: their fingerprint, and lines for the statistics."""
    digest = TextDigest()
    sample = sampled(line for _, _, line in _lines(paths, digest))
    return _Survey(digest.value, digest.characters, sample)


def _lines(paths: Iterable[Path], digest: TextDigest) -> Iterator[tuple[str, int, str]]:
    """Each line with its file and number; the names of the files count too."""
    for name, lines in named_lines(paths):
        digest.add([name])
        for number, line in enumerate(lines, start=1):
            digest.add(line)
            yield name, number, line


def _identity(elmo: Embedder, config: IndexConfig, survey: _Survey, number: int) -> Identity:
    settings: dict[str, Any] = {"mix": config.mix, "stored": config.stored, "lang": config.lang, "start": config.start}
    settings |= {"precision": elmo.precision, "additions before": number, "bilmo version": __version__}
    inputs = {"the model": config.model, "the text": survey.digest}
    if elmo.bundle.dictionary:
        inputs["the dictionary"] = elmo.bundle.dictionary.sha256
    return Identity(settings, inputs)


def _is_built(output: Path, survey: _Survey) -> bool:
    """Whether an index is what this run made before it was stopped."""
    return (output / CONFIG).exists() and survey.digest in [added.text for added in read_config(output).texts]


def _built(
    elmo: Embedder,
    paths: list[Path],
    output: Path,
    run: Run,
    config: IndexConfig,
    survey: _Survey,
    workers: IndexWorkers | None,
) -> Generator[Event, None, IndexConfig]:
    """Build the next segment and publish it; returns the new content of config.json."""
    number = len(config.texts)
    inside = run.work / INSIDE
    inside.mkdir(exist_ok=True)
    for left in [path for path in inside.rglob("*") if TEMPORARY.fullmatch(path.name)]:
        left.unlink()  # a process that was killed had it half written
    folder, published = inside / segment_folder(number), output / segment_folder(number)
    if number and published.exists():  # the run was stopped before config.json could name it
        published.rename(folder) if run.resumed and not folder.exists() else shutil.rmtree(published)
    if number:
        whitening = read_statistics(output)
    elif run.resumed and (inside / STATISTICS).exists():
        whitening = read_statistics(inside)
    else:
        whitening = Space.of_lines(elmo, survey.sample, mix_of(config)).whitening
        write_statistics(inside, whitening)
    run.start()
    segment = NewSegment(folder, config.width, config.stored)
    try:
        space = Space(mix_of(config), whitening)
        yield from _computed(elmo, paths, run.work, segment, space, survey, workers)
    finally:
        segment.close()
    if not segment.uses:
        run.remove()
        raise TextError("there is no word in the text; every line is blank or has only punctuation")
    approximate = segment.uses > nearest_uses.EXACT_USES and nearest_uses.installed()
    if approximate:
        yield Grouping(segment.uses)
        nearest_uses.write_approximate(folder, folder / CELLS, segment.uses, config.width, config.stored)
    segment.hash_blocks()
    added = Added(text=survey.digest, uses=segment.uses, sentences=segment.sentences, approximate=approximate)
    config = replace(config, texts=[*config.texts, added])
    if number:
        folder.rename(published)
        write_config(output, config, inside)
        (inside / CONFIG).replace(output / CONFIG)
    else:
        write_config(inside, config, inside)
        inside.rename(output)
    sync(output)
    sync(output.parent)
    return read_config(output)


def mix_of(config: IndexConfig) -> How:
    """The mix of an index."""
    return cast("How", config.mix)  # a network refuses other names


def _computed(
    elmo: Embedder,
    paths: list[Path],
    work: Path,
    segment: NewSegment,
    space: Space,
    survey: _Survey,
    workers: IndexWorkers | None,
) -> Generator[Event, None, None]:
    """Compute all parts that are missing."""
    digest = TextDigest()
    lines = _lines(paths, digest)
    for _ in islice(lines, segment.names.lines):
        pass
    if segment.names.lines and digest.value != segment.names.text:
        raise _changed(paths, segment)
    yield Started(survey.characters, digest.characters + characters_waiting(work, segment.names.lines))
    parts = cuts(elmo, lines, digest, segment.names.lines, work)
    yield from append_all(elmo, parts, segment, space, workers)
    if digest.value != survey.digest:
        raise _changed(paths, segment)


def _changed(paths: list[Path], segment: NewSegment) -> TextError:
    return TextError(
        f"{', '.join(map(str, paths))}: changed while it was read. When it is complete, remove "
        f"{segment.folder.parents[1]}, then run the same command again."
    )
