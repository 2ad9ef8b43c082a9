"""The folder of an index, and how it is checked.

    config.json              what the index was made with, and SHA-256 of all files that are read as a whole
    statistics.safetensors   centre and whitening, fixed when the index was built
    00000/                   the uses of the first texts, see `sense.segment`
    00001/ ...               the uses of the texts that were added later
    00000/cells.faiss        for approximate search, if there are many uses

Knows: segments, hashed folders. Blind to: models, how an index is built.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from bilmo.embed.word_space import Whitening
from bilmo.errors import BilmoError, NotAModel
from bilmo.net.config import STRICT
from bilmo.sense.segment import HASHES, NAMES, Segment, Stored, read_names
from bilmo.store.atomic import sync
from bilmo.store.hashed_folder import HashedFolder, NewFolder, check_format, check_own_hash
from bilmo.store.tensors_file import read_hashed, write_hashed
from bilmo.store.validate import checked, parse_json

CONFIG, STATISTICS, CELLS = "config.json", "statistics.safetensors", "cells.faiss"
FORMAT = 1
REMEDY = "Build the index again."


@dataclass(frozen=True, kw_only=True)
class Added:
    """Texts that were indexed together."""

    text: str
    """A fingerprint of them."""
    uses: int
    sentences: int
    approximate: bool
    """Whether there is a structure for approximate search."""


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """The content of config.json."""

    __pydantic_config__ = STRICT

    bilmo_index: int
    """Raised when older versions of bilmo can no longer read the folder."""
    model: str
    """The identity of the model."""
    model_name: str
    start: str
    lang: str
    mix: str | list[int]
    stored: Stored
    width: int
    texts: list[Added]
    sha256: dict[str, str]


def is_index(path: Path) -> bool:
    """Whether a path is the folder of an index, damaged or not."""
    try:
        data = parse_json(path / CONFIG)
    except BilmoError:
        return (path / STATISTICS).exists()
    return isinstance(data, dict) and "bilmo_index" in data


def read_config(folder: Path) -> IndexConfig:
    """config.json of an index."""
    path = folder / CONFIG
    if not folder.exists():
        raise NotAModel(f"{folder}: there is no such index")
    if not is_index(folder):
        raise NotAModel(f"{folder}: is not an index. `bilmo index` makes one.")
    data = parse_json(path)
    check_format(path, data["bilmo_index"], oldest=FORMAT, newest=FORMAT, if_older=REMEDY)
    check_own_hash(path, data, REMEDY)
    return checked(data, IndexConfig, str(path))


def segment_folder(number: int) -> str:
    """The name of the folder of a segment."""
    return f"{number:05}"


def write_config(folder: Path, config: IndexConfig, target: Path) -> None:
    """Write config.json into the folder `target`, with the hashes of the files of `folder` that it names."""
    number = len(config.texts) - 1
    new = [STATISTICS] if number == 0 else []
    new += [f"{segment_folder(number)}/{name}" for name in (NAMES, HASHES)]
    new += [f"{segment_folder(number)}/{CELLS}"] if config.texts[number].approximate else []
    files = NewFolder(folder, {name: value for name, value in config.sha256.items() if name != CONFIG})
    for name in new:
        files.add(name)
    data = {name: value for name, value in asdict(config).items() if name != "sha256"}
    NewFolder(target, files.hashes).write_json(CONFIG, data)
    sync(target / CONFIG)


def write_statistics(folder: Path, whitening: Whitening) -> None:
    """Write the centre and the whitening."""
    tensors = {"centre": whitening.centre, "directions": whitening.directions}
    write_hashed(folder / STATISTICS, {name: torch.from_numpy(value) for name, value in tensors.items()}, {})


def read_statistics(folder: Path) -> Whitening:
    """The centre and the whitening."""
    stored = {name: value.numpy() for name, value in read_hashed(folder / STATISTICS, REMEDY)[0].items()}
    return Whitening(stored["centre"], stored["directions"])


def read_segment(folder: Path, number: int, config: IndexConfig) -> Segment:
    """A segment, read in place."""
    files = HashedFolder(folder, config.sha256, REMEDY)
    name = segment_folder(number)
    names = read_names(files.check(f"{name}/{NAMES}"))
    hashes = files.check(f"{name}/{HASHES}").read_bytes()
    return Segment(folder / name, config.width, config.stored, hashes, names, REMEDY)
