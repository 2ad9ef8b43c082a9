"""A task on disk: a folder with all it needs but the biLM, which is named by where it was and by its hash.

    config.json           the task, settings, labels, which biLM, hashes of the other files
    task.safetensors      head, mixes, characters: everything that was learned
    words.txt             the words of the task's own word vectors
    vectors.safetensors   those vectors, where they were given
    bilm/                 the biLM itself, where it was trained with the task
    layers.svg README.md  the learned layer weights; what this is

Knows: Task, safetensors. Blind to: data, the command line.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load as load_model
from bilmo.errors import ConfigError, DamagedFile, NotAModel, OutputError, WeightsError
from bilmo.ids.vocab import Vocab
from bilmo.net.config import STRICT, BiLMConfig
from bilmo.store import model_folder as folders
from bilmo.store.atomic import new_files, new_folder
from bilmo.store.model_folder import naming, read_json, same_length, sha256_of
from bilmo.tasks.classify.classifier import Classifier
from bilmo.tasks.core.estimator import Task
from bilmo.tasks.core.loop import learned_state
from bilmo.tasks.core.picture import drawn
from bilmo.tasks.core.settings import Settings
from bilmo.tasks.network.input import LearnedMix
from bilmo.tasks.network.words import TaskWords
from bilmo.tasks.tag.tagger import Tagger
from bilmo.text.files import lines

CONFIG, WEIGHTS, WORDS, VECTORS, BILM = "config.json", "task.safetensors", "words.txt", "vectors.safetensors", "bilm"
PICTURE, CARD = "layers.svg", "README.md"
TASKS: dict[str, type[Task]] = {task.name: task for task in (Classifier, Tagger)}
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class BilmFacts:
    """Which biLM a task stands on."""

    __pydantic_config__ = STRICT

    name: str
    """Where it was; `bilm` where it lies in the folder itself."""
    sha256: str
    start: str
    """What every sentence started from."""
    config: BiLMConfig


@dataclass(frozen=True, kw_only=True)
class WordFacts:
    """Word vectors of the task's own."""

    __pydantic_config__ = STRICT

    rows: int
    width: int
    lower: bool
    given: bool


@dataclass(frozen=True, kw_only=True)
class TaskFile:
    """What config.json holds."""

    __pydantic_config__ = STRICT

    bilmo_task: str
    format: int
    settings: Settings
    facts: dict[str, Any]
    bilm: BilmFacts | None
    words: WordFacts | None
    sha256: dict[str, str]
    """Of each file of weights, so that a damaged one is never used."""
    form: str = ""
    """Of the file that its examples came from; empty where they came from none."""


def save(task: Task, folder: str | PathLike[str], *, model: str = "") -> None:
    """Save a task; the folder must be new, and appears only when it is whole.

    model: where the biLM is, to be found again when the task is loaded.
    """
    with new_folder(Path(folder)) as partial:
        _fill(task, partial, model, {})


def publish(task: Task, folder: Path, *, model: str = "", written: dict[str, str]) -> dict[str, str]:
    """Save a task into a folder that exists, in place of the one it may hold; config.json comes last.

    written: what the call before returned, {} at first. Given word vectors, which never change, are written once.
    """
    with new_files(folder) as partial:
        return _fill(task, partial, model, written)


def _fill(task: Task, partial: Path, model: str, written: dict[str, str]) -> dict[str, str]:
    """All files of a task but the word vectors that were `written` before; returns the hashes of them all."""
    settings, words = task.used_, task.words_
    bilm: BilmFacts | None = None
    if task.feed_.tuned is not None:
        learned = task.feed_.tuned.learned()
        folders.write(learned, partial / BILM)
        bilm = BilmFacts(name=BILM, sha256=learned.identity(), start="settled", config=learned.config)
    elif task.feed_.store is not None:
        store = task.feed_.store
        # A path is made whole, to be found again from any folder; a name that is no path stays a name.
        model = str(Path(model).resolve()) if model and Path(model).exists() else model
        bilm = BilmFacts(name=model, sha256=store.model, start=store.elmo.start, config=store.elmo.config)
    kept = {name: value for name, value in learned_state(task.network_).items() if ".tuned." not in name}
    hashes = {WEIGHTS: _write(kept, partial / WEIGHTS)}
    facts = None
    if words is not None:
        given = words.values is not None
        facts = WordFacts(rows=len(words.vocab), width=words.width, lower=words.lower, given=given)
        if VECTORS in written:
            hashes[VECTORS] = written[VECTORS]
        else:
            _text(partial / WORDS, "".join(f"{word}\n" for word in words.vocab.words))
            if words.values is not None:
                hashes[VECTORS] = _write({"vectors": torch.from_numpy(words.values)}, partial / VECTORS)
    config = TaskFile(
        bilmo_task=task.name,
        format=FORMAT,
        settings=settings,
        facts=task.facts(),
        form=task.form_,
        bilm=bilm,
        words=facts,
        sha256=hashes,
    )
    _text(partial / CONFIG, json.dumps(asdict(config), indent=1, ensure_ascii=False))
    mixes = task.mixes_
    if mixes:
        _text(partial / PICTURE, drawn(mixes))
    _text(partial / CARD, _card(config, mixes))
    return hashes


