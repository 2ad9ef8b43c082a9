"""`bilmo export`: a model as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.options import Model, Precision


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
