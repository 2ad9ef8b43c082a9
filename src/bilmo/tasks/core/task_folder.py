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

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load as load_model
from bilmo.errors import ConfigError, DamagedFile, NotAModel, WeightsError
from bilmo.ids.vocab import Vocab
from bilmo.net.config import STRICT, BiLMConfig
from bilmo.store import model_folder as folders
from bilmo.store.atomic import new_files, new_folder, read_published
from bilmo.store.tensors_file import write_tensors
from bilmo.store.validate import checked, read_json, same_length, sha256_of, with_path_in_error
from bilmo.tasks.core.picture import layer_weights_svg
from bilmo.tasks.core.spec import AnyEstimator, AnyTask
from bilmo.tasks.network.input import LearnedMix
from bilmo.tasks.network.words import TaskWords
from bilmo.text.files import lines

CONFIG, WEIGHTS, WORDS, VECTORS, BILM = "config.json", "task.safetensors", "words.txt", "vectors.safetensors", "bilm"
PICTURE, CARD = "layers.svg", "README.md"
FORMAT = 2


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
    """Of each file of weights, so that a damaged one is never used."""


def save(task: AnyEstimator, folder: str | PathLike[str], *, model: str = "") -> None:
    """Save a fitted task to a new folder, which appears only when it is complete.

    model: the path or name of the biLM, which is loaded again with the task.
    """
    task.fitted_network()
    with new_folder(Path(folder)) as partial:
        _fill(task, partial, model, {})


def publish(task: AnyEstimator, folder: Path, *, model: str = "", written: dict[str, str]) -> dict[str, str]:
    """Save a task into a folder that exists, replacing the one it may hold; config.json is written last.

    written: the result of the previous call, {} for the first. Given word vectors never change and are written once.
    """
    with new_files(folder) as partial:
        return _fill(task, partial, model, written)


def _fill(task: AnyEstimator, partial: Path, model: str, written: dict[str, str]) -> dict[str, str]:
    """Write all files of a task except vectors that were `written` before; returns the hashes of all files."""
    words, batcher = task.words_, task.network_.input.batcher
    bilm: BilmFacts | None = None
    if batcher.tuned is not None:
        learned = batcher.tuned.learned()
        folders.write(learned, partial / BILM)
        bilm = BilmFacts(name=BILM, sha256=learned.identity(), start="settled", config=learned.config)
    elif batcher.store is not None:
        elmo = batcher.store.elmo
        # A path becomes absolute, so that it is found from any folder; a name that is not a path stays a name.
        model = str(Path(model).resolve()) if model and Path(model).exists() else model
        bilm = BilmFacts(name=model, sha256=batcher.store.model, start=elmo.start, config=elmo.config)
    hashes = {WEIGHTS: write_tensors(partial / WEIGHTS, task.network_.own_state())}
    facts = None
    if words is not None:
        given = words.values is not None
        facts = WordFacts(rows=len(words.vocab), width=words.width, lower=words.lower, given=given)
        if VECTORS in written:
            hashes[VECTORS] = written[VECTORS]
        else:
            _text(partial / WORDS, "".join(f"{word}\n" for word in words.vocab.words))
            if words.values is not None:
                hashes[VECTORS] = write_tensors(partial / VECTORS, {"vectors": torch.from_numpy(words.values)})
    config = TaskFile(
        bilmo_task=task.task.name,
        format=FORMAT,
        settings=asdict(task.settings_),
        prepared=asdict(task.prepared_),
        bilm=bilm,
        words=facts,
        sha256=hashes,
    )
    _text(partial / CONFIG, json.dumps(asdict(config), indent=1, ensure_ascii=False))
    mixes = task.mixes_
    if mixes:
        _text(partial / PICTURE, layer_weights_svg(mixes))
    _text(partial / CARD, _card(config, sorted(task.prepared_.known()), mixes))
    return hashes


def load(
    folder: str | PathLike[str], tasks: Sequence[AnyTask], *, elmo: Embedder | str | PathLike[str] | None = None
) -> AnyEstimator:
    """Load a saved task with the biLM it was fitted on.

    tasks: the specifications of all tasks that the folder may hold.
    elmo: that biLM, or its path; None for the path it had when the task was saved.
    """
    path = Path(folder)
    if not (path / CONFIG).is_file() or b'"bilmo_task"' not in (path / CONFIG).read_bytes():
        raise NotAModel(f"{path}: is not the folder of a saved task; `bilmo fit` creates such folders")
    return read_published(lambda: _read_config(path / CONFIG), lambda config: _load(path, config, tasks, elmo))


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
    model = _bilm(path, config.bilm, elmo) if config.bilm else None
    found = task.estimator().restore(settings, prepared, _words(path, config), model)
    weights = _read(path / WEIGHTS, config)
    wrong = weights.keys() ^ found.network_.own_state().keys()
    if wrong:
        raise WeightsError(f"{path / WEIGHTS}: does not fit {CONFIG}; missing or unused: {', '.join(sorted(wrong))}")
    try:
        found.network_.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise WeightsError(f"{path / WEIGHTS}: does not fit {CONFIG} ({error})") from None
    return found


def _read_config(path: Path) -> TaskFile:
    """The content of config.json; other formats than the present one are refused."""
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        found = None
    number = found.get("format") if isinstance(found, dict) else None
    if isinstance(number, int) and number < FORMAT:
        raise ConfigError(
            f"{path}: the task was saved in format {number} by an earlier version; this version reads format {FORMAT}. "
            "Fit the task again: run the same `bilmo fit` command into a new folder."
        )
    if isinstance(number, int) and number > FORMAT:
        raise ConfigError(
            f"{path}: the task was saved in format {number}; this version reads format {FORMAT}. "
            "Install a newer version."
        )
    return read_json(path, TaskFile)


def _bilm(folder: Path, facts: BilmFacts, elmo: Embedder | str | PathLike[str] | None) -> Embedder:
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


def _words(folder: Path, config: TaskFile) -> TaskWords | None:
    facts = config.words
    if facts is None:
        return None
    vocab = with_path_in_error(folder / WORDS, lambda: Vocab(lines(folder / WORDS)))
    same_length(folder / WORDS, len(vocab), facts.rows)
    values = None
    if facts.given:
        found = _read(folder / VECTORS, config).get("vectors")
        if found is None or tuple(found.shape) != (facts.rows, facts.width):
            raise WeightsError(f"{folder / VECTORS}: must contain {facts.rows} vectors of width {facts.width}")
        values = found.numpy().astype(np.float32)
    return TaskWords(vocab, facts.width, facts.lower, values)


def _read(path: Path, config: TaskFile) -> dict[str, Tensor]:
    try:
        if sha256_of(path) != config.sha256.get(path.name):
            raise DamagedFile(
                f"{path}: is not the file that was saved (its SHA-256 differs from the one in {CONFIG}). "
                "Fit the task again."
            )
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise DamagedFile(f"{path}: cannot be read as safetensors ({error}). Fit the task again.") from None


def _text(path: Path, text: str) -> None:
    # UTF-8 cannot hold a lone surrogate in a label; escaped it is valid JSON and is read back as it was.
    path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


def _card(config: TaskFile, labels: list[str], mixes: list[LearnedMix]) -> str:
    """A description for whoever finds the folder."""
    rows = [
        f"# bilmo task: {config.bilmo_task}",
        "",
        f"Labels: {', '.join(labels)}",
        "",
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