def load(folder: str | PathLike[str], *, elmo: Embedder | str | PathLike[str] | None = None) -> Task:
    """Load a saved task with the biLM it was fitted on.

    elmo: that biLM, or where it is now; None looks where it was.
    """
    path = Path(folder)
    if not (path / CONFIG).is_file() or b'"bilmo_task"' not in (path / CONFIG).read_bytes():
        raise NotAModel(f"{path}: is no folder of a task; `bilmo fit` makes them")
    config = read_json(path / CONFIG, TaskFile)
    if config.format != FORMAT or config.bilmo_task not in TASKS:
        raise ConfigError(
            f"{path / CONFIG}: a task {config.bilmo_task!r} of format {config.format}; this bilmo knows "
            f"{', '.join(TASKS)} of format {FORMAT}. Install a newer bilmo."
        )
    model = _bilm(path, config.bilm, elmo) if config.bilm else None
    task = TASKS[config.bilmo_task](model, **asdict(config.settings))
    task.form_ = config.form
    words = _words(path, config)
    task.vectors = None if words is None else words.source
    try:
        task._set_facts(config.facts)
    except (KeyError, TypeError) as error:
        raise DamagedFile(f"{path / CONFIG}: its facts lack {error}") from None
    task.assemble(config.settings, words, model)
    weights = _read(path / WEIGHTS, config)
    needed = {name for name in learned_state(task.network_) if ".tuned." not in name}
    if weights.keys() != needed:
        wrong = ", ".join(sorted(weights.keys() ^ needed))
        raise WeightsError(f"{path / WEIGHTS}: does not fit {CONFIG}; missing or unused are {wrong}")
    try:
        task.network_.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise WeightsError(f"{path / WEIGHTS}: does not fit {CONFIG} ({error})") from None
    return task


def _bilm(folder: Path, facts: BilmFacts, elmo: Embedder | str | PathLike[str] | None) -> Embedder:
    if not isinstance(elmo, Embedder):
        inside = facts.name == BILM and elmo is None
        place = folder / BILM if inside else Path(elmo if elmo is not None else facts.name)
        known = f"the biLM {facts.name or 'it was fitted on'} (SHA-256 {facts.sha256[:12]})"
        if elmo is None and not facts.name:
            raise NotAModel(f"{folder}: needs {known}; say where it is (--model, or elmo= in Python)")
        try:
            elmo = load_model(place, start=facts.start)  # type: ignore[arg-type]
        except NotAModel as error:
            raise NotAModel(
                f"{folder}: needs {known}, which is not there. Say where it is now (--model, or elmo= in Python). "
                f"{error}"
            ) from None
    found = elmo.bundle.identity()
    if found != facts.sha256:
        raise WeightsError(
            f"{folder}: was fitted on the biLM {facts.name} (SHA-256 {facts.sha256[:12]}); this is another one "
            f"({found[:12]}), whose layers mean other things. Name the right one, or fit again."
        )
    return elmo


def _words(folder: Path, config: TaskFile) -> TaskWords | None:
    facts = config.words
    if facts is None:
        return None
    vocab = naming(folder / WORDS, lambda: Vocab(lines(folder / WORDS)))
    same_length(folder / WORDS, len(vocab), facts.rows)
    values = None
    if facts.given:
        found = _read(folder / VECTORS, config).get("vectors")
        if found is None or tuple(found.shape) != (facts.rows, facts.width):
            raise WeightsError(f"{folder / VECTORS}: needed are {facts.rows} vectors of {facts.width} numbers")
        values = found.numpy().astype(np.float32)
    return TaskWords(vocab, facts.width, facts.lower, values)


def _write(tensors: dict[str, Tensor], path: Path) -> str:
    try:
        save_file({name: value.detach().clone().contiguous() for name, value in tensors.items()}, path)
    except SafetensorError as error:
        raise OutputError(f"{path}: cannot be written ({error})") from None
    return sha256_of(path)


def _read(path: Path, config: TaskFile) -> dict[str, Tensor]:
    try:
        if sha256_of(path) != config.sha256.get(path.name):
            raise DamagedFile(
                f"{path}: is not the file that was saved (its SHA-256 differs from the one in {CONFIG}). Fit again."
            )
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise DamagedFile(f"{path}: cannot be read as safetensors ({error}). Fit again.") from None


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _card(config: TaskFile, mixes: list[LearnedMix]) -> str:
    """What a person who finds the folder wants to know."""
    settings = config.settings
    rows = [
        f"# A task of bilmo: {config.bilmo_task}",
        "",
        f"Labels: {', '.join(map(str, config.facts.get('labels', [])))}",
        "",
        f"ELMo at: {settings.at}; mix: {settings.mix}; head: {settings.head}; seed: {settings.seed}",
        "",
    ]
    if config.bilm:
        rows += [f"Fitted on the biLM `{config.bilm.name}`, SHA-256 `{config.bilm.sha256}`.", ""]
    if mixes:
        rows += ["| mix | scale | " + " | ".join(_layer(k) for k in range(len(mixes[0].shares))) + " |"]
        rows += ["|---" * (2 + len(mixes[0].shares)) + "|"]
        rows += [f"| {m.where} | {m.scale:.3f} | " + " | ".join(f"{s:.3f}" for s in m.shares) + " |" for m in mixes]
        rows += [""]
    return "\n".join(rows)


def _layer(number: int) -> str:
    return "word" if number == 0 else f"layer {number}"
