"""`bilmo convert`: a model of any readable layout to a layout that bilmo writes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.options import DType, Layout, Model


def convert(
    old: Model,
    new: Annotated[Path, typer.Argument(help="Folder to create; it must not exist yet.")],
    to: Annotated[
        Layout,
        typer.Option(
            help="`bilmo`: a bilmo model folder. `allennlp`: options.json and weights.hdf5 for AllenNLP and bilm-tf."
        ),
    ] = Layout.bilmo,
    dtype: Annotated[
        DType, typer.Option(help="`float16` halves the size and keeps about three digits; only with `--to bilmo`.")
    ] = DType.float32,
) -> None:
    """Convert a model to another layout.

    Weights keep every bit, unless you choose float16. `--to bilmo` computes the settled start state of sentences and
    stores it. `--to allennlp` drops the softmax and the settled start state, with a note, and refuses a model that the
    layout cannot hold.
    """
    from bilmo.api import convert as api
    from bilmo.cli.show import messages

    found = api.convert(old, new, to=to.value, dtype=dtype.value, progress=True)
    messages.notes(found.notes)
    for what in found.dropped:
        messages.status(f"dropped: {what}; this layout has no place for it")
    print(f"{new}: written")
