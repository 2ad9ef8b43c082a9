"""From a path or a name to a model at work.

Knows: layouts, Embedder, files of word vectors. Blind to: what is embedded.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import get_args

from bilmo.embed import word_cache_file as known
from bilmo.embed.embedder import Embedder, Start
from bilmo.embed.word_cache_file import Known
from bilmo.errors import ConfigError, WeightsError
from bilmo.formats import bilmtf_word_cache as cached
from bilmo.formats import open as layouts
from bilmo.formats.hdf5 import is_hdf5
from bilmo.net.config import Precision
from bilmo.store.bundle import Bundle


def load(
    path: str | PathLike[str],
    *,
    start: Start = "settled",
    split: str = "auto",
    batch_tokens: int | None = None,
    precision: Precision = "float32",
    cache: str | PathLike[str] | None = None,
) -> Embedder:
    """Load a model: by its name one that comes with bilmo; or our folder or any old layout, packed or not.

    start: what every sentence starts from. "settled" is one state, the same for all, so that a sentence always
        has the same vectors; "zero" is no memory at all; "carry" goes on where the call before ended, row by row,
        as the old systems do.
    split: how raw text becomes tokens: "spaces" (it is split already), "en", "west", "zh", or "auto", which looks.
    batch_tokens: how many tokens are computed at once, at most; more need more memory, and change no vector.
    precision: "int8" multiplies in eight bits, which makes large models faster; its vectors are close to those of
        "float32", not equal.
    cache: vectors of the words of a vocabulary, computed beforehand by `bilmo cache` or by an old system (HDF5 with
        the dataset `embedding`, vocab.txt beside it); other words still come from the model's own word encoder.
    """
    bundle = layouts.read(Path(path))
    if precision not in get_args(Precision):
        raise ConfigError(f"precision is {precision!r}; known are {', '.join(get_args(Precision))}")
    vectors = None if cache is None else _known(Path(cache), bundle, precision)
    return Embedder(bundle, start=start, split=split, batch_tokens=batch_tokens, precision=precision, known=vectors)


def _known(path: Path, bundle: Bundle, precision: Precision) -> Known:
    """Word vectors that were computed beforehand, by bilmo or by an old system."""
    if not path.is_file():
        raise WeightsError(f"{path}: there is no such file of word vectors. `bilmo cache` makes one.")
    return cached.read(path, bundle.config.width) if is_hdf5(path) else known.read(path, bundle, precision)
