"""Attention as a page of HTML: a table of source and target words for each result.

Knows: HTML. Blind to: networks, files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bilmo.generate.data.target_text import JOIN
from bilmo.tasks.core import html

if TYPE_CHECKING:
    from bilmo.generate.network.head import Hypothesis

STYLE = """\
div.attention { overflow-x: auto; }
div.attention table { border-collapse: collapse; font-size: .8rem; line-height: 1.3; }
div.attention th { font-weight: normal; text-align: start; padding: .1rem .4rem; }
div.attention thead th { writing-mode: vertical-rl; vertical-align: bottom; padding: .3rem .1rem; }
div.attention td { min-width: 1.4rem; height: 1.4rem; border: 1px solid var(--line);
  background: hsl(215 80% 50% / calc(var(--share) * 100%)); -webkit-print-color-adjust: exact;
  print-color-adjust: exact; }
"""
MOST_COLUMNS = 60
"""Of longer sources, only tokens with attention are shown."""
LEAST = 0.05
"""The share of attention from which a token of a long source is shown."""
END = "(end)"


def plain(token: str) -> str:
    """A target word without its mark."""
    return token.replace(JOIN, "")


def article(source: Sequence[str], results: Sequence[Hypothesis], heading: str) -> str:
    """The results of one source, each with a table: one row per written word, one column per source token."""
    parts = ["<article>", f'<h2 dir="auto">{html.escaped(heading)}</h2>']
    for one in results:
        parts += [f'<p dir="auto">{html.escaped(one.text)}</p>', _table(source, one)]
    return "\n".join([*parts, "</article>"])


def _table(source: Sequence[str], one: Hypothesis) -> str:
    columns = list(range(len(source)))
    if len(columns) > MOST_COLUMNS:
        columns = [k for k in columns if one.attention[:, k].max(initial=0.0) >= LEAST]
    names = "".join(f"<th>{html.escaped(source[k])}</th>" for k in columns)
    rows = [f"<thead><tr><th></th>{names}</tr></thead>"]
    for word, weights in zip([*map(plain, one.tokens), END], one.attention, strict=True):
        cells = "".join(f'<td style="--share:{weights[k]:.2f}" title="{weights[k]:.2f}"></td>' for k in columns)
        rows.append(f"<tr><th>{html.escaped(word)}</th>{cells}</tr>")
    hidden = len(source) - len(columns)
    note = f"<p>{hidden:,} source tokens with little attention are not shown.</p>" if hidden else ""
    return f'<div class="attention"><table>{"".join(rows)}</table>{note}</div>'
