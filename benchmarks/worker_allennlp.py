"""Embed with AllenNLP's own Elmo; run by embed.py in the environment of AllenNLP.

Only the modules that make up Elmo are imported from the package. Everything else that they import (registries,
configuration, download) is replaced by objects that do nothing, because it does not load with current libraries.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import time
import types
from pathlib import Path

import numpy as np
import torch

WANTED = {
    "allennlp.modules.elmo",
    "allennlp.modules.elmo_lstm",
    "allennlp.modules.encoder_base",
    "allennlp.modules.highway",
    "allennlp.modules.input_variational_dropout",
    "allennlp.modules.lstm_cell_with_projection",
    "allennlp.modules.sampled_softmax_loss",
    "allennlp.modules.scalar_mix",
    "allennlp.modules.time_distributed",
    "allennlp.nn.util",
    "allennlp.data.token_indexers.elmo_indexer",
}
REPLACED = ("allennlp", "overrides", "cached_path", "transformers", "spacy", "nltk")


def _anything(*args: object, **kwargs: object) -> object:
    """A decorator that returns what it decorates, or a path function that returns the path."""
    return args[0] if args else _anything


class _Named:
    """Replaces any class that is inherited from or registered with."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        pass

    def __class_getitem__(cls, item: object) -> type:
        return cls

    @classmethod
    def register(cls, *args: object, **kwargs: object) -> object:
        return lambda registered: registered


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("is_distributed",):
            return lambda: False
        made = type(name, (Exception if name.endswith("Error") else _Named,), {}) if name[0].isupper() else _anything
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] not in REPLACED:
            return None
        if name in WANTED:
            file = next(Path(p) / f"{name.replace('.', '/')}.py" for p in sys.path if (Path(p) / "allennlp").is_dir())
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install() -> None:
    """Make the wanted modules of AllenNLP importable."""
    sys.meta_path.insert(0, _Finder())
    import allennlp.nn
    import allennlp.nn.util

    allennlp.nn.util = sys.modules["allennlp.nn.util"]


def main(model: str, task: str, out: str) -> None:
    install()
    from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper
    from allennlp.modules.elmo import Elmo

    work = json.loads(Path(task).read_text(encoding="utf-8"))
    torch.set_num_threads(work["threads"])
    elmo = Elmo(f"{model}/options.json", f"{model}/weights.hdf5", 1, dropout=0.0).eval()
    elmo._elmo_lstm._elmo_lstm.stateful = False  # like start="zero" of bilmo
    mapper = ELMoCharacterMapper()

    def embed(sentences: list[list[str]]) -> list[np.ndarray]:
        found = []
        size = work["batch"]
        for at in range(0, len(sentences), size):
            some = sentences[at : at + size]
            ids = torch.zeros(len(some), max(map(len, some)), 50, dtype=torch.long)
            for row, sentence in enumerate(some):
                for place, word in enumerate(sentence):
                    ids[row, place] = torch.tensor(mapper.convert_word_to_char_ids(word))
            with torch.no_grad():
                layers = elmo._elmo_lstm(ids)["activations"]
            found += [np.stack([x[k, 1 : 1 + len(s)].numpy() for x in layers]) for k, s in enumerate(some)]
        return found

    embed(work["warm_up"][: work["batch"]])
    seconds = []
    for part in work["parts"]:
        began = time.perf_counter()
        vectors = embed(part)
        seconds.append(time.perf_counter() - began)
    np.savez(out, seconds=seconds, **{f"v{k}": v for k, v in enumerate(vectors[: work["compared"]])})


if __name__ == "__main__":
    main(*sys.argv[1:])
