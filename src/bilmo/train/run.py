"""A training run from text to a model folder: prepared, trained, judged, saved, resumed.

The run is a generator of events; whoever reads them decides what to show. What lies in the folder:

    config.json model.safetensors vocab.txt chars.txt README.md   the best model so far, as any other
    train.jsonl curve.svg                                          every step and every look at held-out text
    training/                                                      recipe, corpus and checkpoint, to go on from

Knows: everything in train. Blind to: the command line.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bilmo.errors import ConfigError, OutputError, TextError
from bilmo.store.atomic import new_file
from bilmo.store.bundle import Bundle
from bilmo.store.run_folder import CORPUS, RUN, alone, run_of
from bilmo.text.files import STDIN, all_lines, files
from bilmo.text.split import choose_split, splitter
from bilmo.train import corpus as corpora
from bilmo.train.build import Shape, shape_from, shape_of
from bilmo.train.card import Story
from bilmo.train.corpus import Corpus
from bilmo.train.curve import draw
from bilmo.train.events import Cost, Event, Finished, Look, Prepared, Step
from bilmo.train.loop import Loop, need_memory
from bilmo.train.model import WordArrays
from bilmo.train.optimizer import device_of
from bilmo.train.recipe import Recipe, differences
from bilmo.train.tensorboard import board

KIND = "training run"


@dataclass(frozen=True)
class Base:
    """A trained model to go on from."""

    bundle: Bundle
    name: str
    add_words: int
    """So many words of the new text, the most frequent ones that the model cannot predict, get a place."""


def train(
    texts: list[Path],
    folder: Path,
    recipe: Recipe,
    base: Base | None = None,
    reading: Callable[[Iterator[str]], Iterable[str]] = iter,
) -> Iterator[Event]:
    """Train, or go on where the same run stopped; the model folder is whole at every moment.

    `reading`: all lines of the text pass through it, once, if they must be read.
    """
    device = device_of(recipe.train.device)  # one that is not there is told before the text is read
    for text in (*texts, *([] if base else _vectors_file(recipe))):
        if text != STDIN and not text.exists():
            raise TextError(f"{text}: there is no such file")
        if text.is_dir() and folder.resolve().is_relative_to(text.resolve()):
            raise OutputError(f"{folder}: lies in {text}, whose files are all taken for text. Choose another place.")
    if base and len(base.bundle.config.directions) < 2:
        raise ConfigError(f"{base.name}: reads {base.bundle.config.directions[0]} only; bilmo trains both directions")
    with alone(folder, KIND) as work:
        begun = _same_run(texts, work, recipe, base)
        if begun and (work / CORPUS).exists():
            lang, corpus = begun, Corpus(work / CORPUS)
        else:
            lang, corpus = _corpus(texts, work, recipe, reading)
        words = corpus.words
        if base is None:
            shape = shape_of(recipe.network, recipe.text, words, corpus.counts)
        else:
            shape = shape_from(base.bundle, recipe.text, words, corpus.counts, base.add_words)
        if device.type == "cpu":
            need_memory(shape.parameters())
        loop = Loop(recipe.train, shape, corpus, WordArrays(words, shape.indexer()), folder)
        if not begun:
            _remember(texts, work, recipe, base, lang)
        names = [file.name for file in files(texts)]
        loop.story = Story(recipe, corpus.facts, texts=names, lang=lang, base=base.name if base else None)
        if loop.progress.finished:
            yield Finished(loop.progress, "this run is over already")
            return
        yield _prepared(corpus, shape, loop, lang, loop.rehearse())
        log = folder / "train.jsonl"
        _end_of_lines(log)
        with log.open("a", encoding="utf-8") as file, board(folder / "training" / "tensorboard") as show:
            for event in loop.events():
                if isinstance(event, Step | Look):
                    file.write(_logged(event))
                    file.flush()
                    if event.number % recipe.train.save_every == 0:  # a checkpoint is next, and must not know more
                        os.fsync(file.fileno())
                    show(event)
                if isinstance(event, Look):
                    draw(log, folder / "curve.svg")
                yield event


def _logged(event: Step | Look) -> str:
    """A line of the log; what is not finite is null there, for JSON knows no NaN."""
    values = {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in asdict(event).items()}
    return json.dumps({"what": type(event).__name__.lower(), **values}) + "\n"


def _prepared(corpus: Corpus, shape: Shape, loop: Loop, lang: str, cost: Cost) -> Prepared:
    vocab = np.array(shape.vocab.ids(corpus.words))
    held = np.asarray(corpus.sentences("held").ids)
    return Prepared(
        corpus=corpus.facts,
        vocab=len(shape.vocab),
        unknown=float((vocab[held] == shape.vocab.unknown).mean()) if len(held) else 0.0,
        left_out=int((corpus.counts[vocab == shape.vocab.unknown] > 0).sum()),
        parameters=sum(p.numel() for p in loop.model.parameters()),
        lang=lang,
        resumed=loop.progress.steps > 0,
        cost=cost,
    )


def _end_of_lines(log: Path) -> None:
    """Cut off what a power cut may have left of a last line."""
    with log.open("a+b") as file:
        size = file.tell()
        file.seek(max(0, size - 4096))
        tail = file.read()
        file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """What identifies a run: it can go on only as what it was."""

    recipe: Recipe
    texts: list[tuple[str, str]]
    """Names of the files, and hashes of what is in them."""
    lang: str
    base: tuple[str, int] | None = None
    """Identity of the model to go on from, and how many words were to be added."""


def _same_run(texts: list[Path], work: Path, recipe: Recipe, base: Base | None) -> str | None:
    """How the text is split, of the run that was begun here, if one was; it must be this one."""
    was = run_of(work, RunFile, KIND)
    if was is None:
        return None
    changed = differences(was.recipe, recipe)
    if was.texts != _hashes(texts, recipe):
        changed.append("the files of text or word vectors are others, or what is in them changed")
    if was.base != _identity(base):
        changed.append("the model to go on from is another, or the number of words to add")
    if changed:
        raise ConfigError(
            f"{work.parent}: was begun with other settings, so it cannot be gone on with.\n"
            + "\n".join(f"  {line}" for line in changed)
            + "\nUse the same settings, or another folder."
        )
    return was.lang


def _corpus(
    texts: list[Path], work: Path, recipe: Recipe, reading: Callable[[Iterator[str]], Iterable[str]]
) -> tuple[str, Corpus]:
    """Read the text."""
    shutil.rmtree(work / CORPUS, ignore_errors=True)  # of a run that was stopped while it read
    lang, lines = choose_split(_lines(texts), recipe.text.lang)
    seed, held_out = recipe.train.seed, recipe.text.held_out
    return lang, corpora.build(reading(lines), splitter(lang), work / CORPUS, held_out=held_out, seed=seed)


def _lines(texts: list[Path]) -> Iterator[str]:
    """All lines; English in UTF-16 is valid UTF-8 with a zero beside each letter, and nobody wants to learn that."""
    for file in files(texts):
        for number, line in enumerate(all_lines([file]), start=1):
            if "\0" in line:
                raise TextError(
                    f"{file}, line {number}: holds zero bytes, so it is no UTF-8 text. Name the files of text alone; "
                    "convert one in UTF-16 first: iconv -f UTF-16LE -t UTF-8 OLD > NEW"
                )
            yield line


def _remember(texts: list[Path], work: Path, recipe: Recipe, base: Base | None, lang: str) -> None:
    """Write down what this run is: it could be begun, so from now on it can be gone on with."""
    run = RunFile(recipe=recipe, texts=_hashes(texts, recipe), lang=lang, base=_identity(base))
    with new_file(work / RUN) as partial:
        partial.write_text(json.dumps(asdict(run), indent=1), encoding="utf-8")


def _identity(base: Base | None) -> tuple[str, int] | None:
    if base is None:
        return None
    bundle = base.bundle
    digest = hashlib.sha256(bundle.identity().encode())  # of the network; here softmax and vocabulary count as well
    for word in bundle.vocab.words if bundle.vocab else ():
        digest.update(f"{word}\n".encode("utf-8", "surrogatepass"))
    for name in ("softmax.weight", "softmax.bias") if bundle.has_softmax else ():
        digest.update(bundle.weights[name].float().contiguous().numpy().data)
    return digest.hexdigest(), base.add_words


def _vectors_file(recipe: Recipe) -> list[Path]:
    file = recipe.network.vectors_file
    return [] if file is None else [file]


def _hashes(texts: list[Path], recipe: Recipe) -> list[tuple[str, str]]:
    found = []
    for path in [*files(texts), *_vectors_file(recipe)]:
        if path.is_file():  # what came through a pipe cannot be compared
            with path.open("rb") as file:
                found.append((path.name, hashlib.file_digest(file, "sha256").hexdigest()))
    return found
