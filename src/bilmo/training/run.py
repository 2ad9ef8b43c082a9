"""A training run from text to a model folder: read, train, evaluate, save, resume.

Under torchrun, several processes compute one run: the first one writes all files, and all yield the same events.

The run is a generator of events; the caller decides what to show. The folder has

    config.json model.safetensors vocab.txt chars.txt README.md   the best model so far
    train.jsonl curve.svg                                          every step and every evaluation
    training/                                                      what is needed to resume: corpus, checkpoint

Knows: everything in train, runs. Blind to: the command line.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from bilmo import __version__
from bilmo.errors import BilmoError, ConfigError, DamagedFile, OutputError, TextError
from bilmo.net.device import device_of
from bilmo.store import checkpoint, model_folder
from bilmo.store.bundle import Bundle
from bilmo.store.card import card_of
from bilmo.store.checkpoint import CHECKPOINT, START_OVER
from bilmo.store.output import check_output
from bilmo.store.run import WORK, Identity, open_run, started_with
from bilmo.store.validate import sha256_of
from bilmo.text import dictionary as dictionaries
from bilmo.text.dictionary import Dictionary
from bilmo.text.files import STDIN, all_lines, files
from bilmo.text.split import choose_split
from bilmo.training import corpus as corpora
from bilmo.training.build import ModelPlan, plan_finetuning, plan_model
from bilmo.training.card import TrainingSection
from bilmo.training.corpus import Corpus
from bilmo.training.cost import estimate, need_memory
from bilmo.training.curve import draw
from bilmo.training.distributed.pieces import Map, one_process
from bilmo.training.distributed.processes import joined
from bilmo.training.events import Evaluation, Event, Finished, Progress, Reading, Ready, Step
from bilmo.training.log import log_event, remove_repeated
from bilmo.training.loop import Loop
from bilmo.training.model import WordArrays
from bilmo.training.recipe import Recipe
from bilmo.training.tensorboard import tensorboard

logger = logging.getLogger(__name__)
CORPUS, TENSORBOARD, LOG, CURVE = "corpus", "tensorboard", "train.jsonl", "curve.svg"
KEEPS = (CORPUS, TENSORBOARD, CHECKPOINT)
"""What is in the work folder."""
LENGTH = ("epochs", "minutes")
"""Settings that say how long a run is."""
SHARED_SECONDS = 30
"""How long a process waits for the corpus to appear in a folder that machines share."""
RESTORE_AFTER, GIVE_UP_AFTER = 3, 10
"""Steps in a row that explode before the weights of the last checkpoint are restored, and before the run gives up."""


@dataclass(frozen=True)
class Base:
    """A trained model to fine-tune."""

    bundle: Bundle
    name: str
    add_words: int
    """Number of words to add: the most frequent words of the new text that the model cannot predict."""


def train(
    texts: list[Path],
    folder: Path,
    recipe: Recipe,
    base: Base | None = None,
    reading: Callable[[Iterator[str]], Iterable[str]] = iter,
    mapped: Map = one_process,
) -> Generator[Event, None, None]:
    """Train, or resume the same run where it stopped; the folder holds a complete model from the first evaluation on.

    reading: a function through which all lines of the text pass, once, if they must be read.
    mapped: where the text is split.
    """
    with joined() as processes, ExitStack() as held:
        # A device that is missing is reported before the text is read.
        device = processes.on_all(lambda: device_of(processes.device(recipe.train.device)))
        dictionary, identity = processes.on_all(lambda: _checked(texts, folder, recipe, base))
        processes.agree({**vars(identity), "versions": {"bilmo": __version__, "torch": torch.version.__version__}})
        work = folder / WORK
        opening = open_run(folder, work, kind="training run", identity=identity, keeps=KEEPS)
        run = processes.on_first(lambda: held.enter_context(opening))  # None on the others
        unread = STDIN in texts and (work / CORPUS).exists()
        if not (work / CORPUS).exists():
            yield Reading()
        made = processes.on_first(lambda: _corpus(texts, work / CORPUS, recipe, dictionary, reading, mapped))
        corpus = processes.on_all(lambda: made or _shared_corpus(work / CORPUS))
        processes.agree({"the corpus": corpus.identity})
        words = corpus.words
        if base is None:
            plan = plan_model(recipe.network, recipe.text, words, corpus.counts)
        else:
            plan = plan_finetuning(base.bundle, recipe.text, words, corpus.counts, base.add_words)
        if device.type == "cpu":
            need_memory(plan.parameters(), "width, cells, layers, vocab_size")
        loop = processes.on_all(lambda: Loop(recipe.train, plan, corpus, WordArrays(words, plan.indexer()), processes))
        path = work / CHECKPOINT
        processes.on_all(lambda: _resume(loop, path, folder))
        processes.agree({"steps in the checkpoint": loop.progress.steps})
        if run is not None:
            run.start()
            remove_repeated(folder / LOG, loop.progress)
        notes = []
        if unread:
            notes = ["standard input is not read; the run continues with the text that it was started with"]
        if corpus.facts.least:
            notes.append(
                f"words that occur less than {corpus.facts.least} times in the training text are read as <UNK> "
                f"(max_words is {recipe.text.max_words:,})"
            )
        if loop.progress.finished and loop.to_be_continued():
            notes.append(
                f"the run was complete after {loop.progress.steps:,} steps; it continues to {recipe.train.length}"
            )
            loop.progress.finished = False
        if loop.progress.finished:
            reason = "this run is already complete" + ("; standard input was not read" if unread else "")
            yield Finished(loop.progress, reason)
            return
        yield _ready(corpus, plan, loop, notes)
        names = [file.name for file in files(texts)]
        card = TrainingSection(recipe, corpus.facts, texts=names, base=base.name if base else None)
        exploded = 0
        log: IO[str] | None = None
        if processes.first:
            log = held.enter_context((folder / LOG).open("a", encoding="utf-8"))
            show = held.enter_context(tensorboard(work / TENSORBOARD))
        for event in loop.events():
            if log and isinstance(event, Evaluation) and event.best:
                bundle = replace(loop.bundle(), dictionary=dictionary if corpus.facts.lang == "zh" else None)
                section = card.markdown(loop.progress, event)
                model_folder.publish(replace(bundle, card=card_of(bundle, section)), folder)
            if log and not isinstance(event, Finished):
                log_event(event, log)
                show(event)
            if isinstance(event, Step):
                exploded = exploded + 1 if event.skipped else 0
                if exploded >= GIVE_UP_AFTER:
                    raise processes.fail(_gave_up(event, loop))
                if exploded == RESTORE_AFTER and path.exists():  # the step before them spoiled the weights
                    loop.restore_weights(checkpoint.read(path, Progress))
                if event.number % recipe.train.save_every == 0 and not event.skipped:
                    _save(loop, path, log)
            elif isinstance(event, Evaluation):
                if log:
                    draw(folder / LOG, folder / CURVE)
            else:
                if event.progress.best is None:
                    raise processes.fail(_no_model(folder))
                _save(loop, path, log)
                processes.on_first(lambda: None)  # the model is complete before any process returns
            yield event


def _checked(texts: list[Path], folder: Path, recipe: Recipe, base: Base | None) -> tuple[Dictionary | None, Identity]:
    """The dictionary and the identity of a run whose inputs can be used."""
    _check_inputs(texts, folder, recipe, base)
    dictionary = _dictionary(recipe, base)
    identity = _identity(texts, recipe, base, dictionary)
    _check_length(folder, identity)
    return dictionary, identity


def _check_inputs(texts: list[Path], folder: Path, recipe: Recipe, base: Base | None) -> None:
    """Refuse what cannot be trained on before anything is read or written."""
    for text in (*texts, *([] if base else _vectors_file(recipe))):
        if text != STDIN and not text.exists():
            raise TextError(f"{text}: there is no such file")
    dictionary = [Path(recipe.text.dictionary)] if recipe.text.dictionary is not None else []
    check_output([folder], texts=texts, files=[*_vectors_file(recipe), *dictionary])
    if base and len(base.bundle.config.directions) < 2:
        raise ConfigError(f"{base.name}: is {base.bundle.config.directions[0]} only; bilmo trains both directions")


def _dictionary(recipe: Recipe, base: Base | None) -> Dictionary | None:
    """The dictionary of the recipe, or of the model to fine-tune."""
    if recipe.text.dictionary is None:
        return base.bundle.dictionary if base else None
    dictionaries.check_lang(recipe.text.lang)
    return dictionaries.read(Path(recipe.text.dictionary))


def _identity(texts: list[Path], recipe: Recipe, base: Base | None, dictionary: Dictionary | None) -> Identity:
    """The settings and inputs that must be the same when a run is resumed."""
    settings = asdict(recipe) | {"add_words": base.add_words if base else None}
    del settings["text"]["dictionary"]  # its content counts, not its name
    head_first = base is not None and not base.bundle.has_softmax and recipe.train.head_first > 0
    if recipe.train.same_at_any_length and not head_first:
        for name in LENGTH:
            del settings["train"][name]
    # Text from a pipe cannot be compared before it is read; a run that is resumed says that it does not read it.
    hashes = [(path.name, sha256_of(path)) for path in files(texts) if path.is_file()]
    inputs = {"the text": hashlib.sha256(json.dumps(hashes).encode()).hexdigest()}
    for path in _vectors_file(recipe):
        if path.is_file():
            inputs["the word vectors"] = sha256_of(path)
    if dictionary:
        inputs["the dictionary"] = dictionary.sha256
    if base:
        inputs["the model to fine-tune"] = base.bundle.identity("all")
    return Identity(settings, inputs)


def _check_length(folder: Path, identity: Identity) -> None:
    """Refuse to make a run longer where that would be another run, and say what can be done instead."""
    was, now = started_with(folder / WORK), identity.settings
    if was is None or not isinstance(was.get("train"), dict) or _without_length(was) != _without_length(now):
        return  # a new run, or one that differs in more than its length
    lengths = [[settings["train"].get(name) for name in LENGTH] for settings in (was, now)]
    if lengths[0] == lengths[1]:
        return
    before, after = (f"{epochs} epochs" if minutes is None else f"{minutes} minutes" for epochs, minutes in lengths)
    raise ConfigError(
        f"{folder}: was started with {before} and cannot become a run of {after}: its learning rate, or when it stops, "
        "depends on its length, so all steps would be different. To resume it, use the same settings. To train the "
        f"finished model further: bilmo finetune {folder} TEXT -o NEW_FOLDER. To train for {after} from the start, "
        f"choose another folder or remove {folder}."
    )


def _without_length(settings: Mapping[str, Any]) -> object:
    train = {name: value for name, value in settings["train"].items() if name not in LENGTH}
    return json.loads(json.dumps({**settings, "train": train}))


def _vectors_file(recipe: Recipe) -> list[Path]:
    file = recipe.network.vectors_file
    return [] if file is None else [file]


def _corpus(
    texts: list[Path],
    folder: Path,
    recipe: Recipe,
    dictionary: Dictionary | None,
    reading: Callable[[Iterator[str]], Iterable[str]],
    mapped: Map,
) -> Corpus:
    """The corpus of this run; the text is read if there is none yet."""
    if folder.exists():
        return Corpus(folder)
    lang, lines = choose_split(all_lines(texts), recipe.text.lang)
    if recipe.text.dictionary is not None:
        dictionaries.check_lang(lang)
    return corpora.build(
        reading(lines),
        lang,
        folder,
        held_out=recipe.text.held_out,
        seed=recipe.train.seed,
        dictionary=dictionary,
        max_words=recipe.text.max_words,
        mapped=mapped,
    )


def _shared_corpus(folder: Path) -> Corpus:
    """The corpus that the first process has made."""
    until = time.monotonic() + SHARED_SECONDS
    while not folder.exists() and time.monotonic() < until:  # another machine may see it a little later
        time.sleep(0.1)
    if not folder.exists():
        raise OutputError(
            f"{folder}: the first process has made this folder, and it cannot be seen here. All machines need the "
            "output folder on a file system that they share."
        )
    return Corpus(folder)


def _resume(loop: Loop, path: Path, folder: Path) -> None:
    """Continue from the checkpoint, if there is one: it must fit the corpus and the network, and the best model too."""
    if not path.exists():
        return
    saved = checkpoint.read(path, Progress)
    corpus = loop.corpus
    if saved.progress.corpus not in ("", corpus.identity):
        raise DamagedFile(f"{path}: belongs to another corpus than {corpus.folder}. {START_OVER}")
    try:
        loop.resume(saved)
    except (RuntimeError, ValueError, KeyError):
        raise DamagedFile(f"{path}: does not belong to the network that this run trains. {START_OVER}") from None
    if saved.progress.best is not None and loop.processes.first:
        try:
            model_folder.read(folder)
        except BilmoError as error:
            raise DamagedFile(
                f"{folder}: the best model of this run is damaged, and there is no other copy of it. Remove {path} to "
                f"train again from the first step. {error}"
            ) from None


def _ready(corpus: Corpus, plan: ModelPlan, loop: Loop, notes: list[str]) -> Ready:
    vocab = np.array(plan.vocab.ids(corpus.words))
    held_out = np.asarray(corpus.text("held_out").ids)
    return Ready(
        corpus=corpus.facts,
        vocab=len(plan.vocab),
        unknown=float((vocab[held_out] == plan.vocab.unknown).mean()) if len(held_out) else 0.0,
        left_out=int((corpus.counts[vocab == plan.vocab.unknown] > 0).sum()),
        parameters=sum(p.numel() for p in loop.model.parameters()),
        resumed=loop.progress.steps > 0,
        cost=estimate(loop),
        notes=notes,
    )


def _no_model(folder: Path) -> BilmoError:
    return BilmoError(
        f"{folder}: training has ended without a model, because the loss on the held-out text was never a finite "
        "number. Try a lower rate in another folder."
    )


def _save(loop: Loop, path: Path, log: IO[str] | None) -> None:
    """Save a checkpoint. Sync the log first, so that it has every step of the checkpoint.

    All processes take part; the one that has the log writes.
    """
    saved = loop.checkpoint()
    if log is None:
        return
    os.fsync(log.fileno())
    checkpoint.write(path, saved)
    logger.debug("%s: saved after step %d", path, loop.progress.steps)


def _gave_up(event: Step, loop: Loop) -> BilmoError:
    return BilmoError(
        f"{GIVE_UP_AFTER} steps in a row exploded, up to step {event.number} (loss {event.loss:.4g}, usual loss "
        f"{loop.progress.usual_loss}). The run stops and keeps its last checkpoint. Try a lower rate in another folder."
    )
