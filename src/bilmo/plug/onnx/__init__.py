"""ONNX: write a model as one file, and embed with that file by onnxruntime, without torch.

>>> from bilmo.plug import onnx                                                      # doctest: +SKIP
>>> onnx.export("en", "model.onnx")                                                  # doctest: +SKIP
>>> onnx.load("model.onnx").embed("He sat on the bank.")                             # doctest: +SKIP

Knows: convert, embedder. Blind to: everything else.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from bilmo.plug.onnx.embedder import OnnxEmbedder as OnnxEmbedder
from bilmo.plug.onnx.embedder import load as load

if TYPE_CHECKING:
    from bilmo.embed.embedder import Embedder
    from bilmo.net.config import Precision


def export(
    model: str | PathLike[str] | Embedder, file: str | PathLike[str], *, precision: Precision = "float32"
) -> None:
    """Write a model as an ONNX file, as `bilmo export` does.

    model: name or path of a model, or an Embedder; its settled start becomes part of the file.
    file: the file to create; it must not exist yet.
    precision: "int8" makes the file smaller; its vectors are close to those of "float32", but not equal.
    """
    from bilmo.plug.onnx.convert import write  # needs torch, which `load` does not

    write(model, file, precision)
