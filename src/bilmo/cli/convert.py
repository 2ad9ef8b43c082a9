"""`bilmo convert` and `bilmo export`: a model to another layout, or to an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.options import DType, Layout, Model, Precision


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


def export(
    model: Model,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="ONNX file to create, such as model.onnx; it must not exist yet.")
    ],
    precision: Annotated[
        Precision,
        typer.Option(help="`int8` stores most weights as 8-bit integers: smaller, with slightly different vectors."),
    ] = Precision.float32,
) -> None:
    """Write a model as one ONNX file, which runs without torch.

    The file contains the word encoder, the network and the settled start state. It takes any number of sentences of any
    length. `bilmo.plug.onnx.load` embeds with it; it needs only numpy, onnxruntime and regex.
    """
    from bilmo.plug import onnx
    from bilmo.progress import working

    with working("writing the ONNX file"):
        onnx.export(model, output, precision=precision.value)
    print(f"{output}: written, {output.stat().st_size / 1e6:,.1f} MB")
