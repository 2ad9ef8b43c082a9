"""A Disambiguator as a folder, and the run that makes one.

    config.json           settings, which biLM, hashes of the other files
    vectors.safetensors   one vector per sense, their numbers of uses, the whitening
    senses.txt            the sense keys of the vectors
    forms.tsv             forms of words, their lemmas, and how often each was used
    index.sense           the inventory
    README.md             a description

Knows: Disambiguator, run folders. Blind to: the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import Whitening, unit
from bilmo.errors import BilmoError, ConfigError, DamagedFile, NotAModel, WeightsError
from bilmo.net.config import STRICT
from bilmo.sense.labelled import corpus
from bilmo.sense.labelled.disambiguator import Disambiguator, Learned
from bilmo.sense.labelled.forms import Forms
from bilmo.sense.labelled.inventory import Inventory, is_key
from bilmo.sense.labelled.learn import Learning, SenseSettings
from bilmo.store import checkpoint
from bilmo.store.atomic import CONFIG, new_files, new_folder, read_published
from bilmo.store.checkpoint import CHECKPOINT, Checkpoint
from bilmo.store.hashed_folder import HashedFolder, NewFolder, check_format, check_own_hash, write_text
from bilmo.store.run import WORK, Identity, open_run
from bilmo.store.tensors_file import finite_weights
from bilmo.store.validate import checked, parse_json, sha256_of
from bilmo.tasks.core.task_folder import LARGEST_CONFIG, BilmFacts, lasting, load_bilm
from bilmo.text.files import STDIN

TASK = "senses"
VECTORS, KEYS, FORMS, INVENTORY, CARD = "vectors.safetensors", "senses.txt", "forms.tsv", "index.sense", "README.md"
FORMAT = 1
CHECKPOINT_STEPS = 20
"""Number of groups of sentences between two checkpoints."""
REMEDY = "Fit it again with `bilmo fit senses`."


@dataclass(frozen=True, kw_only=True)
class SenseFile:
    """The content of config.json."""

    __pydantic_config__ = STRICT

    bilmo_task: str
    format: int
    settings: SenseSettings
    bilm: BilmFacts
    sha256: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    __pydantic_config__ = STRICT

    done: int


def fit(
    found: Disambiguator, folder: Path, train: Path, inventory: Path, gold: Path | None, *, model: str
) -> Iterator[tuple[int, int]]:
    """Learn senses into a folder, or resume the same run; yields the number of sentences done, and of all.

    model: the path or name of the biLM, which is loaded again with the senses.
    """
    if STDIN in (train, inventory, gold):
        raise ConfigError(
            "labelled text and the inventory are read from files, so that the run can be resumed; name them"
        )
    listed = Inventory.read(inventory)
    sentences = corpus.read(train, gold)
    learning = Learning(found.elmo, sentences, found.settings)
    files = {"the training text": train, "the inventory": inventory, "the gold keys": gold}
    identity = Identity(
        settings={"task": TASK} | asdict(found.settings),
        inputs={"the biLM": found.elmo.bundle.identity()}
        | {name: sha256_of(path) if path is not None else "" for name, path in files.items()},
    )
    with open_run(folder, folder / WORK, kind="sense run", identity=identity, keeps=[CHECKPOINT]) as run:
        path = run.work / CHECKPOINT
        if path.exists():
            _resume(learning, path)
        run.start()
        yield learning.done, len(sentences)
        for number, done in enumerate(learning.steps(), start=1):
            if number % CHECKPOINT_STEPS == 0 or done == len(sentences):
                checkpoint.write(path, _checkpoint(learning))
            yield done, len(sentences)
        found.use(learning, listed)
        with new_files(folder) as partial:
            _fill(found, partial, model)
        run.remove()


def _checkpoint(learning: Learning) -> Checkpoint[Progress]:
    sums = {"sums": torch.from_numpy(learning.sums), "counts": torch.from_numpy(learning.counts)}
    return Checkpoint(Progress(learning.done), {"senses": sums, "whitening": _of_whitening(learning.whitening)})


def _resume(learning: Learning, path: Path) -> None:
    saved = checkpoint.read(path, Progress)
    senses, whitening = saved.part("senses"), saved.part("whitening")
    shapes = {"sums": learning.sums.shape, "counts": learning.counts.shape}
    if {name: tuple(value.shape) for name, value in senses.items()} != shapes:
        raise DamagedFile(f"{path}: does not fit the training text. Remove it to start over.")
    learning.sums, learning.counts = senses["sums"].numpy(), senses["counts"].numpy()
    learning.whitening = _whitening(whitening) if whitening else None
    learning.done = saved.progress.done


def _of_whitening(whitening: Whitening | None) -> dict[str, Tensor]:
    if whitening is None:
        return {}
    return {"centre": torch.from_numpy(whitening.centre), "directions": torch.from_numpy(whitening.directions)}


def _whitening(tensors: dict[str, Tensor]) -> Whitening:
    return Whitening(tensors["centre"].numpy(), tensors["directions"].numpy())


def save(found: Disambiguator, folder: str | PathLike[str], *, model: str = "") -> None:
    """Save to a new folder, which appears when it is complete; `model` is the path or name of the biLM."""
    _ = found.learned
    with new_folder(Path(folder)) as partial:
        _fill(found, partial, model)


def _fill(found: Disambiguator, partial: Path, model: str) -> None:
    learned, elmo = found.learned, found.elmo
    files = NewFolder(partial)
    tensors = {"vectors": torch.from_numpy(learned.vectors).half(), "counts": torch.from_numpy(learned.counts)}
    files.write_tensors(VECTORS, tensors | _of_whitening(learned.whitening))
    files.write_lines(KEYS, learned.keys)
    files.write_lines(FORMS, learned.forms.lines())
    files.write_lines(INVENTORY, learned.inventory.lines())
    bilm = BilmFacts(name=lasting(model), sha256=elmo.bundle.identity(), start=elmo.start, config=elmo.config)
    config = SenseFile(bilmo_task=TASK, format=FORMAT, settings=found.settings, bilm=bilm)
    files.write_json(CONFIG, asdict(config))
    card = [
        "# bilmo task: senses",
        "",
        f"{len(learned.keys):,} senses with {int(learned.counts.sum()):,} uses.",
        "",
        f"Settings: {'; '.join(f'{name} {value}' for name, value in asdict(found.settings).items())}",
        "",
        f"Fitted on the biLM `{bilm.name}`, SHA-256 `{bilm.sha256}`.",
    ]
    write_text(partial / CARD, "\n".join(card) + "\n", escaped=True)


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a saved Disambiguator."""
    try:
        data = parse_json(folder / CONFIG, LARGEST_CONFIG)
    except BilmoError:
        return False
    return isinstance(data, dict) and data.get("bilmo_task") == TASK


