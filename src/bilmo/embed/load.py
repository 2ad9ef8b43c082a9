"""Load a model by its path or name.

Knows: layouts, Embedder, files of word vectors. Blind to: what is embedded.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

import torch

from bilmo.embed import word_cache_file
from bilmo.embed.embedder import Embedder
from bilmo.embed.options import Start, check_precision
from bilmo.embed.texts import SPLIT_RULES
from bilmo.embed.word_cache_file import WordVectors
from bilmo.errors import WeightsError
from bilmo.formats import bilmtf_word_cache
from bilmo.formats import open as layouts
from bilmo.formats.hdf5 import is_hdf5
from bilmo.net.config import Precision
from bilmo.net.device import device_of
from bilmo.store.bundle import Bundle
from bilmo.text import dictionary as dictionaries


def load(
    path: str | PathLike[str],
    *,
    start: Start = "settled",
    lang: str = "auto",
    dictionary: str | PathLike[str] | None = None,
    batch_tokens: int | None = None,
    precision: Precision = "float32",
    device: str | torch.device = "cpu",
    word_cache: str | PathLike[str] | None = None,
) -> Embedder:
    """Load a model: an included model by its name, or a folder or file of any supported layout by its path.

    start: the state from which every sentence starts. "settled" is one stored state, so a sentence always gets the same
        vectors; "zero" is a state of zeros; "carry" continues where the previous call ended, row by row, as the old
        systems do.
    lang: how raw text is split into tokens: "spaces" (already tokenized), "en" (English), "west" (other languages with
        spaces between words), "zh" (Chinese), or "auto" (as the training text of the model; text that is already
        tokenized is kept).
    dictionary: a file of words that are never split, one per line, for Chinese text; it replaces the one that the model
        may have.
    batch_tokens: maximum number of tokens computed at once; a larger batch needs more memory, and changes vectors only
        by rounding.
    precision: "int8" computes matrix products with 8-bit integers, which makes large models faster; its vectors are
        close to those of "float32", but not equal.
    device: where the network computes: "cpu", "cuda", "cuda:1", "mps", or "auto" for a CUDA GPU if there is one. The
        vectors of two devices differ by rounding.
    word_cache: vectors of the words of a vocabulary, computed beforehand by `bilmo word-cache` or by an old system
        (HDF5 with the dataset `embedding`, and vocab.txt next to it); the word encoder computes all other words.

    A process that embeds for a long time needs up to 700 MB less with ONEDNN_PRIMITIVE_CACHE_CAPACITY=32 and
    LRU_CACHE_CAPACITY=32 in its environment. Set them before the first call; the command line does so itself.
    """
    check_precision(precision)
    device_of(device)  # a device that is missing is reported before the model is read
    words = None if dictionary is None else dictionaries.read(Path(dictionary))
    bundle = layouts.read(Path(path))
    if words is not None:
        dictionaries.check_lang(bundle.lang if lang == "auto" and bundle.lang in SPLIT_RULES else lang)
        bundle = replace(bundle, dictionary=words)
    vectors = None if word_cache is None else _word_vectors(Path(word_cache), bundle, precision)
    return Embedder(
        bundle,
        start=start,
        lang=lang,
        batch_tokens=batch_tokens,
        precision=precision,
        device=device,
        word_vectors=vectors,
    )


def _word_vectors(path: Path, bundle: Bundle, precision: Precision) -> WordVectors:
    """Word vectors that were computed beforehand, by bilmo or by an old system."""
    if not path.is_file():
        raise WeightsError(f"{path}: there is no such file of word vectors. `bilmo word-cache` creates one.")
    if is_hdf5(path):
        return bilmtf_word_cache.read(path, bundle.config.width)
    return word_cache_file.read(path, bundle, precision)
