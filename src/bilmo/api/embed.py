"""`bilmo.embed_files` and `bilmo.word_cache`: text files to files of vectors.

Knows: Embedder, bulk jobs, files of vectors. Blind to: the command line.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Literal, Unpack, overload

import numpy as np
import torch

from bilmo import progress as bars
from bilmo.embed import job, word_cache_file
from bilmo.embed.embedder import Embedder
from bilmo.embed.inputs import Inputs
from bilmo.embed.job import EmbedSettings, Event, Finished, Started, Step
from bilmo.embed.load import load
from bilmo.embed.options import All, LoadOptions, Pool, check, check_workers
from bilmo.embed.output import write as embeddings
from bilmo.embed.runner import Vectors
from bilmo.errors import ConfigError, TextError
from bilmo.formats.open import files_of
from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END
from bilmo.net.config import Precision
from bilmo.net.mix import How
from bilmo.store.model_folder import DType
from bilmo.store.output import check_output
from bilmo.store.validate import sha256_of
from bilmo.text.files import STDIN, Paths, all_lines, listed_paths
from bilmo.workers import Workers

BATCH_WORDS = 1024
"""Words of a word cache computed at a time."""
log = logging.getLogger("bilmo")


@overload
def embed_files(
    model: str | PathLike[str] | Embedder,
    texts: Paths,
    output: str | PathLike[str],
    *,
    mix: How | All | None = None,
    pool: Pool = "none",
    dtype: DType = "float32",
    field: str | None = None,
    overwrite: bool = False,
    compress: bool = False,
    workers: int = 1,
    progress: bool = False,
    events: Literal[False] = False,
    **loading: Unpack[LoadOptions],
) -> Finished: ...
@overload
def embed_files(
    model: str | PathLike[str] | Embedder,
    texts: Paths,
    output: str | PathLike[str],
    *,
    mix: How | All | None = None,
    pool: Pool = "none",
    dtype: DType = "float32",
    field: str | None = None,
    overwrite: bool = False,
    compress: bool = False,
    workers: int = 1,
    progress: bool = False,
    events: Literal[True],
    **loading: Unpack[LoadOptions],
) -> Iterator[Event]: ...
def embed_files(
    model: str | PathLike[str] | Embedder,
    texts: Paths,
    output: str | PathLike[str],
    *,
    mix: How | All | None = None,
    pool: Pool = "none",
    dtype: DType = "float32",
    field: str | None = None,
    overwrite: bool = False,
    compress: bool = False,
    workers: int = 1,
    progress: bool = False,
    events: bool = False,
    **loading: Unpack[LoadOptions],
) -> Finished | Iterator[Event]:
    """Embed text files of any size and write the vectors to a file, as `bilmo embed -o` does.

    Each line gives one entry. Only a part of the vectors is in memory at a time. The same call resumes a run that was
    interrupted; the file appears when it is complete.

    model: the name or the path of a model, or a loaded model.
    texts: a text file, a folder of text files, or several of them; with `field` also JSON lines, CSV and TSV.
    output: the file to write; its extension selects the format: .h5, .parquet, .npy, .npz or .jsonl.
    mix: the layers to keep, as in `Embedder.embed`; by default "all" for .h5, and "mean" for other formats.
    pool: "mean" or "max" gives one vector per line instead of one per token.
    dtype: "float16" takes half the space and keeps about three digits.
    field: the field of JSON lines, or the column of CSV or TSV, to embed.
    overwrite: replace the file if it exists; otherwise that is an error.
    compress: compress .h5 and .npz files.
    workers: number of processes that compute, each with one thread, on the CPU. They are forked and share the model.
    progress: show a progress bar on a terminal or in a notebook.
    events: return an iterator of events instead (`bilmo.embed.job`): the run advances as they are read.
    loading: settings of `bilmo.load`, such as `lang="zh"`; a loaded model keeps its own.
    """
    paths = listed_paths(texts)
    for path in paths:
        if path != STDIN and not path.exists():
            raise TextError(f"{path}: there is no such file")
    found = embed_inputs(
        model,
        Inputs(tuple(map(str, paths)), field=field),
        Path(output),
        mix=mix,
        pool=pool,
        dtype=dtype,
        overwrite=overwrite,
        compress=compress,
        workers=workers,
        progress=progress,
        loading=loading,
    )
    return found if events else _finished(found, Path(output), progress)


def embed_inputs(
    model: str | PathLike[str] | Embedder,
    inputs: Inputs,
    output: Path,
    *,
    mix: How | All | None,
    pool: Pool,
    dtype: DType,
    overwrite: bool,
    compress: bool,
    workers: int,
    progress: bool,
    loading: LoadOptions,
) -> Iterator[Event]:
    """What `embed_files` does, for inputs that may also be text; mistakes are reported before the model is read."""
    embeddings.check(output, compress=compress)
    if mix is None:
        mix = "all" if output.suffix.lower() in (".h5", ".hdf5") else "mean"
    check(mix, pool, dtype, loading.get("batch_tokens"))
    loaded = model if isinstance(model, Embedder) else None
    start = loaded.start if loaded else loading.get("start", "settled")
    check_workers(workers, start=start, device=loaded.device if loaded else loading.get("device", "cpu"))
    word_cache, dictionary = loading.get("word_cache"), loading.get("dictionary")
    written = [output, *embeddings.beside(output)]
    read = [Path(file) for file in (word_cache, dictionary) if file is not None]
    read += [] if isinstance(model, Embedder) else files_of(Path(model))
    check_output(written, texts=inputs.paths, files=read)
    if isinstance(model, Embedder):
        if loading:
            raise ConfigError(f"{', '.join(loading)}: a loaded model keeps its own settings; load it again with others")
        elmo = model
    else:
        with bars.working("loading the model", show=progress):
            elmo = load(model, **loading)
    settings = EmbedSettings(
        mix=mix,
        pool=pool,
        dtype=dtype,
        lang=elmo.lang,
        compress=compress,
        word_cache="none" if word_cache is None else sha256_of(Path(word_cache)),
        model="" if isinstance(model, Embedder) else Path(model).name,
    )
    # Forked now, before a progress bar starts a thread.
    processes = job.start_workers(elmo, settings, workers) if workers > 1 else None
    return job.run(elmo, inputs, output, settings, overwrite=overwrite, workers=processes)


def _finished(events: Iterator[Event], output: Path, progress: bool) -> Finished:
    """Run to the end, with a bar and a log."""
    with bars.embedding(show=progress) as bar:
        for event in events:
            if isinstance(event, Started):
                bar.start(event.characters, event.done_characters)
                log.info("%s: %s", output, event)
            elif isinstance(event, Step):
                bar.advance(event.characters, event.tokens)
    assert isinstance(event, Finished), "a run ends with this event, or with an error"
    for note in event.notes:
        log.warning("%s: %s", output, note)
    return event


def word_cache(
    model: str | PathLike[str],
    texts: Paths,
    output: str | PathLike[str],
    *,
    precision: Precision = "float32",
    device: str | torch.device = "cpu",
    workers: int = 1,
    progress: bool = False,
) -> int:
    """Compute the vectors of words without context once and write them to a file, as `bilmo word-cache` does.

    `bilmo.load(model, word_cache=FILE)` uses them. Words that are not in the file are computed as usual. The file
    changes vectors only by rounding. Returns the number of words in the file.

    model: the name or the path of a model.
    texts: files or folders of words, separated by spaces or line ends.
    output: the file to write (.safetensors).
    precision: as in `bilmo.load`; the file can be used only with the same precision.
    device: where the network computes, as in `bilmo.load`.
    workers: number of processes, as in `bilmo.embed_files`.
    progress: show a progress bar on a terminal or in a notebook.
    """
    paths, file = listed_paths(texts), Path(output)
    check_workers(workers, start="settled", device=device)
    check_output([file], texts=paths, files=files_of(Path(model)))
    words = list(dict.fromkeys(word for line in all_lines(paths) for word in line.split()))
    if not words:
        raise TextError(f"{', '.join(map(str, paths))}: no words; every line is blank")
    words = list(dict.fromkeys((SENTENCE_BEGIN, SENTENCE_END, *words)))
    with bars.working("loading the model", show=progress):
        elmo = load(model, precision=precision, device=device)
    batches = [words[at : at + BATCH_WORDS] for at in range(0, len(words), BATCH_WORDS)]

    def vectors_of(number: int) -> list[Vectors]:
        return [elmo.word_vectors(batches[number])]

    numbers = range(len(batches))
    with Workers(workers, vectors_of) if workers > 1 else nullcontext() as processes:
        computed: Iterable[tuple[int, Vectors]] = (
            processes.run(numbers) if processes else ((number, vectors_of(number)[0]) for number in numbers)
        )
        with bars.counting("batches of words", len(batches), show=progress) as counted:
            found = dict(counted(computed))
    vectors = np.concatenate([found[number] for number in numbers])
    word_cache_file.write(file, words, vectors, elmo.bundle, precision)
    return len(words)
