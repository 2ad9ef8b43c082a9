"""Similarities of words as a table of coloured cells: of two sentences, or of one sentence in every layer.

Knows: SVG. Blind to: models.
"""

# R rows, C columns

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bilmo.sense.draw.svg import MARGIN, SIZE, Drawing, short, width_of

Cosines = NDArray[np.floating]

CELL = 34
"""Pixels of a cell with a number in it."""
SMALL = 20
"""Pixels of a cell without a number."""
STRONGEST = 0.85
"""Opacity of the strongest colour, on which a number can still be read."""
LAYERS_IN_ROW = 3


def pair(rows: Sequence[str], columns: Sequence[str], cosines: Cosines, note: str) -> str:
    """The words of two sentences; `cosines` is (R, C), `note` is written below."""
    drawing = Drawing()
    bottom = _table(drawing, MARGIN, MARGIN, rows, columns, cosines, scale_of(cosines), CELL)
    drawing.text(MARGIN, bottom + 24, note, "note")
    drawing.text(MARGIN, bottom + 42, legend(cosines), "note")
    return drawing.svg()


def layers(tokens: Sequence[str], names: Sequence[str], cosines: Sequence[Cosines], note: str) -> str:
    """The words of one sentence with each other, once for each layer: a name and (R, R) for each."""
    drawing = Drawing()
    left = bottom = float(MARGIN)
    top = MARGIN + 20.0
    for number, (name, values) in enumerate(zip(names, cosines, strict=True)):
        if number and number % LAYERS_IN_ROW == 0:
            left, top = float(MARGIN), bottom + 40
        drawing.text(left, top - 4, name, "title")
        others = values[~np.eye(len(values), dtype=bool)] if len(values) > 1 else values
        below = _table(drawing, left, top, tokens, tokens, values, scale_of(others), SMALL)
        bottom = max(bottom, below)
        left += _room(tokens) + len(tokens) * SMALL + 32
    drawing.text(MARGIN, bottom + 24, note, "note")
    return drawing.svg()


def scale_of(values: Cosines) -> tuple[float, float]:
    """The cosines of the weakest and of the strongest colour. Around zero, each sign has its own colour."""
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    return (0.0, max(abs(low), high)) if low < 0 else (low, high)


def legend(values: Cosines) -> str:
    """The legend of the colours."""
    low, high = scale_of(values)
    signs = " Orange: below zero." if values.size and values.min() < 0 else ""
    return f"No colour: cosine {low:.2f}. Strongest colour: {high:.2f}.{signs}"


def _table(
    drawing: Drawing,
    left: float,
    top: float,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Cosines,
    scale: tuple[float, float],
    size: float,
) -> float:
    """Draw labels and cells; returns where the table ends."""
    x0, y0 = left + _room(rows), top + _room(columns)
    for number, token in enumerate(columns):
        drawing.text(x0 + (number + 0.5) * size + SIZE / 3, y0 - 6, token, turned=True)
    low, high = scale
    for number, token in enumerate(rows):
        y = y0 + number * size
        drawing.text(x0 - 6, y + size / 2 + SIZE / 3, token, end=True)
        for other, value in enumerate(values[number]):
            share = (abs(value) if low == 0 else value - low) / max(high - low, 1e-9)
            title = f"{token} · {columns[other]}: {value:.3f}"
            kind = "down" if value < 0 else "up"
            drawing.cell(x0 + other * size, y, size - 1, kind, STRONGEST * float(np.clip(share, 0, 1)), title)
            if size >= CELL:
                drawing.centred(x0 + (other + 0.5) * size - 0.5, y + size / 2 + 4, f"{value:.2f}", "number")
    return y0 + len(rows) * size


def _room(tokens: Sequence[str]) -> float:
    """Pixels for the longest label."""
    return max((width_of(short(token)) for token in tokens), default=0) + 10
