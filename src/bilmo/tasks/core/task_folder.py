"""A fitted task as a folder: everything but the biLM, which is recorded by its path and its hash.

    config.json           task, settings, labels, which biLM, hashes of the other files
    task.safetensors      everything that was trained
    words.txt             the words of the task's own word vectors
    vectors.safetensors   these vectors, where they were given
    bilm/                 the biLM itself, where it was trained with the task
    layers.svg README.md  the learned layer weights; a description

Knows: Estimator, safetensors. Blind to: single tasks, data, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load as load_model
from bilmo.errors import ConfigError, NotAModel, WeightsError
from bilmo.formats.open import files_of as files_of_model
from bilmo.ids.vocab import Vocab
from bilmo.net.config import STRICT, BiLMConfig
from bilmo.store import model_folder as folders
from bilmo.store.atomic import new_files, new_folder, read_published
from bilmo.store.hashed_folder import NOT_KNOWN, HashedFolder, NewFolder, check_format, check_own_hash, write_text
from bilmo.store.tensors_file import finite_weights
from bilmo.store.validate import checked, parse_json, same_length, with_path_in_error
from bilmo.tasks.core.picture import layer_weights_svg
from bilmo.tasks.core.spec import AnyEstimator, AnyTask
from bilmo.tasks.network.input import LearnedMix
from bilmo.tasks.network.words import TaskWords

CONFIG, WEIGHTS, WORDS, VECTORS, BILM = "config.json", "task.safetensors", "words.txt", "vectors.safetensors", "bilm"
PICTURE, CARD = "layers.svg", "README.md"
FORMAT = 2
LARGEST_CONFIG = 1 << 26
"""Bytes of config.json, which holds all labels."""
REMEDY = "Fit the task again."
NOT_A_TASK = "{}: is not the folder of a saved task; `bilmo fit` creates such folders"


@dataclass(frozen=True, kw_only=True)
class BilmFacts:
    """Which biLM a task was fitted on."""

    __pydantic_config__ = STRICT

    name: str
    """Its path or name; `bilm` where it is in the folder itself."""
    sha256: str
    start: str
    """The start of every sentence."""
    config: BiLMConfig


@dataclass(frozen=True, kw_only=True)
class WordFacts:
    """The task's own word vectors."""

    __pydantic_config__ = STRICT

    rows: int
    width: int
    lower: bool
    given: bool


@dataclass(frozen=True, kw_only=True)
class TaskFile:
    """The content of config.json."""

    __pydantic_config__ = STRICT

    bilmo_task: str
    format: int
    settings: dict[str, Any]
    prepared: dict[str, Any]
    """The fields of the task's Prepared."""
    bilm: BilmFacts | None
    words: WordFacts | None
    sha256: dict[str, str]
    """Of each file that the predictions depend on, so that a damaged one is never used."""


def save(task: AnyEstimator, folder: str | PathLike[str], *, model: str = "") -> None:
    """Save a fitted task to a new folder, which appears only when it is complete.

    model: the path or name of the biLM, which is loaded again with the task.
    """
    task.fitted_network()
    with new_folder(Path(folder)) as partial:
        _fill(task, partial, model, {})


def publish(task: AnyEstimator, folder: Path, *, model: str = "", written: dict[str, str]) -> dict[str, str]:
    """Save a task into a folder that exists, replacing the one it may hold; config.json is written last.

    written: the result of the previous call, {} for the first. Words and their given vectors never change
        and are written once.
    """
    with new_files(folder) as partial:
        return _fill(task, partial, model, written)


def _fill(task: AnyEstimator, partial: Path, model: str, written: dict[str, str]) -> dict[str, str]:
    """Write all files of a task except words that were `written` before; returns the hashes of all files."""
    words, batcher = task.words_, task.network_.input.batcher
    bilm: BilmFacts | None = None
    if batcher.tuned is not None:
        learned = batcher.tuned.learned()
        folders.write(learned, partial / BILM)
        bilm = BilmFacts(name=BILM, sha256=learned.identity(), start="settled", config=learned.config)
    elif batcher.store is not None:
        elmo = batcher.store.elmo
        bilm = BilmFacts(name=lasting(model), sha256=batcher.store.model, start=elmo.start, config=elmo.config)
    files = NewFolder(partial, written)
    files.write_tensors(WEIGHTS, task.network_.own_state())
    facts = None
    if words is not None:
        given = words.values is not None
        facts = WordFacts(rows=len(words.vocab), width=words.width, lower=words.lower, given=given)
        if WORDS not in written:
            files.write_lines(WORDS, words.vocab.words)
            if words.values is not None:
                files.write_tensors(VECTORS, {"vectors": torch.from_numpy(words.values)})
    config = TaskFile(
        bilmo_task=task.task.name,
        format=FORMAT,
        settings=asdict(task.settings_),
        prepared=asdict(task.prepared_),
        bilm=bilm,
        words=facts,
        sha256=files.hashes,
    )
    files.write_json(CONFIG, asdict(config))
    mixes = task.mixes_
    if mixes:
        write_text(partial / PICTURE, layer_weights_svg(mixes))
    write_text(partial / CARD, _card(config, sorted(task.prepared_.known()), mixes), escaped=True)
    return files.hashes


def load(
    folder: str | PathLike[str], tasks: Sequence[AnyTask], *, elmo: Embedder | str | PathLike[str] | None = None
) -> AnyEstimator:
    """Load a saved task with the biLM it was fitted on.

    tasks: the specifications of all tasks that the folder may hold.
    elmo: that biLM, or its path; None for the path it had when the task was saved.
    """
    path = Path(folder)
    _check_folder(path)
    return read_published(lambda: _read_config(path / CONFIG), lambda config: _load(path, config, tasks, elmo))


