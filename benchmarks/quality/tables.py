"""The recorded fits as the paper's tables and figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

import data
from plan import CHARS, COMPARED, CURVES, DATA_SETS, LAYERS, NARROW, SHARES, TABLE_1, TABLE_2, TABLE_3, Fit

from bilmo.tasks.core.settings import Settings


@dataclass(frozen=True)
class Result:
    """What a fit reached."""

    measure: str
    value: float
    capped: bool
    mixes: list[dict[str, Any]]


RESULT_FIELDS = [field.name for field in fields(Result)]
Results = Mapping[Fit, Result]
NONE = "not measured"


def page(title: str, found: Results) -> str:
    """All tables; what is not recorded is marked as such."""
    parts = [
        "# Quality",
        f"{date.today()}, {title}. Made by `benchmarks/quality/run.py`.",
        "`words` is GloVe of width 50, `static` is the model's own word vectors without context (layer 0), `both` is "
        f"GloVe and the learned mix of all layers. All three have a character CNN of the task's own ({CHARS} filters), "
        f"as the baselines of the paper have. `words` has dropout {NARROW['dropout']}, the others "
        f"{Settings().dropout} unless the task has its own default: dropping half of a narrow input would make the "
        "baseline worse than it is. A fit ends at the cap of processor time if it has not stopped early before, and "
        "its best epoch is measured; the cap is the same for all variants.",
        "## Table 1: with and without ELMo",
        table_1(found),
        "Means over the seeds, whose values follow in parentheses. Error reduction: of `both`, over each baseline. A "
        "goal is the error reduction in the paper, on other data; the one for relations is our own.",
        comparable(found),
        "## Table 2: which layers",
        table_2(found),
        "`top` is the top layer only. λ is the penalty on the weights of the learned mix.",
        "## Table 3: where ELMo enters",
        table_3(found),
        "## Figure 1: share of the training examples",
        figure_1_text(found),
        "## Figure 2: learned weights of the layers",
        figure_2_text(found),
        "## Parts of speech by layer",
        layers_text(found),
        capped_text(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def values(found: Results, data: str, variant: str, share: float = 1.0, l2: float | None = None) -> list[float]:
    """The recorded values in the order of the seeds."""
    wanted = [Fit(data, variant, seed, share, l2) for seed in (1, 2, 3)]
    return [found[fit].value for fit in wanted if fit in found]


def cell(each: Sequence[float]) -> str:
    """The mean, and the value of each seed."""
    if not each:
        return NONE
    return f"{statistics.fmean(each):.3f} ({', '.join(f'{value:.3f}' for value in each)})"


def reduction(base: Sequence[float], other: Sequence[float]) -> float | None:
    """The share of the error of `base` that `other` avoids; None where one of them is not measured."""
    if not base or not other:
        return None
    low, high = statistics.fmean(base), statistics.fmean(other)
    return (high - low) / (1 - low) if low < 1 else 0.0


def percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.1%}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def table_1(found: Results) -> str:
    rows = []
    for name, measured in DATA_SETS.items():
        if name == "layers":
            continue
        words, static, both = (values(found, name, variant) for variant in TABLE_1)
        measure = next((result.measure for fit, result in found.items() if fit.data == name), "")
        goal = "" if measured.goal is None else f"{measured.goal:.1%}"
        reduced = [percent(reduction(base, both)) for base in (words, static)]
        rows.append([name, measured.task.name, measure, cell(words), cell(static), cell(both), *reduced, goal])
    return markdown(
        ["data", "task", "measure", *TABLE_1, "error reduction over `words`", "over `static`", "goal"], rows
    )


def comparable(found: Results) -> str:
    """Published results of comparable models beside the baseline."""
    rows = []
    for name, (value, what) in data.PUBLISHED.items():
        words = values(found, name, "words")
        distance = f"{statistics.fmean(words) - value:+.3f}" if words else NONE
        rows.append([name, f"{value:.3f}", what, distance])
    return markdown(["data", "published", "by", "`words` minus it"], rows)


def table_2(found: Results) -> str:
    rows = []
    for name in COMPARED:
        each = [values(found, name, variant, l2=l2)[:2] for variant, l2 in TABLE_2]
        rows.append([name, cell(values(found, name, "words")[:2]), *map(cell, each)])
    return markdown(["data", "`words`", "`top`", "all layers, λ = 1", f"all layers, λ = {Settings().l2:g}"], rows)


def table_3(found: Results) -> str:
    rows = [[name, *(cell(values(found, name, variant)[:2]) for variant in TABLE_3)] for name in COMPARED]
    return markdown(["data", "at the input", "at the output", "at both"], rows)


def figure_1_text(found: Results) -> str:
    rows = [
        [name, variant, *(cell(values(found, name, variant, share)[:2]) for share in SHARES)]
        for name in CURVES
        for variant in ("words", "both")
    ]
    shown = "" if not any(curves(found).values()) else "![Score by share of the training examples](shares.svg)\n\n"
    return shown + markdown(["data", "variant", *(f"{share:.0%}" for share in SHARES)], rows)


def figure_2_text(found: Results) -> str:
    learned = mixes(found)
    if not learned:
        return NONE
    most = max(len(shares) for shares in learned.values())
    rows = [
        [name, where, *(f"{share:.2f}" for share in shares), *[""] * (most - len(shares))]
        for (name, where), shares in learned.items()
    ]
    head = ["data", "mix", *(f"layer {number}" for number in range(most))]
    return "![Learned weights of the layers](mixes.svg)\n\n" + markdown(head, rows)


def layers_text(found: Results) -> str:
    each = {layer: values(found, "layers", layer) for layer in LAYERS}
    if not any(each.values()):
        return NONE
    rows = [[f"layer {layer}", cell(some)] for layer, some in each.items()]
    best = max((layer for layer in LAYERS if each[layer]), key=lambda layer: statistics.fmean(each[layer]))
    said = f"A linear classifier on one layer, ud_english_ewt. Best is layer {best}."
    return markdown(["", "accuracy"], rows) + f"\n\n{said} The paper, on other data: layer 1 0.973, layer 2 0.968."


def capped_text(found: Results) -> str:
    names = [str(fit) for fit, result in found.items() if result.capped]
    if not names:
        return ""
    return f"## Ended by the cap\n\n{len(names)} of {len(found)} fits: {'; '.join(names)}."


def curves(found: Results) -> dict[str, list[tuple[float, float]]]:
    """(share, mean value) of each curve of figure 1, by its name."""
    every = {}
    for name in CURVES:
        for variant in ("words", "both"):
            each = [(share, values(found, name, variant, share)[:2]) for share in SHARES]
            every[f"{name}, {variant}"] = [(share, statistics.fmean(some)) for share, some in each if some]
    return every


def mixes(found: Results) -> dict[tuple[str, str], list[float]]:
    """The weights of the layers by data set and place, means over the seeds."""
    learned: dict[tuple[str, str], list[list[float]]] = {}
    for fit, result in found.items():
        wanted = "input+output" if fit.data in COMPARED else "both"
        if fit.variant == wanted and fit.share == 1 and fit.l2 is None:
            for mix in result.mixes:
                learned.setdefault((fit.data, mix["where"]), []).append(mix["shares"])
    return {
        name: [statistics.fmean(column) for column in zip(*rows, strict=True)] for name, rows in sorted(learned.items())
    }


def figures(found: Results) -> dict[str, str]:
    """The pictures by file name."""
    pictures = {}
    if any(curves(found).values()):
        pictures["shares.svg"] = shares_svg(curves(found))
    if mixes(found):
        pictures["mixes.svg"] = mixes_svg(mixes(found))
    return pictures


WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 640, 360, 50, 20, 40, 130
COLOURS = ("#c2410c", "#3b6ea5")
STYLE = "<style>text{font:12px system-ui,sans-serif;fill:#666}.grid{stroke:#8883}polyline{fill:none}</style>"


def shares_svg(lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Figure 1: one colour per data set, dashed without ELMo; the axis of shares is logarithmic."""

    def x(share: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(share) - math.log(SHARES[0])) / -math.log(SHARES[0])

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value)

    parts = []
    for tenths in range(0, 11, 2):
        at = y(tenths / 10)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{tenths / 10:.1f}</text>')
    for share in SHARES:
        parts.append(f'<text x="{x(share):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{share:.0%}</text>')
    for name, points in lines.items():
        if not points:
            continue
        colour = COLOURS[CURVES.index(name.split(",")[0])]
        dashes = ' stroke-dasharray="5 4"' if name.endswith("words") else ""
        path = " ".join(f"{x(share):.1f},{y(value):.1f}" for share, value in points)
        parts.append(f'<polyline points="{path}" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts += [f'<circle cx="{x(share):.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>' for share, v in points]
        share, value = points[-1]
        parts.append(f'<text x="{x(share) + 8:.1f}" y="{y(value) + 4:.1f}">{name}</text>')
    return svg(WIDTH, HEIGHT, "score by share of the training examples, with and without ELMo", parts)


def mixes_svg(learned: Mapping[tuple[str, str], Sequence[float]]) -> str:
    """Figure 2: one row per mix, one square per layer, darker for a larger weight."""
    size, left = 56, 190
    most = max(len(shares) for shares in learned.values())
    parts = [
        f'<text x="{left + size * k + size / 2}" y="20" text-anchor="middle">layer {k}</text>' for k in range(most)
    ]
    for row, ((name, where), shares) in enumerate(learned.items()):
        top = 30 + row * 30
        parts.append(f'<text x="{left - 10}" y="{top + 18}" text-anchor="end">{name}, {where}</text>')
        for k, share in enumerate(shares):
            box = f'x="{left + size * k}" y="{top}" width="{size - 2}" height="28"'
            parts.append(f'<rect {box} fill="#3b6ea5" fill-opacity="{share:.3f}" stroke="#8883"/>')
            parts.append(
                f'<text x="{left + size * k + size / 2}" y="{top + 18}" text-anchor="middle">{share:.2f}</text>'
            )
    return svg(left + size * most + 10, 40 + 30 * len(learned), "learned weights of the layers by task", parts)


def svg(width: int, height: int, label: str, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">\n'
        f"{STYLE}\n{body}\n</svg>\n"
    )
