"""The learned layer weights as a small SVG.

Knows: LearnedMix. Blind to: files, networks.
"""

from __future__ import annotations

from collections.abc import Sequence

from bilmo.tasks.network.input import LearnedMix

BAR, ROW, LEFT, TOP = 300, 24, 90, 34
"""Pixels: the longest bar, the height of a row, the space for names, the space for a heading."""


def layer_weights_svg(mixes: Sequence[LearnedMix]) -> str:
    """One bar per layer of each mix."""
    parts = []
    y = 0
    for mix in mixes:
        parts.append(f'<text x="8" y="{y + 22}" font-weight="bold">{mix.where}, scale {mix.scale:.3f}</text>')
        y += TOP
        for number, share in enumerate(mix.shares):
            name = "word" if number == 0 else f"layer {number}"
            parts.append(f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{name}</text>')
            parts.append(f'<rect x="{LEFT}" y="{y + 3}" width="{BAR * share:.1f}" height="{ROW - 6}" fill="#3b6ea5"/>')
            parts.append(f'<text x="{LEFT + BAR * share + 6:.1f}" y="{y + 16}">{share:.1%}</text>')
            y += ROW
    size = f'width="{LEFT + BAR + 70}" height="{y + 10}"'
    style = 'font-family="sans-serif" font-size="13"'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n'
