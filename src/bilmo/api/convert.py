"""`bilmo.convert`: a model of any readable layout to a layout that bilmo writes.

Knows: layouts. Blind to: the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bilmo import progress as bars
from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts
from bilmo.formats.open import Target
from bilmo.store.model_folder import DType


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion, and notes for the user."""

    notes: list[str]
    """Notes on how the old model was read: unused tensors, assumed values."""
    dropped: list[str]
    """Parts of the model for which the new layout has no place."""


def convert(
    old: str | PathLike[str],
    new: str | PathLike[str],
    *,
    to: Target = "bilmo",
    dtype: DType = "float32",
    progress: bool = False,
) -> Conversion:
    """Write a model in another layout, as `bilmo convert` does. Weights keep every bit, unless you choose float16.

    old: the name or the path of a model.
    new: the folder to create; it must not exist yet.
    to: "bilmo" for bilmo's model folder, with the settled start state of sentences; "allennlp" for options.json and
        weights.hdf5, which AllenNLP and bilm-tf read.
    dtype: "float16" halves the size and keeps about three digits; only for bilmo's model folder.
    progress: show on a terminal or in a notebook what is done.
    """
    layouts.check_target(Path(new), to, dtype)
    with bars.working("reading the model", show=progress):
        bundle = layouts.read(Path(old))
    if to == "bilmo":
        with bars.working("computing the settled start state", show=progress):
            bundle = settled(bundle)
    with bars.working("writing the new model", show=progress):
        dropped = layouts.write(bundle, Path(new), to, dtype)
    return Conversion(bundle.notes, dropped)
