"""The table that maps the tensors of bilm-tf's layout to ours, for reading and for writing.

Weights files and TensorFlow checkpoints spell the names differently; `canonical_name` makes them the same.

Knows: the old names, BiLMConfig. Blind to: files.
"""

# P projection width = our width, H cells, F filters, d character width, V words

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilmo.errors import WeightsError
from bilmo.ids.chars import ByteChars
from bilmo.net.config import BiLMConfig
from bilmo.store.bundle import Shape, check_shapes
from bilmo.store.validate import finite_float32

Array = NDArray[Any]


class Source(Protocol):
    """Tensors on disk, each read on demand."""

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """The shape of every tensor, without reading values."""

    def read(self, name: str) -> Array:
        """The values of one tensor."""


@dataclass(frozen=True)
class TensorMap:
    """One old tensor, the shape it must have, and its conversion to our tensors and back, exact to the bit."""

    old: str
    shape: Shape
    ours: tuple[str, ...]
    to_ours: Callable[[Array], tuple[Array, ...]]
    to_old: Callable[..., Array]


def same(old: str, shape: Shape, ours: str) -> TensorMap:
    """The same tensor under another name."""
    return TensorMap(old, shape, (ours,), lambda a: (a,), lambda a: a)


def transposed(old: str, shape: Shape, ours: str) -> TensorMap:
    """A dense matrix: the old systems store (in, out), torch (out, in)."""
    return TensorMap(old, shape, (ours,), lambda a: (a.T,), lambda a: a.T)


def negated(tensor: TensorMap) -> TensorMap:
    """The same conversion with the sign changed."""
    return replace(
        tensor,
        to_ours=lambda a: tuple(-part for part in tensor.to_ours(a)),
        to_old=lambda *a: -tensor.to_old(*a),
    )


def kernel(old: str, shape: Shape, ours: str) -> TensorMap:
    """A convolution: (1, width, in, out) in the old files, (out, in, width) in ours."""
    return TensorMap(old, shape, (ours,), lambda a: (a[0].transpose(2, 1, 0),), lambda a: a.transpose(2, 1, 0)[None])


def reorder(a: Array, order: tuple[int, ...]) -> Array:
    """Put the four gate blocks of the first axis in another order."""
    return np.concatenate([np.split(a, 4)[k] for k in order])


TO_OURS, TO_OLD = (0, 2, 3, 1), (0, 3, 1, 2)
"""Old gates are in, new, forget, out; ours are in, forget, out, new."""


def gates(old: str, width: int, cells: int, ours: str) -> TensorMap:
    """The kernel over [input ; previous output], split into the two matrices that we keep."""

    def to_ours(a: Array) -> tuple[Array, ...]:
        rows = reorder(a.T, TO_OURS)  # (4H, 2P)
        return rows[:, :width], rows[:, width:]

    def to_old(into: Array, recur: Array) -> Array:
        return reorder(np.concatenate([into, recur], axis=1), TO_OLD).T

    return TensorMap(old, (2 * width, 4 * cells), (f"{ours}.input", f"{ours}.recur"), to_ours, to_old)


def gate_bias(old: str, cells: int, ours: str) -> TensorMap:
    """The bias, without the 1 that is added to the forget gate at run time."""
    return TensorMap(
        old,
        (4 * cells,),
        (f"{ours}.bias",),
        lambda a: (reorder(a, TO_OURS),),
        lambda a: reorder(a, TO_OLD),
    )


NUMBERS = {"forward": 0, "backward": 1}
BYTES = ByteChars.rows


def weight_map(config: BiLMConfig, *, softmax_words: int | None) -> list[TensorMap]:
    """Every tensor that a model of this shape has in the old layout, and ours for it."""
    table: list[TensorMap] = []
    words, cell, width = config.words, config.cell, config.width
    if words.chars:
        chars = words.chars
        total = (chars.outputs, chars.outputs)
        table.append(same("char_embed", (chars.rows, chars.width), "words.chars.table"))
        for i, (w, n) in enumerate(chars.filters):
            table.append(kernel(f"CNN/W_cnn_{i}", (1, w, chars.width, n), f"words.chars.filters.{i}.weight"))
            table.append(same(f"CNN/b_cnn_{i}", (n,), f"words.chars.filters.{i}.bias"))
        for k in range(chars.highways):
            old, ours = f"CNN_high_{k}", f"words.chars.highways.{k}"
            table.append(transposed(f"{old}/W_transform", total, f"{ours}.transform.weight"))
            table.append(same(f"{old}/b_transform", total[:1], f"{ours}.transform.bias"))
            # The old "carry" gate passes the transformed input, ours the input itself: the sign changes.
            table.append(negated(transposed(f"{old}/W_carry", total, f"{ours}.carry.weight")))
            table.append(negated(same(f"{old}/b_carry", total[:1], f"{ours}.carry.bias")))
        if words.project:
            table.append(transposed("CNN_proj/W_proj", (chars.outputs, width), "words.project.weight"))
            table.append(same("CNN_proj/b_proj", (width,), "words.project.bias"))
    if words.table:
        table.append(same("embedding", (words.table.rows, words.table.width), "words.table.weight"))
    for direction in config.directions:
        for layer in range(config.layers):
            old = f"RNN_{NUMBERS[direction]}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            ours = f"{direction}_stack.{layer}"
            table.append(gates(f"{old}/W_0", width, cell.cells, ours))
            table.append(gate_bias(f"{old}/B", cell.cells, ours))
            if cell.project:
                table.append(transposed(f"{old}/W_P_0", (cell.cells, width), f"{ours}.project"))
    if softmax_words is not None:
        table.append(same("softmax/W", (softmax_words, width), "softmax.weight"))
        table.append(same("softmax/b", (softmax_words,), "softmax.bias"))
    return table


