"""Models: our folder, zips, the layouts of other systems, caches of word vectors."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st

from bilmo.embed import word_cache_file
from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts
from bilmo.store import model_folder
from fuzz import damage
from fuzz.seal import sealed
from fuzz.target import OTHER, Box, DamagedFiles, Failure

import old_models

SENTENCES = [["The", "cat", "naïve"], [], ["漢字", "the"]]


def vectors(elmo: Embedder) -> list[bytes]:
    """What a user gets from a model."""
    found = elmo.layers(SENTENCES) + (elmo.log_probs(SENTENCES) if elmo.bundle.has_softmax else [])
    return [values.tobytes() for values in found]


def write_own(folder: Path, write_old: Callable[[Path], object]) -> None:
    """A model in our layout, made from one in an old layout."""
    write_old(folder / "old")
    model_folder.write(settled(layouts.read(folder / "old")), folder / "model")
    shutil.rmtree(folder / "old")


class ModelFolder(DamagedFiles):
    """Our folder: characters in Unicode and a word table."""

    name, share = "model folder", 180

    def make(self, folder: Path) -> None:
        write_own(folder, old_models.write_manylangs)

    def read(self, folder: Path) -> object:
        return vectors(load(folder / "model"))


class SoftmaxFolder(ModelFolder):
    """Our folder: characters as bytes, a softmax with its vocabulary."""

    name, share = "model folder with softmax", 100

    def make(self, folder: Path) -> None:
        write_own(folder, old_models.write_checkpoint)


class ForgedFolder(SoftmaxFolder):
    """Our folder, changed by somebody who also wrote the right hashes."""

    name, share = "forged model folder", 120
    noticed = False

    def cases(self) -> st.SearchStrategy[Any]:
        kinds = ("flip", "write", "insert", "cut", "delete", "value", "raw", "drop", "key", "line", "repeat")
        return damage.edits(list(self.files), kinds=kinds)

    def check(self, box: Box, case: Any) -> str:
        damage.write(box.case, sealed(damage.apply(self.files, case)))
        return self.compared(lambda: self.read(box.case))


class ZippedModel(DamagedFiles):
    """A zip of our folder."""

    name, share = "zip", 60

    def make(self, folder: Path) -> None:
        write_own(folder, old_models.write_manylangs)
        old_models.zipped(folder / "model", folder / "model.zip", "inside")
        shutil.rmtree(folder / "model")

    def read(self, folder: Path) -> object:
        return vectors(load(folder / "model.zip"))


NAMES = (
    *(
        "../outside/new",
        "/tmp/outside/new",
        "a/../../outside/new",
        "..\\outside\\new",
        "C:\\new",
        "config.json",
        "model",
    ),
    *("inside/config.json", "inside/vocab.txt", "inside/new/", "x" * 300, "a/" * 200, "", "con", "é\u0301", "."),
)


class ForgedZip(ZippedModel):
    """A zip with members that no honest program writes: strange paths, links, names twice."""

    name, share = "forged zip", 25

    def cases(self) -> st.SearchStrategy[Any]:
        member = st.tuples(st.sampled_from(NAMES), st.sampled_from((0, 0o120777, 0o060777, 0o010777, 0o100000)))
        return st.lists(member.map(list), min_size=1, max_size=4)

    def check(self, box: Box, case: Any) -> str:
        damage.write(box.case, self.files)
        with zipfile.ZipFile(box.case / "model.zip", "a") as archive:
            for name, mode in case:
                info = zipfile.ZipInfo(name)
                info.external_attr = mode << 16
                archive.writestr(info, "../outside/secret.txt")
        return self.compared(lambda: self.read(box.case))


class OldLayout(DamagedFiles):
    """A folder of another system. It has few checksums, so damage may go unnoticed."""

    noticed = False

    def read(self, folder: Path) -> object:
        return vectors(load(folder))


class Hdf5(OldLayout):
    """options.json and HDF5."""

    name, share = "HDF5 weights", 100

    def make(self, folder: Path) -> None:
        old_models.write_hdf5(folder, vocab=old_models.WORDS)


class Checkpoint(OldLayout):
    """A TensorFlow checkpoint. Its index and its tensors have checksums."""

    name, share = "TensorFlow checkpoint", 80

    def make(self, folder: Path) -> None:
        old_models.write_checkpoint(folder)

    def check(self, box: Box, case: Any) -> str:
        found = super().check(box, case)
        if found == OTHER and all(name.startswith("model.ckpt") for name in damage.touched(list(self.files), case)):
            raise Failure("silent difference: damaged files were read, with another result")
        return found


class ManyLangs(OldLayout):
    """ELMoForManyLangs: pickles, which must never run code."""

    name, share = "ELMoForManyLangs", 60

    def make(self, folder: Path) -> None:
        old_models.write_manylangs(folder)


class Opens:
    """An object that writes a file when it is unpickled."""

    def __init__(self, function: Callable[..., object], *given: object) -> None:
        self.made = (function, given)

    def __reduce__(self) -> Any:
        return self.made


def _deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


PICKLES: tuple[Callable[[Path], object], ...] = (
    lambda path: Opens(open, str(path), "w"),
    lambda path: Opens(os.system, f"touch {path}"),
    lambda path: Opens(os.mkdir, str(path)),
    lambda path: Opens(eval, f"open({str(path)!r}, 'w')"),
    lambda path: Opens(exec, f"open({str(path)!r}, 'w')"),
    lambda path: Opens(getattr, Opens(__import__, "os"), "getcwd"),
    lambda path: Opens(torch.load, str(path)),
    lambda path: Opens(torch.save, {}, str(path)),
    lambda path: Opens(io.open, str(path), "w"),
    lambda path: Opens(Path.touch, path),
    lambda path: Opens(shutil.rmtree, str(path.parent)),
    lambda path: _deep(900),
    lambda path: {"a": 1, 2: torch.ones(1)},
    lambda path: [torch.ones(3)],
    lambda path: torch.nn.Linear(2, 2),
    lambda path: {"x": torch.ones(2, 2).to_sparse()},
    lambda path: {"x": torch.ones(2, dtype=torch.complex64), "y": torch.ones(2, dtype=torch.bool)},
)


class ForgedPickle(ManyLangs):
    """Pickles that try to run code, alone or inside a dictionary of tensors, zipped by torch or plain, then damaged."""

    name, share = "forged pickle", 25

    def cases(self) -> st.SearchStrategy[Any]:
        names = ("encoder.pkl", "token_embedder.pkl")
        kinds = ("flip", "write", "cut", "delete", "insert")
        edits: st.SearchStrategy[list[Any]] = st.just([]) | damage.edits(list(self.files), most=1, kinds=kinds)
        forms = st.sampled_from(("plain", "in a dictionary", "by torch"))
        return st.tuples(st.integers(0, len(PICKLES) - 1), st.sampled_from(names), forms, edits).map(list)

    def check(self, box: Box, case: Any) -> str:
        number, name, form, edits = case
        payload = PICKLES[number](box.outside / "new")
        written = io.BytesIO()
        if form == "by torch":
            torch.save({"weight": payload}, written)
        else:
            pickle.dump(payload if form == "plain" else {"weight": payload, "bias": 1}, written)
        damage.write(box.case, damage.apply(self.files | {name: written.getvalue()}, edits))
        return self.compared(lambda: self.read(box.case))


class WordCache(DamagedFiles):
    """Word vectors that were computed beforehand."""

    name, share = "word cache", 40

    def make(self, folder: Path) -> None:
        write_own(folder, old_models.write_manylangs)
        elmo = load(folder / "model")
        words = ["The", "cat", "漢字", "sat"]
        word_cache_file.write(folder / "words", words, elmo.word_vectors(words), elmo.bundle, "float32")

    def read(self, folder: Path) -> object:
        return vectors(load(folder / "model", word_cache=folder / "words"))

    def cases(self) -> st.SearchStrategy[Any]:
        return damage.edits(list(self.files), only=["words"])
