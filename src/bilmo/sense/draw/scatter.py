"""The uses of a word as points on a map, one colour per sense.

Knows: SVG. Blind to: how uses are grouped.
"""

from __future__ import annotations

from collections.abc import Sequence

from bilmo.sense.draw.svg import COLOURS, MARGIN, Drawing

SIDE = 560
"""Pixels of the map."""


def scatter(title: str, names: Sequence[str], groups: Sequence[Sequence[tuple[float, float, str]]], note: str) -> str:
    """Points with texts, in groups with names; `note` is written below."""
    drawing = Drawing()
    drawing.text(MARGIN, MARGIN + 12, title, "title")
    top = MARGIN + 30.0
    for number, (name, points) in enumerate(zip(names, groups, strict=True)):
        drawing.point(MARGIN + 6, top + 5, f"g{number % COLOURS}", "")
        drawing.text(MARGIN + 20, top + 10, f"{number + 1} · {len(points):,} uses: {name}")
        top += 24
    top += 8
    drawing.frame(MARGIN, top, SIDE, SIDE)
    every = [point for points in groups for point in points]
    places = [[x for x, _, _ in every], [y for _, y, _ in every]]
    low = [min(values) for values in places]
    # The same scale on both axes, so that distances can be compared.
    widest = max(max(values) - min(values) for values in places)
    scale = (SIDE - 40) / widest if widest else 1.0
    for number, points in enumerate(groups):
        for x, y, text in points:
            place = MARGIN + 20 + (x - low[0]) * scale, top + SIDE - 20 - (y - low[1]) * scale
            drawing.point(*place, f"g{number % COLOURS}", text)
    drawing.text(MARGIN, top + SIDE + 24, note, "note")
    return drawing.svg()
