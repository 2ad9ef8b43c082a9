"""A file of word vectors without context, computed beforehand for one model: safetensors.

Knows: Bundle, safetensors. Blind to: how vectors are made, old formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bilmo.errors import DamagedFile, WeightsError
from bilmo.net.config import Precision
from bilmo.store.bundle import Bundle
from bilmo.store.tensors_file import finite_weights, read_hashed, write_hashed

WORDS, VECTORS = "words", "vectors"
"""Names of the tensors: words in UTF-8, separated by line ends; and their vectors (words, width)."""
REMEDY = "Make it again with `bilmo word-cache`."

WordVectors = tuple[list[str], NDArray[np.float32]]
"""Words, and one vector for each."""


def write(path: Path, words: Sequence[str], vectors: NDArray[np.float32], bundle: Bundle, precision: Precision) -> None:
    """Save words, none of which contains a line end, and their vectors; the file appears only when it is complete."""
    text = bytearray("\n".join(words).encode("utf-8", "surrogatepass"))
    tensors = {WORDS: torch.frombuffer(text, dtype=torch.uint8), VECTORS: torch.from_numpy(vectors)}
    write_hashed(path, tensors, {"model": bundle.identity("words"), "precision": precision})


def read(path: Path, bundle: Bundle, precision: Precision) -> WordVectors:
    """The words and one vector for each; a file that was made for another model or precision is refused."""
    tensors, made = read_hashed(path, REMEDY)
    if tensors.keys() != {WORDS, VECTORS} or "model" not in made:
        raise WeightsError(f"{path}: is not a file of word vectors made by `bilmo word-cache`")
    if made["model"] != bundle.identity("words"):
        raise WeightsError(
            f"{path}: these word vectors belong to another model. Make them again with `bilmo word-cache`."
        )
    if made.get("precision") != precision:
        raise WeightsError(
            f"{path}: was made with precision {made.get('precision')}, but the model is loaded with "
            f"{precision}. Make it again with `bilmo word-cache --precision {precision}`."
        )
    try:
        words = tensors[WORDS].numpy().tobytes().decode("utf-8", "surrogatepass").split("\n")
    except UnicodeDecodeError as error:
        raise DamagedFile(f"{path}: its words cannot be read ({error}). {REMEDY}") from None
    vectors = finite_weights(tensors[VECTORS], f"{path}: {VECTORS}").numpy()
    if vectors.shape != (len(words), bundle.config.width):
        raise DamagedFile(
            f"{path}: {len(words)} words and vectors of shape {vectors.shape}; each word needs one of width "
            f"{bundle.config.width}. {REMEDY}"
        )
    return words, vectors
