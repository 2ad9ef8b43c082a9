"""A training run from text to a model folder: prepared, trained, judged, saved, resumed.

The run is a generator of events; whoever reads them decides what to show. What lies in the folder:

    config.json model.safetensors vocab.txt chars.txt README.md   the best model so far, as any other
    train.jsonl                                                    every step and every look at held-out text
    training/                                                      recipe, corpus and checkpoint, to go on from

Knows: everything in train. Blind to: the command line.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from bilmo.errors import ConfigError, OutputError
from bilmo.store.beside import new_file
from bilmo.store.folder import read_json
from bilmo.text.files import all_lines, files
from bilmo.text.split import detect, splitter
from bilmo.train import corpus as corpora
from bilmo.train.corpus import Corpus, Sentences
from bilmo.train.events import Event, Finished, Look, Prepared, Step
from bilmo.train.loop import Loop
from bilmo.train.model import WordArrays
from bilmo.train.recipe import Recipe, differences
from bilmo.train.shape import shape_of


def train(texts: list[Path], folder: Path, recipe: Recipe) -> Iterator[Event]:
    """Train, or go on where the same run stopped; the model folder is whole at every moment."""
    with _alone(folder) as work:
        lang, corpus = _same_run(texts, work, recipe) or _new_run(texts, work, recipe)
        words = corpus.words
        shape = shape_of(recipe.network, recipe.text, words, corpus.counts, lang)
        loop = Loop(recipe.train, shape, corpus, WordArrays(words, shape.indexer()), folder)
        yield Prepared(
            corpus=corpus.facts,
            vocab=len(shape.vocab),
            unknown=_unknown_share(corpus.sentences("held"), len(shape.vocab)),
            parameters=sum(p.numel() for p in loop.model.parameters()),
            lang=lang,
            resumed=loop.progress.steps > 0,
        )
        if loop.progress.finished:
            yield Finished(loop.progress, "this run is over already")
            return
        with (folder / "train.jsonl").open("a", encoding="utf-8") as log:
            for event in loop.events():
                if isinstance(event, Step | Look):
                    log.write(json.dumps({"what": type(event).__name__.lower(), **asdict(event)}) + "\n")
                    log.flush()
                yield event


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """The run's own part of the folder, while no other run uses it."""
    if folder.exists() and not (folder / "training").is_dir() and any(folder.iterdir()):
        raise OutputError(f"{folder}: exists already and is no training run. Choose another name, or remove it first.")
    work = folder / "training"
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = FileLock(work / "lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise OutputError(
            f"{folder}: another run is training into this folder. Wait for it, or choose another."
        ) from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror})") from None
    try:
        yield work
    finally:
        lock.release()
        if not (work / RUN).exists():  # it never came to training: leave nothing behind
            shutil.rmtree(work)
            if not any(folder.iterdir()):
                folder.rmdir()


RUN, CORPUS = "run.json", "corpus"


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """What identifies a run: it can go on only as what it was."""

    recipe: Recipe
    texts: list[tuple[str, int]]
    """Files and their sizes."""
    lang: str


def _same_run(texts: list[Path], work: Path, recipe: Recipe) -> tuple[str, Corpus] | None:
    """How the text is split, and the corpus, of the run that was begun here; it must be this one."""
    if not (work / RUN).exists():
        return None
    was = read_json(work / RUN, RunFile)
    changed = differences(was.recipe, recipe)
    if was.texts != _sizes(texts):
        changed.append("the text files are others, or their sizes changed")
    if changed:
        raise ConfigError(
            f"{work.parent}: was begun with other settings, so it cannot be gone on with.\n"
            + "\n".join(f"  {line}" for line in changed)
            + "\nUse the same settings, or another folder."
        )
    return was.lang, Corpus(work / CORPUS)


def _new_run(texts: list[Path], work: Path, recipe: Recipe) -> tuple[str, Corpus]:
    """Read the text, and remember what this run is once that went well."""
    shutil.rmtree(work / CORPUS, ignore_errors=True)  # of a run that was stopped while it read
    lang = detect(all_lines(texts)) if recipe.text.lang == "auto" else recipe.text.lang
    seed, held_out = recipe.train.seed, recipe.text.held_out
    corpus = corpora.build(all_lines(texts), splitter(lang), work / CORPUS, held_out=held_out, seed=seed)
    run = RunFile(recipe=recipe, texts=_sizes(texts), lang=lang)
    with new_file(work / RUN) as partial:
        partial.write_text(json.dumps(asdict(run), indent=1), encoding="utf-8")
    return lang, corpus


def _sizes(texts: list[Path]) -> list[tuple[str, int]]:
    return [(str(file), file.stat().st_size) for file in files(texts) if file.exists()]


def _unknown_share(sentences: Sentences, vocab: int) -> float:
    return float((np.asarray(sentences.ids) >= vocab).mean()) if len(sentences.ids) else 0.0