def files_of(folder: Path) -> list[Path]:
    """The files of a saved task, and of the biLM at its recorded path."""
    bilm = _read_config(folder / CONFIG).bilm
    inside = [file for file in folder.rglob("*") if file.is_file()]
    return inside + (files_of_model(Path(bilm.name)) if bilm and bilm.name else [])


def _check_folder(path: Path) -> None:
    if not (path / CONFIG).is_file():
        raise NotAModel(NOT_A_TASK.format(path))


def bilm_of(folder: Path) -> BilmFacts | None:
    """The record in a saved task of the biLM that it needs; None for a task without one."""
    _check_folder(folder)
    return _read_config(folder / CONFIG).bilm


def _load(
    path: Path, config: TaskFile, tasks: Sequence[AnyTask], elmo: Embedder | str | PathLike[str] | None
) -> AnyEstimator:
    by_name = {task.name: task for task in tasks}
    if config.bilmo_task not in by_name:
        raise ConfigError(
            f"{path / CONFIG}: contains the task {config.bilmo_task!r}; this version has only {', '.join(by_name)}. "
            "Install a newer version."
        )
    task = by_name[config.bilmo_task]
    settings = checked(config.settings, task.settings, f"{path / CONFIG}, settings")
    prepared = checked(config.prepared, task.prepared, f"{path / CONFIG}, prepared")
    model = load_bilm(path, config.bilm, elmo) if config.bilm else None
    files = HashedFolder(path, {WORDS: NOT_KNOWN} | config.sha256, REMEDY)
    found = task.estimator().restore(settings, prepared, _words(files, config.words), model)
    own = found.network_.own_state()
    weights = _read(files, WEIGHTS)
    wrong = weights.keys() ^ own.keys()
    wrong = wrong or {name for name in own if (weights[name].shape, weights[name].dtype) != _kind(own[name])}
    if wrong:
        raise WeightsError(f"{path / WEIGHTS}: does not fit {CONFIG}: {', '.join(sorted(wrong))}")
    found.network_.load_state_dict(weights, strict=False)
    return found


def _kind(value: Tensor) -> tuple[torch.Size, torch.dtype]:
    return value.shape, value.dtype


def _read_config(path: Path) -> TaskFile:
    """The content of config.json; other formats than the present one are refused."""
    data = parse_json(path, LARGEST_CONFIG)
    if not isinstance(data, dict) or "bilmo_task" not in data:
        raise NotAModel(NOT_A_TASK.format(path.parent))
    again = "Fit the task again: run the same `bilmo fit` command into a new folder."
    check_format(path, data.get("format"), oldest=FORMAT, newest=FORMAT, if_older=again)
    config = checked(data, TaskFile, str(path))
    check_own_hash(path, data, REMEDY)
    return config


def lasting(model: str) -> str:
    """A path becomes absolute, so that it is found from any folder; a name that is not a path stays a name."""
    return str(Path(model).resolve()) if model and Path(model).exists() else model


def load_bilm(folder: Path, facts: BilmFacts, elmo: Embedder | str | PathLike[str] | None) -> Embedder:
    """The biLM that a folder was fitted on; `elmo` is that biLM or its path, None for the recorded one."""
    if not isinstance(elmo, Embedder):
        inside = facts.name == BILM and elmo is None
        place = folder / BILM if inside else Path(elmo if elmo is not None else facts.name)
        needed = f"the biLM {facts.name or 'it was fitted on'} (SHA-256 {facts.sha256[:12]})"
        if elmo is None and not facts.name:
            raise NotAModel(f"{folder}: needs {needed}; give its path (--model, or elmo= in Python)")
        try:
            elmo = load_model(place, start=facts.start)  # type: ignore[arg-type]
        except NotAModel as error:
            raise NotAModel(
                f"{folder}: needs {needed}, which was not found. Give its path (--model, or elmo= in Python). {error}"
            ) from None
    found = elmo.bundle.identity()
    if found != facts.sha256:
        raise WeightsError(
            f"{folder}: was fitted on the biLM {facts.name} (SHA-256 {facts.sha256[:12]}); this is a different "
            f"one ({found[:12]}). Give the path of the right one, or fit the task again."
        )
    return elmo


def _words(files: HashedFolder, facts: WordFacts | None) -> TaskWords | None:
    if facts is None:
        return None
    path = files.path / WORDS
    vocab = with_path_in_error(path, lambda: Vocab(files.read_lines(WORDS)))
    same_length(path, len(vocab), facts.rows)
    values = None
    if facts.given:
        found = _read(files, VECTORS).get("vectors")
        if found is None or tuple(found.shape) != (facts.rows, facts.width):
            raise WeightsError(f"{files.path / VECTORS}: must contain {facts.rows} vectors of width {facts.width}")
        values = finite_weights(found, f"{files.path / VECTORS}: vectors").numpy()
    return TaskWords(vocab, facts.width, facts.lower, values)


def _read(files: HashedFolder, name: str) -> dict[str, Tensor]:
    """Tensors by name; floating-point numbers must be finite."""
    with files.open_tensors(name) as file:
        tensors: dict[str, Tensor] = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    for key, value in tensors.items():
        if value.is_floating_point():
            finite_weights(value, f"{files.path / name}: {key}")
    return tensors


def _card(config: TaskFile, labels: list[str], mixes: list[LearnedMix]) -> str:
    """A description for whoever finds the folder."""
    rows = [
        f"# bilmo task: {config.bilmo_task}",
        "",
        *([f"Labels: {', '.join(labels)}", ""] if labels else []),
        "Settings: " + "; ".join(f"{name} {value}" for name, value in config.settings.items()),
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
