"""`bilmo convert`: any readable layout to one that bilmo writes."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

import typer

from bilmo.cli.embed import DType


class To(StrEnum):
    """Layouts that can be written."""

    bilmo = "bilmo"
    allennlp = "allennlp"


def convert(
    old: Path = typer.Argument(help="A model of any layout."),
    new: Path = typer.Argument(help="The folder to make; it must not exist yet."),
    to: To = typer.Option(
        To.bilmo, help="`bilmo`: our folder. `allennlp`: options.json and HDF5, for AllenNLP and bilm-tf."
    ),
    dtype: DType = typer.Option(DType.float32, help="`float16`: half the size, three digits a weight; for `bilmo`."),
) -> None:
    """Rewrite a model in another layout.

    Weights keep every bit, unless float16 is asked for. To `bilmo`, the settled start of sentences is computed and
    stored with the model. What options.json and HDF5 cannot hold is refused, or named as dropped (softmax, settled
    start).
    """
    from bilmo.cli.show import tables as show
    from bilmo.embed.embedder import settled
    from bilmo.formats import open as layouts

    bundle = layouts.read(old)
    if to is To.bilmo:
        bundle = settled(bundle)
    dropped = layouts.write(bundle, new, to.value, dtype.value)
    show.notes(bundle.notes)
    for what in dropped:
        print(f"dropped: {what}; this layout has no place for it", file=sys.stderr)
    print(f"{new}: written")
