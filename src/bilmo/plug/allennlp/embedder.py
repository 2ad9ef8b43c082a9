"""ElmoEmbedder of AllenNLP 0.9: sentences to arrays with all layers, and a file of sentences to an HDF5 file.

Knows: Embedder, HDF5. Blind to: gradients, mixes.
"""

# B sentences, T tokens, D one direction, L layers

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilmo.embed.embedder import Embedder
from bilmo.errors import ConfigError
from bilmo.ids.batch import Sentence
from bilmo.plug.allennlp.files import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, Name, read
from bilmo.plug.allennlp.network import Start, _ElmoBiLm
from bilmo.progress import advancing
from bilmo.store.atomic import new_file

DEFAULT_BATCH_SIZE = 64
FORMATS = ("all", "top", "average")
Vectors = NDArray[np.float32]
EMPTY: Vectors = np.zeros((3, 0, 1024), dtype=np.float32)
"""What AllenNLP gives for a sentence without tokens, whatever the width of the model."""


class ElmoEmbedder:
    """All layers of sentences, with the names and shapes of AllenNLP 0.9.

    cuda_device: number of a GPU, or -1 for the CPU.
    start: "carry", the default, is AllenNLP's behaviour: a sentence continues where the sentence in the same row of the
        previous batch ended. With "settled", a sentence always gets the same vectors.
    """

    def __init__(
        self,
        options_file: Name = DEFAULT_OPTIONS_FILE,
        weight_file: Name | None = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
        *,
        start: Start = "carry",
    ) -> None:
        device = f"cuda:{cuda_device}" if cuda_device >= 0 else "cpu"
        self._files, self._start = (options_file, weight_file), start
        self._elmo = Embedder(read(*self._files), start=start, device=device)
        self.cuda_device = cuda_device

    @cached_property
    def elmo_bilm(self) -> _ElmoBiLm:
        """The same weights as a module, for code that asks it for its sizes or calls it; it has a state of its own."""
        return _ElmoBiLm(*self._files, start=self._start).to(self._elmo.device)

    def batch_to_embeddings(self, batch: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
        """Layers (B, L+1, T, 2D), zero where there is no token, and the mask (B, T)."""
        found = self._elmo.layers(batch)
        longest = max((one.shape[1] for one in found), default=0)
        config = self._elmo.config
        layers = np.zeros((len(found), config.layers + 1, longest, config.vector_width), dtype=np.float32)
        mask = np.zeros((len(found), longest), dtype=bool)
        for row, one in enumerate(found):
            layers[row, :, : one.shape[1]] = one
            mask[row, : one.shape[1]] = True
        device = self._elmo.device
        return torch.from_numpy(layers).to(device), torch.from_numpy(mask).to(device)

    def embed_sentence(self, sentence: Sentence) -> Vectors:
        """(L+1, T, 2D) of one sentence; `EMPTY` of one without tokens."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sentence]) -> list[Vectors]:
        """(L+1, T, 2D) for each sentence of one batch."""
        if len(batch) == 1 and not batch[0]:  # AllenNLP computes nothing for it, so no state changes
            return [EMPTY]
        return [layers if layers.shape[1] else EMPTY for layers in self._elmo.layers(batch)]

    def embed_sentences(self, sentences: Iterable[Sentence], batch_size: int = DEFAULT_BATCH_SIZE) -> Iterator[Vectors]:
        """(L+1, T, 2D) for each sentence, computed in batches of this many sentences."""
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}; it must be 1 or more")
        remaining = iter(sentences)
        while batch := list(islice(remaining, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str,
        output_format: str = "all",
        batch_size: int = DEFAULT_BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
        *,
        progress: bool = False,
    ) -> None:
        """One sentence per line, its tokens separated by spaces, to an HDF5 file, which appears when it is complete.

        A dataset is named by the number of its line, or by the sentence itself with `use_sentence_keys`. The dataset
        `sentence_to_index` has the numbers of all sentences as JSON, unless `forget_sentences`.
        output_format: "all" layers (L+1, T, 2D), the "top" layer or their "average" (T, 2D).
        """
        from bilmo.store.hdf5_file import HDF5Writer  # imported here, because h5py takes a moment

        if output_format not in FORMATS:
            raise ConfigError(f"output_format is {output_format!r}; accepted: {', '.join(FORMATS)}")
        with input_file:
            sentences = [line.strip() for line in input_file]
        blank = [number for number, sentence in enumerate(sentences) if not sentence]
        if blank:
            raise ConfigError(f"the input file has blank lines, at {blank[:10]} (counted from 0); remove them")
        if use_sentence_keys:
            repeated = len(sentences) - len(set(sentences))
            if repeated:
                raise ConfigError(f"{repeated} sentences occur twice, so they cannot be keys; leave out the option")
            slashed = [sentence for sentence in sentences if "/" in sentence or sentence == "."]
            if slashed:
                raise ConfigError(f"{slashed[0]!r} contains a slash, which HDF5 does not allow in a key")
        keys = sentences if use_sentence_keys else [str(number) for number in range(len(sentences))]
        vectors = self.embed_sentences((sentence.split() for sentence in sentences), batch_size)
        with new_file(Path(output_file_path)) as partial, HDF5Writer(partial) as new:
            with advancing("embedding", len(sentences), show=progress) as advance:
                for key, layers in zip(keys, vectors, strict=True):
                    with new.writing() as file:
                        file.create_dataset(key, data=_shown(layers, output_format), dtype="float32")
                    advance(1)
            if not forget_sentences and not use_sentence_keys:
                self._write_index(new, dict(zip(sentences, keys, strict=True)))

    def _write_index(self, new: Any, index: dict[str, str]) -> None:
        import h5py

        with new.writing() as file:
            stored = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
            stored[0] = json.dumps(index)


def _shown(layers: Vectors, output_format: str) -> Vectors:
    if output_format == "top":
        return np.asarray(layers[-1])
    return np.asarray(layers.mean(axis=0), dtype=np.float32) if output_format == "average" else layers
