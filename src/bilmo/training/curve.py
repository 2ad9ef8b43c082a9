"""The learning curve of a run as an SVG picture: training and held-out perplexity by step.

Knows: train.jsonl. Blind to: how a run works.
"""

from __future__ import annotations

import math
from pathlib import Path

from bilmo.store.atomic import new_file
from bilmo.training.log import read_log

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 64, 16, 36, 40
POINTS = 240
"""Maximum number of points of the training curve; each is the mean of the steps around it."""

Curve = list[tuple[float, float]]
"""(step, perplexity)"""


def draw(log: Path, picture: Path) -> None:
    """Draw the steps and evaluations in the log."""
    trained, held_out = read(log)
    with new_file(picture) as partial:
        partial.write_text(svg(trained, held_out), encoding="utf-8", newline="\n")


def read(log: Path) -> tuple[Curve, Curve]:
    """Training perplexity, smoothed, and held-out perplexity."""
    losses: dict[int, float] = {}
    evaluations: dict[int, float] = {}
    for entry in read_log(log):
        if entry["event"] == "evaluation":
            evaluations[entry["number"]] = math.inf if entry["mean"] is None else entry["mean"]
        elif entry["loss"] is not None and not entry.get("skipped"):
            losses[entry["number"]] = entry["loss"]
    steps = sorted(losses)
    size = max(1, math.ceil(len(steps) / POINTS))
    pieces = [steps[at : at + size] for at in range(0, len(steps), size)]
    means = [(piece[len(piece) // 2], sum(losses[n] for n in piece) / len(piece)) for piece in pieces]
    trained = [(float(n), math.exp(loss)) for n, loss in means if loss < 50]
    return trained, [(float(n), value) for n, value in sorted(evaluations.items()) if value < math.exp(50)]


def svg(trained: Curve, held_out: Curve) -> str:
    """Both curves by step, with a logarithmic axis of perplexity."""
    points = trained + held_out
    if not points:
        points = [(0, 1), (1, 10)]
    last = max(1.0, *(n for n, _ in points))
    low, high = (f(math.log10(y) for _, y in points) for f in (min, max))
    low, high = (low, high) if high - low > 0.1 else (low - 0.1, high + 0.1)

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    def y(perplexity: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(perplexity)) / (high - low)

    def path(curve: Curve) -> str:
        return " ".join(f"{x(n):.1f},{y(value):.1f}" for n, value in curve)

    marks = [m * 10**k for k in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
    grid = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(m):.1f}" y2="{y(m):.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y(m) + 4:.1f}" text-anchor="end">{m:,g}</text>'
        for m in marks
        if low <= math.log10(m) <= high
    )
    ticks = "".join(
        f'<text x="{x(last * k / 4):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{last * k / 4:,.0f}</text>'
        for k in range(5)
    )
    best = min((value for _, value in held_out), default=math.nan)
    dots = "".join(f'<circle cx="{x(n):.1f}" cy="{y(value):.1f}" r="2.5"/>' for n, value in held_out)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="perplexity by step; best on held-out text {best:.2f}">\n'
        "<style>text{font:12px system-ui,sans-serif;fill:#444}.grid{stroke:#8883}polyline{fill:none;stroke-width:1.5}"
        ".train{stroke:#999}.held-out{stroke:#c2410c;stroke-width:2}circle,.name{fill:#c2410c}"
        "@media(prefers-color-scheme:dark){text{fill:#ccc}.held-out{stroke:#fb923c}"
        "circle,.name{fill:#fb923c}}</style>\n"
        f"{grid}{ticks}\n"
        f'<polyline class="train" points="{path(trained)}"/>\n'
        f'<polyline class="held-out" points="{path(held_out)}"/>{dots}\n'
        f'<text x="{LEFT}" y="20">perplexity by step: training text, and </text>'
        f'<text class="name" x="{LEFT + 232}" y="20">held-out text (best {best:.1f})</text>\n</svg>\n'
    )