RNN_NAME = re.compile(
    r"(?:RNN_(?P<direction>[01])/)?(?:RNN|rnn)/(?:(?:MultiRNNCell|multi_rnn_cell)/(?:Cell|cell_)(?P<layer>[0-9]{1,4})/)?"
    r"(?:LSTMCell|lstm_cell)/(?P<part>W_0|B|W_P_0|kernel|bias|projection/kernel)"
)
PARTS = {"kernel": "W_0", "bias": "B", "projection/kernel": "W_P_0"}


def canonical_name(name: str) -> str:
    """The HDF5 name of a tensor; checkpoints, and networks with one layer or direction, spell it differently.

    >>> canonical_name("lm/RNN_1/rnn/multi_rnn_cell/cell_0/lstm_cell/kernel")
    'RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_0'
    >>> canonical_name("rnn/LSTMCell/bias")
    'RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B'
    """
    name = name.removeprefix("lm/")
    found = RNN_NAME.fullmatch(name)
    if not found:
        return name
    part = PARTS.get(found["part"], found["part"])
    return f"RNN_{found['direction'] or 0}/RNN/MultiRNNCell/Cell{int(found['layer'] or 0)}/LSTMCell/{part}"


class CanonicalSource:
    """A source with canonical names and float32 values, its variants made the same."""

    def __init__(self, source: Source, where: str) -> None:
        self._source, self._where = source, where
        self._names: dict[str, str] = {}
        for name in source.shapes:
            if (other := self._names.setdefault(canonical_name(name), name)) != name:
                raise WeightsError(f"{where}: {other} and {name} are two names of the same tensor; remove one of them")
        if "softmax/W" not in self._names and {"softmax/b", "embedding"} <= self._names.keys():
            self._names["softmax/W"] = self._names["embedding"]  # trained with share_embedding_softmax
        table = source.shapes[self._names["char_embed"]] if "char_embed" in self._names else (BYTES,)
        rows = table[0] if table else 0
        if rows not in (BYTES, BYTES + 1):
            raise WeightsError(
                f"{where}: the character table char_embed has {rows} rows; accepted: {BYTES} (256 bytes and five "
                f"marks) and {BYTES + 1} (with a padding row first). A table of other characters would need a list "
                "of its characters, which this layout does not contain."
            )
        self.padded = rows != BYTES
        """The character table starts with a row for padding; ours, as in most files, starts with byte 0."""

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of every tensor, by its canonical name."""
        shapes = {old: tuple(self._source.shapes[name]) for old, name in self._names.items()}
        return shapes | {"char_embed": (BYTES, *shapes["char_embed"][1:])} if self.padded else shapes

    def read(self, name: str) -> Array:
        """The values of one tensor; they must be finite numbers."""
        values = finite_float32(self._source.read(self._names[name]), f"{self._where}: {self._names[name]}")
        return values[1:] if self.padded and name == "char_embed" else values


def read_weights(source: Source, table: list[TensorMap], where: str) -> tuple[dict[str, Tensor], list[str]]:
    """Our weights, and the names of tensors that were not used. Shapes are checked before values are read."""
    unused = check_shapes(source.shapes, {tensor.old: tensor.shape for tensor in table}, where=where)
    weights = {}
    for tensor in table:
        for ours, values in zip(tensor.ours, tensor.to_ours(source.read(tensor.old)), strict=True):
            weights[ours] = torch.from_numpy(np.ascontiguousarray(values))
    return weights, unused


def old_arrays(weights: dict[str, Tensor], table: list[TensorMap]) -> dict[str, Array]:
    """The old tensors that our weights correspond to."""
    return {
        tensor.old: np.ascontiguousarray(tensor.to_old(*(weights[name].numpy() for name in tensor.ours)))
        for tensor in table
    }
