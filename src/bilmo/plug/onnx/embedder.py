"""Runs a model from an ONNX file: texts and sentences to numpy arrays by onnxruntime, without torch.

Knows: onnxruntime, Indexer, how text is split. Blind to: torch, networks, how the file was made.
"""

# B sentences, T tokens, D one direction, L layers

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.texts import Embedded, Floats, gathered, joined, token_count
from bilmo.errors import ConfigError, DamagedFile, NotAModel, need
from bilmo.ids.batch import Sentence, by_length, each_text, listed
from bilmo.plug.text_to_ids import TextToIds

BATCH_TOKENS = 2048
"""Tokens of a batch, boundaries included; how sentences are grouped never changes a vector."""
Vectors = NDArray[np.float32]
Mix = str | int | Sequence[int]


class OnnxEmbedder:
    """What `load` returns: `embed` and `layers` as in `bilmo.Embedder`."""

    def __init__(self, session: Any, metadata: dict[str, str], lang: str = "auto") -> None:
        self._session = session
        settings = TextToIds(**json.loads(metadata["bilmo"]))
        self._indexer = settings.indexer()
        self.split = settings.splitter(lang)
        self.layer_count = int(metadata["layers"]) + 1
        """Layers of a token, the word itself included."""
        self.vector_width = int(metadata["vector_width"])
        """Width of a token's vector in one layer."""
        self.precision = metadata["precision"]

    def layers(self, sentences: Iterable[Sentence]) -> list[Vectors]:
        """For each sentence (L+1, tokens, 2D): layer 0 is the word alone, the others see its context."""
        given = listed(sentences)
        found = [self._nothing()] * len(given)
        wanted = [value.name for value in self._session.get_inputs()]
        for numbers in by_length([token_count([one]) - 2 for one in given], BATCH_TOKENS):
            batch = self._indexer.batch([given[k] for k in numbers])
            known = {"chars": batch.words.chars, "ids": batch.words.ids}
            known |= {"forward": batch.forward, "lengths": batch.lengths}
            (layers,) = self._session.run(["layers"], {name: known[name] for name in wanted})
            for row, k in enumerate(numbers):
                found[k] = layers[:, row, : len(given[k])].copy()  # a copy does not keep the others in memory
        return found

    def embed(
        self,
        texts: str | Iterable[str] | Iterable[Sentence],
        *,
        mix: Mix = "mean",
        pool: str = "none",
        dtype: str = "float32",
        normalize: bool = False,
    ) -> Any:
        """Vectors of a text, of many texts, or of sentences that are lists of tokens, as `Embedder.embed` gives them.

        mix: "mean", "top", "concat", "all", or layer numbers.
        pool: "mean" or "max" over the tokens gives one vector per text.
        dtype: "float32" or "float16".
        normalize: vectors of length 1.
        """
        chosen = self._chosen(mix)
        for name, value, accepted in (
            ("pool", pool, ("none", "mean", "max")),
            ("dtype", dtype, ("float32", "float16")),
        ):
            if value not in accepted:
                raise ConfigError(f"{name} is {value!r}; accepted: {', '.join(accepted)}")
        items = [texts] if isinstance(texts, str) else list(each_text(texts))
        given = ((item, self._sentences(item)) for item in items)
        found: list[Any] = []
        for some, rows in gathered(given, 4 * BATCH_TOKENS if pool != "none" else sys.maxsize):
            layers = iter(self.layers(chain.from_iterable(rows)))
            for item, row in zip(some, rows, strict=True):
                parts = [_mixed(next(layers), mix, chosen) for _ in row]
                one = joined(parts, pool, dtype, normalize=normalize)
                split = isinstance(item, str) and pool == "none"
                found.append(Embedded(list(chain.from_iterable(row)), one) if split else one)
        if isinstance(texts, str):
            return found[0]
        if pool == "none":
            return found
        nothing = joined([_mixed(self._nothing(), mix, chosen)], pool, dtype)
        return np.stack(found) if found else np.zeros((0, *nothing.shape), dtype=dtype)

    def _sentences(self, item: str | Sentence) -> list[Sentence]:
        return list(self.split(item)) if isinstance(item, str) else listed([item])

    def _chosen(self, mix: Mix) -> list[int]:
        """The layers that a mix reads."""
        every = list(range(self.layer_count))
        named = {"mean": every, "all": every, "top": every[-1:], "concat": every[1:]}
        if isinstance(mix, str):
            if mix not in named:
                raise ConfigError(f"mix is {mix!r}; accepted: {', '.join(named)}, or layer numbers such as 0 or (0, 1)")
            return named[mix]
        numbers = [mix] if isinstance(mix, int) else list(mix)
        if not numbers or not set(numbers) <= set(every):
            raise ConfigError(f"layers are numbered 0 (the word) to {every[-1]}; found {mix!r}")
        return numbers

    def _nothing(self) -> Vectors:
        return np.zeros((self.layer_count, 0, self.vector_width), dtype=np.float32)


def _mixed(layers: Vectors, mix: Mix, chosen: list[int]) -> Floats:
    """(L+1, T, 2D) to (T, width), or as it is."""
    if mix == "all":
        return layers
    if mix == "concat":
        return np.concatenate(list(layers[chosen]), axis=-1)
    return np.asarray(layers[chosen].mean(axis=0))


def load(file: str | PathLike[str], *, lang: str = "auto", threads: int | None = None) -> OnnxEmbedder:
    """Load a file that `bilmo export` wrote.

    lang: how raw text becomes tokens, as in `bilmo.load`.
    threads: number of CPU cores to use; None for all.
    """
    path = Path(file)
    if not path.is_file():
        raise NotAModel(f"{path}: there is no such file. `bilmo export MODEL -o {path.name}` creates one.")
    runtime = need("onnxruntime", extra="onnx", purpose="bilmo.plug.onnx.load")
    options = runtime.SessionOptions()
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DamagedFile(f"{path}: cannot be loaded as an ONNX file ({reason}). Export the model again.") from error
    metadata = dict(session.get_modelmeta().custom_metadata_map)
    if "bilmo" not in metadata:
        raise NotAModel(f"{path}: is an ONNX file, but `bilmo export` did not write it, so its inputs are not known.")
    return OnnxEmbedder(session, metadata, lang)
