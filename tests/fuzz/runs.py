"""Run folders and what a run keeps in them: parts, checkpoints, corpora; and saved tasks.

A run was stopped; its files are damaged; the same run is started again. It must refuse, or end as if nothing had been.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from bilmo.embed import job
from bilmo.embed.embedder import Embedder
from bilmo.embed.inputs import Inputs
from bilmo.embed.load import load
from bilmo.store import model_folder
from bilmo.store.vectors_file import Vectors
from bilmo.tasks import folder as task_folders
from bilmo.tasks.classify.classifier import Classifier
from bilmo.tasks.core import run as task_run
from bilmo.tasks.core.events import Epoch
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.tag.tagger import Tagger
from bilmo.training.events import Step
from bilmo.training.run import train
from fuzz import damage
from fuzz.models import vectors
from fuzz.seal import sealed
from fuzz.target import Box, DamagedFiles, Failure
from small_runs import recipe, write_text

import task_data

SMALL: dict[str, Any] = {"hidden": 6, "epochs": 3, "patience": 9, "rate": 0.02}

GIVEN = Vectors(["red", "cat", "the", "漢字"], np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))


class EmbeddingRun(DamagedFiles):
    """Two of four parts are finished."""

    name, share = "parts of an embedding run", 40
    lines = ("the cat sat", "", "漢字 on a mat .", "dogs", "saw the cat", "a b c d", "end")

    def make(self, folder: Path) -> None:
        job.PART_TOKENS = 10
        self.elmo = Embedder(task_data.made(0), lang="spaces")
        folder.mkdir(exist_ok=True)
        (folder / "text.txt").write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        events = self.started(folder)
        for number, _ in enumerate(event for event in events if isinstance(event, job.Step)):
            if number == 2:
                break
        events.close()

    def started(self, folder: Path) -> Any:
        settings = job.EmbedSettings(mix="mean", lang="west")
        return job.run(self.elmo, Inputs((str(folder / "text.txt"),)), folder / "v.npy", settings)

    def cases(self) -> st.SearchStrategy[Any]:
        return damage.edits(list(self.files), only=[name for name in self.files if name != "text.txt"])

    def read(self, folder: Path) -> object:
        list(self.started(folder))
        left = {path.name for path in folder.iterdir()} - {"text.txt", "v.npy", "v.tokens.jsonl"}
        if left:
            raise Failure(f"a finished run leaves {left}")
        return damage.read(folder)


class TrainingRun(DamagedFiles):
    """A checkpoint, a corpus, a log, and the best model so far."""

    name, share, chunk = "training run", 8, 40

    def make(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        write_text(folder, lines=60)
        events = self.started(folder)
        for event in events:
            if isinstance(event, Step) and event.number == 14:
                break
        events.close()

    def started(self, folder: Path) -> Any:
        return train([folder / "text.txt"], folder / "model", recipe(folder))

    def cases(self) -> st.SearchStrategy[Any]:
        return damage.edits(list(self.files), only=[name for name in self.files if name.startswith("model/")])

    def read(self, folder: Path) -> object:
        for _ in self.started(folder):
            pass
        return vectors(load(folder / "model"))


class TaskRun(DamagedFiles):
    """A classifier after its first epoch."""

    name, share, chunk = "task run", 12, 40

    def make(self, folder: Path) -> None:
        model_folder.write(task_data.made(0), folder / "bilm")
        self.elmo = load(folder / "bilm")
        self.model = str(folder / "bilm")
        events = self.started(folder)
        for event in events:
            if isinstance(event, Epoch):
                break
        events.close()

    def started(self, folder: Path) -> Any:
        task = Classifier(self.elmo, **SMALL)
        data: Dataset[Any, Any] = Dataset(*task_data.texts(20))
        return task_run.fit(task, folder / "task", data, None, model=self.model)

    def cases(self) -> st.SearchStrategy[Any]:
        return damage.edits(list(self.files), only=[name for name in self.files if name.startswith("task/")])

    def read(self, folder: Path) -> object:
        for _ in self.started(folder):
            pass
        return answers(folder / "task", self.elmo)


def answers(folder: Path, elmo: Embedder) -> object:
    """What a user gets from a saved task."""
    task: Any = task_folders.load(folder, elmo=None if (folder / "bilm").exists() else elmo)
    texts = [["a", "red", "cat"], ["blue"], []]
    return list(task.predict(texts)), repr(task.predict_proba(texts))


class ClassifierFolder(DamagedFiles):
    """A saved classifier, which was trained with word vectors of its own."""

    name, share = "saved classifier", 30

    def make(self, folder: Path) -> None:
        model_folder.write(task_data.made(0), folder / "bilm")
        self.elmo = load(folder / "bilm")
        task_folders.save(self.fitted(), folder / "task", model=str(folder / "bilm"))

    def fitted(self) -> Any:
        return Classifier(self.elmo, vectors=GIVEN, **SMALL | {"epochs": 1}).fit(*task_data.texts(20))

    def cases(self) -> st.SearchStrategy[Any]:
        return damage.edits(list(self.files), only=[name for name in self.files if name.startswith("task/")])

    def read(self, folder: Path) -> object:
        return answers(folder / "task", self.elmo)


class TaggerFolder(ClassifierFolder):
    """A saved tagger with a biLM that was trained with it."""

    name, share = "saved tagger", 30

    def fitted(self) -> Any:
        return Tagger(self.elmo, tune=True, **SMALL | {"epochs": 1}).fit(*task_data.sentences(20))


class ForgedTask(TaggerFolder):
    """A saved tagger, changed by somebody who also wrote the right hashes."""

    name, share = "forged task", 40
    noticed = False

    def cases(self) -> st.SearchStrategy[Any]:
        kinds = ("flip", "write", "insert", "cut", "delete", "value", "raw", "drop", "key", "line", "repeat")
        own = [name for name in self.files if name.startswith("task/")]
        return damage.edits(list(self.files), only=own, kinds=kinds)

    def check(self, box: Box, case: Any) -> str:
        damage.write(box.case, sealed(damage.apply(self.files, case)))
        return self.compared(lambda: self.read(box.case))
