"""One table ties the tensors of the old HDF5 layout to ours, for reading and for writing.

An old name stands for the same tensor in a weights file and in a TensorFlow checkpoint; `old_name` makes the
two spellings one.

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
from bilmo.store.bundle import Shape, compare

Array = NDArray[Any]


class Source(Protocol):
    """Tensors on disk, each read when asked for."""

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """Name to shape, without reading a value."""

    def read(self, name: str) -> Array:
        """The values of one tensor."""


@dataclass(frozen=True)
class Tie:
    """One old tensor, the shape it must have, and the way to ours and back. Both ways keep every bit."""

    old: str
    shape: Shape
    ours: tuple[str, ...]
    there: Callable[[Array], tuple[Array, ...]]
    back: Callable[..., Array]


def same(old: str, shape: Shape, ours: str) -> Tie:
    """The same tensor under another name."""
    return Tie(old, shape, (ours,), lambda a: (a,), lambda a: a)


def turned(old: str, shape: Shape, ours: str) -> Tie:
    """A dense matrix: the old systems store (in, out), torch (out, in)."""
    return Tie(old, shape, (ours,), lambda a: (a.T,), lambda a: a.T)


def negated(tie: Tie) -> Tie:
    """The same tie with the sign turned, both ways."""
    return replace(tie, there=lambda a: tuple(-part for part in tie.there(a)), back=lambda *a: -tie.back(*a))


def kernel(old: str, shape: Shape, ours: str) -> Tie:
    """A convolution: (1, width, in, out) against (out, in, width)."""
    return Tie(old, shape, (ours,), lambda a: (a[0].transpose(2, 1, 0),), lambda a: a.transpose(2, 1, 0)[None])


def reorder(a: Array, order: tuple[int, ...]) -> Array:
    """Put the four gate blocks of the first axis in another order."""
    return np.concatenate([np.split(a, 4)[k] for k in order])


TO_OURS, TO_OLD = (0, 2, 3, 1), (0, 3, 1, 2)
"""Old gates are in, new, forget, out; ours are in, forget, out, new."""


def gates(old: str, width: int, cells: int, ours: str) -> Tie:
    """The one kernel over [input ; previous output], split into the two halves that we keep apart."""

    def there(a: Array) -> tuple[Array, ...]:
        rows = reorder(a.T, TO_OURS)  # (4H, 2P)
        return rows[:, :width], rows[:, width:]

    def back(into: Array, recur: Array) -> Array:
        return reorder(np.concatenate([into, recur], axis=1), TO_OLD).T

    return Tie(old, (2 * width, 4 * cells), (f"{ours}.input", f"{ours}.recur"), there, back)


def gate_bias(old: str, cells: int, ours: str) -> Tie:
    """The bias, without the 1 that both systems add to the forget gate at run time."""
    return Tie(
        old,
        (4 * cells,),
        (f"{ours}.bias",),
        lambda a: (reorder(a, TO_OURS),),
        lambda a: reorder(a, TO_OLD),
    )


NUMBERS = {"forward": 0, "backward": 1}
BYTES = ByteChars.rows


def ties(config: BiLMConfig, *, softmax_words: int | None) -> list[Tie]:
    """Every tensor that a model of this shape has in the old layout."""
    table: list[Tie] = []
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
            table.append(turned(f"{old}/W_transform", total, f"{ours}.transform.weight"))
            table.append(same(f"{old}/b_transform", total[:1], f"{ours}.transform.bias"))
            # What the old files call "carry" lets the transformed input through, ours the input: the sign turns.
            table.append(negated(turned(f"{old}/W_carry", total, f"{ours}.carry.weight")))
            table.append(negated(same(f"{old}/b_carry", total[:1], f"{ours}.carry.bias")))
        if words.project:
            table.append(turned("CNN_proj/W_proj", (chars.outputs, width), "words.project.weight"))
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
                table.append(turned(f"{old}/W_P_0", (cell.cells, width), f"{ours}.project"))
    if softmax_words is not None:
        table.append(same("softmax/W", (softmax_words, width), "softmax.weight"))
        table.append(same("softmax/b", (softmax_words,), "softmax.bias"))
    return table


RNN_NAME = re.compile(
    r"(?:RNN_(?P<direction>[01])/)?(?:RNN|rnn)/(?:(?:MultiRNNCell|multi_rnn_cell)/(?:Cell|cell_)(?P<layer>\d+)/)?"
    r"(?:LSTMCell|lstm_cell)/(?P<part>W_0|B|W_P_0|kernel|bias|projection/kernel)"
)
PARTS = {"kernel": "W_0", "bias": "B", "projection/kernel": "W_P_0"}


def old_name(name: str) -> str:
    """The one old name of a tensor: a checkpoint spells it otherwise, as does a network of one layer or direction.

    >>> old_name("lm/RNN_1/rnn/multi_rnn_cell/cell_0/lstm_cell/kernel")
    'RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_0'
    >>> old_name("rnn/LSTMCell/bias")
    'RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B'
    """
    name = name.removeprefix("lm/")
    found = RNN_NAME.fullmatch(name)
    if not found:
        return name
    part = PARTS.get(found["part"], found["part"])
    return f"RNN_{found['direction'] or 0}/RNN/MultiRNNCell/Cell{int(found['layer'] or 0)}/LSTMCell/{part}"


class OldSource:
    """A source under the one old name of each tensor, its values as float32, its peculiarities ironed out."""

    def __init__(self, source: Source, where: str) -> None:
        self._source, self._where = source, where
        self._names: dict[str, str] = {}
        for name in source.shapes:
            if (other := self._names.setdefault(old_name(name), name)) != name:
                raise WeightsError(f"{where}: {other} and {name} are two spellings of one tensor; which is meant?")
        if "softmax/W" not in self._names and {"softmax/b", "embedding"} <= self._names.keys():
            self._names["softmax/W"] = self._names["embedding"]  # trained with share_embedding_softmax
        table = source.shapes[self._names["char_embed"]] if "char_embed" in self._names else (BYTES,)
        rows = table[0] if table else 0
        if rows not in (BYTES, BYTES + 1):
            raise WeightsError(
                f"{where}: the character table char_embed has {rows} rows; known are {BYTES} (256 bytes and five "
                f"marks) and {BYTES + 1} (a padding row in front). A table of other characters would need its list "
                "of characters, which this layout does not hold."
            )
        self.padded = rows != BYTES
        """The character table has a row for "no token" in front; ours, like most files', begins with byte 0."""

    @property
    def shapes(self) -> dict[str, Shape]:
        """Old name to shape."""
        shapes = {old: tuple(self._source.shapes[name]) for old, name in self._names.items()}
        return shapes | {"char_embed": (BYTES, *shapes["char_embed"][1:])} if self.padded else shapes

    def read(self, name: str) -> Array:
        """The values of one tensor, checked to be numbers."""
        values = as_numbers(self._source.read(self._names[name]), f"{self._where}: {self._names[name]}")
        return values[1:] if self.padded and name == "char_embed" else values


def as_numbers(values: Array, where: str) -> Array:
    """Values as float32; anything that is not a finite number is refused."""
    if not np.issubdtype(values.dtype, np.floating):
        raise WeightsError(f"{where} holds {values.dtype}; weights are floating-point numbers")
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused below
        values = values.astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        bad = int(values.size - np.isfinite(values).sum())
        raise WeightsError(f"{where}: {bad} of {values.size} values are not finite. The file is damaged.")
    return values


def read_weights(source: Source, table: list[Tie], where: str) -> tuple[dict[str, Tensor], list[str]]:
    """Our weights, and the names that nothing used. Shapes are checked before any value is read."""
    unused = compare(source.shapes, {tie.old: tie.shape for tie in table}, where=where)
    weights = {}
    for tie in table:
        for ours, values in zip(tie.ours, tie.there(source.read(tie.old)), strict=True):
            weights[ours] = torch.from_numpy(np.ascontiguousarray(values))
    return weights, unused


def old_weights(weights: dict[str, Tensor], table: list[Tie]) -> dict[str, Array]:
    """Old tensors from our weights: the way back."""
    return {tie.old: np.ascontiguousarray(tie.back(*(weights[name].numpy() for name in tie.ours))) for tie in table}
