"""Open any model on disk: detect its layout and read it into a Bundle.

Knows: every reader and writer. Blind to: running networks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args
from zipfile import is_zipfile

from bilmo.errors import BilmoError, CannotConvert, ConfigError, NotAModel
from bilmo.formats import archive, bilmtf, hdf5, manylangs, tf_checkpoint
from bilmo.store import model_folder as own
from bilmo.store.bundle import Bundle
from bilmo.store.installed import installed
from bilmo.store.model_folder import DType
from bilmo.store.published import published

log = logging.getLogger(__name__)
Target = Literal["bilmo", "allennlp"]


@dataclass(frozen=True)
class Layout:
    """A kind of model folder: the files it must hold, how to recognize it, and its reader."""

    needs: str
    fits: Callable[[Path], bool]
    read: Callable[[Path], Bundle]


IN_FOLDER = (own.CONFIG, own.WEIGHTS, "options.json", "encoder.pkl", "token_embedder.pkl")
"""Files that stand for the folder they are in."""


def _has(*names: str) -> Callable[[Path], bool]:
    return lambda folder: all((folder / name).is_file() for name in names)


LAYOUTS = (
    Layout("config.json and model.safetensors (bilmo)", _has(own.CONFIG, own.WEIGHTS), own.read),
    Layout("encoder.pkl and token_embedder.pkl (ELMoForManyLangs)", _has(*manylangs.NEEDS), manylangs.read),
    # The checkpoint comes before HDF5: if a folder has both, only the checkpoint holds the softmax.
    Layout(
        "options.json and a checkpoint's .index file (bilm-tf)",
        lambda folder: tf_checkpoint.find(folder) is not None,
        lambda folder: bilmtf.read_checkpoint(folder, tf_checkpoint.find(folder) or folder),
    ),
    Layout("options.json and HDF5 weights (bilm-tf, AllenNLP)", bilmtf.has_weights, bilmtf.read_hdf5),
)


def read(path: Path) -> Bundle:
    """Read a model: folder, zip, weights file, .index file or prefix of a checkpoint, or name of an installed model."""
    try:
        bundle = _read(path)
    except OSError as error:  # raised by the file system, for any of the model's files
        raise NotAModel(f"{error.filename or path}: cannot be read ({error.strerror or error})") from None
    log.debug("%s: %s, %d tensors", path, bundle.layout, len(bundle.weights))
    return bundle


def _read(path: Path) -> Bundle:
    if path.is_dir():
        return _read_folder(path)
    prefix = path.with_suffix("") if path.suffix == ".index" else path
    if Path(f"{prefix}.index").is_file():
        return bilmtf.read_checkpoint(path.parent, prefix)
    if not path.exists():
        models = installed()
        if str(path) in models:
            return own.read(models[str(path)])
        raise NotAModel(f"{path}: there is no such file or folder{_hint(path, models)}")
    if not path.is_file():
        raise NotAModel(f"{path}: is neither a file nor a folder")
    if path.name in IN_FOLDER:
        return _read_folder(path.parent)
    if hdf5.is_hdf5(path):
        return bilmtf.read_hdf5(path.parent, path)
    if is_zipfile(path) or path.suffix == ".zip":
        return _read_zip(path)
    raise NotAModel(
        f"{path}: is not a model. Accepted: a folder or zip with {_accepted()}; or the weights file itself."
    )


def _hint(path: Path, models: Mapping[str, Path]) -> str:
    """A suggestion for a name that is neither a path nor an installed model."""
    if len(path.parts) != 1:
        return ""
    if str(path) in published():
        return f". `bilmo get {path}` installs the published model of this name."
    return f"; installed models: {', '.join(models) or 'none'}"


def files_of(path: Path) -> list[Path]:
    """The files that `read` opens for a model, or may open."""
    if not path.exists() and str(path) in installed():
        path = installed()[str(path)]
    if path.name in IN_FOLDER:
        path = path.parent
    if path.is_dir():
        return [file for file in path.iterdir() if file.is_file()]
    prefix = path.stem if path.suffix == ".index" else path.name  # of a checkpoint
    shared = [*path.parent.glob("*options.json"), *path.parent.glob("vocab*.txt*")]
    beside = bilmtf.weights_in(path.parent) if path.is_file() and hdf5.is_hdf5(path) else []
    return [path, *(file for file in path.parent.glob("*") if file.name.startswith(f"{prefix}.")), *shared, *beside]


def _read_zip(path: Path) -> Bundle:
    """Read the model in a zip. Messages name the zip, not the temporary folder that it was unpacked to."""
    with archive.unpacked(path) as folder:
        try:
            bundle = _read_folder(archive.inner(folder))
        except BilmoError as error:
            raise type(error)(str(error).replace(str(folder), str(path))) from None
    return replace(bundle, notes=[note.replace(str(folder), str(path)) for note in bundle.notes])


def _read_folder(folder: Path) -> Bundle:
    for layout in LAYOUTS:
        if layout.fits(folder):
            return layout.read(folder)
    held = ", ".join(sorted(entry.name for entry in folder.iterdir())[:12]) or "nothing"
    raise NotAModel(f"{folder}: is not a model; it contains {held}. Accepted: a folder with {_accepted()}.")


def _accepted() -> str:
    return "; ".join(layout.needs for layout in LAYOUTS)


def write(bundle: Bundle, target: Path, to: Target, dtype: DType = "float32") -> list[str]:
    """Write a model in one of the layouts that bilmo writes; returns what the layout cannot hold."""
    check_target(target, to, dtype)
    if to == "allennlp":
        return bilmtf.write(bundle, target)
    own.write(bundle, target, dtype)
    return []


def check_target(target: Path, to: str, dtype: str) -> None:
    """Refuse a layout or a number format that bilmo does not write."""
    for name, value, accepted in (("to", to, get_args(Target)), ("dtype", dtype, get_args(DType))):
        if value not in accepted:
            raise ConfigError(f"{name} is {value!r}; accepted: {', '.join(accepted)}")
    if to == "allennlp" and dtype != "float32":
        raise CannotConvert(
            f"{target}: {dtype} works only with bilmo's own folder; options.json and HDF5 weights are float32"
        )
