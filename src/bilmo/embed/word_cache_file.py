"""A file of word vectors without context, computed beforehand for one model: safetensors.

Knows: Bundle, safetensors. Blind to: how vectors are made, old formats.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bilmo.errors import DamagedFile, WeightsError
from bilmo.net.config import Precision
from bilmo.store.atomic import new_file
from bilmo.store.bundle import Bundle

WORDS, VECTORS = "words", "vectors"
"""Names of the tensors: words in UTF-8, separated by line ends; and their vectors (words, width)."""

WordVectors = tuple[list[str], NDArray[np.float32]]
"""Words, and one vector for each."""


def write(path: Path, words: Sequence[str], vectors: NDArray[np.float32], bundle: Bundle, precision: Precision) -> None:
    """Save words, none of which contains a line end, and their vectors; the file appears only when it is complete."""
    text = np.frombuffer("\n".join(words).encode("utf-8", "surrogatepass"), dtype=np.uint8)
    with new_file(path) as partial:
        save_file({WORDS: text, VECTORS: vectors}, partial, {"model": _encoder(bundle), "precision": precision})


def read(path: Path, bundle: Bundle, precision: Precision) -> WordVectors:
    """The words and one vector for each; a file that was made for another model or precision is refused."""
    try:
        with safe_open(path, framework="np") as file:
            made = file.metadata() or {}
            if not {WORDS, VECTORS} <= set(file.keys()) or "model" not in made:
                raise WeightsError(f"{path}: is not a file of word vectors made by `bilmo word-cache`")
            if made["model"] != _encoder(bundle):
                raise WeightsError(
                    f"{path}: these word vectors belong to another model. Make them again with `bilmo word-cache`."
                )
            if made.get("precision") != precision:
                raise WeightsError(
                    f"{path}: was made with precision {made.get('precision')}, but the model is loaded with "
                    f"{precision}. Make it again with `bilmo word-cache --precision {precision}`."
                )
            words = file.get_tensor(WORDS).tobytes().decode("utf-8", "surrogatepass").split("\n")
            vectors = file.get_tensor(VECTORS)
    except (SafetensorError, OSError, UnicodeDecodeError) as error:
        raise DamagedFile(
            f"{path}: cannot be read as safetensors ({error}). Make it again with `bilmo word-cache`."
        ) from None
    if vectors.dtype != np.float32 or vectors.shape != (len(words), bundle.config.width):
        raise DamagedFile(
            f"{path}: {len(words)} words and vectors of shape {vectors.shape}; each word needs one of width "
            f"{bundle.config.width}. Make it again with `bilmo word-cache`."
        )
    return words, vectors


def _encoder(bundle: Bundle) -> str:
    """A hash of everything that a word's vector depends on: the word encoder, its characters and vocabulary."""
    parts = bundle.config.words
    names = (bundle.chars.lines() if bundle.chars else [], bundle.vocab.words if bundle.vocab and parts.table else ())
    found = hashlib.sha256(repr((parts, bundle.config.width, names)).encode("utf-8", "surrogatepass"))
    for name, value in sorted(bundle.weights.items()):
        if name.startswith("words."):
            found.update(name.encode())
            found.update(value.contiguous().numpy().data)
    return found.hexdigest()