def load(folder: str | PathLike[str], *, elmo: Embedder | str | PathLike[str] | None = None) -> Disambiguator:
    """Load a saved Disambiguator with its biLM; `elmo` is that biLM or its path, None for the recorded path."""
    path = Path(folder)
    if not is_saved(path):
        raise NotAModel(f"{path}: does not hold saved senses; `bilmo fit senses` creates such folders")
    return read_published(lambda: _read_config(path / CONFIG), lambda config: _load(path, config, elmo))


def _read_config(path: Path) -> SenseFile:
    data: dict[str, Any] = parse_json(path, LARGEST_CONFIG)
    check_format(path, data.get("format"), oldest=FORMAT, newest=FORMAT, if_older=REMEDY)
    config = checked(data, SenseFile, str(path))
    check_own_hash(path, data, REMEDY)
    return config


def _load(path: Path, config: SenseFile, elmo: Embedder | str | PathLike[str] | None) -> Disambiguator:
    files = HashedFolder(path, config.sha256, REMEDY)
    with files.open_tensors(VECTORS) as file:
        tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    floats = {
        name: finite_weights(value, f"{path / VECTORS}: {name}") for name, value in tensors.items() if name != "counts"
    }
    keys = files.read_lines(KEYS)
    whitened = {"centre", "directions"} if config.settings.whiten else set()
    counts = tensors.get("counts")
    rows = [len(floats.get("vectors", ())), 0 if counts is None else len(counts)]
    if counts is None or floats.keys() != {"vectors"} | whitened or rows != [len(keys)] * 2:
        raise WeightsError(f"{path / VECTORS}: does not fit {KEYS} and {CONFIG}. {REMEDY}")
    wrong = next((key for key in keys if not is_key(key)), None)
    if wrong is not None:
        raise DamagedFile(f"{path / KEYS}: {wrong[:60]!r} is not a sense key. {REMEDY}")
    inventory = Inventory.parse(files.read_lines(INVENTORY), str(path / INVENTORY))
    forms = Forms.parse(files.read_lines(FORMS), str(path / FORMS), inventory)
    settings = config.settings
    found = Disambiguator(
        load_bilm(path, config.bilm, elmo), mix=settings.mix, whiten=settings.whiten, prior=settings.prior
    )
    whitening = _whitening(floats) if whitened else None
    vectors = unit(floats["vectors"].numpy())
    found.restore(Learned(keys, np.asarray(counts), vectors, whitening, inventory, forms))
    return found


def files_of(folder: Path) -> list[Path]:
    """The files of saved senses."""
    return [file for file in folder.rglob("*") if file.is_file()]
