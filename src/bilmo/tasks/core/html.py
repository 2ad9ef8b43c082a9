"""Predictions as a page of HTML: texts with coloured spans.

The page needs no other file, no script and no network. It is written from top to bottom: `header`, one `article` per
example, `FOOTER`.

Knows: HTML. Blind to: tasks, files.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from bilmo.tasks.data.splitting import RawText

FIRST_HUE, NEXT_HUE = 48, 137.5
"""In degrees: the first colour is yellow; the golden angle from each to the next keeps any number of them apart."""
STYLE = """\
:root { color-scheme: light dark; --page: #fff; --ink: #1c1c1e; --line: #d9d9de;
  --vivid: 80%; --fill: 86%; --edge: 58%; }
@media (prefers-color-scheme: dark) {
  :root { --page: #17181a; --ink: #e9e9ec; --line: #3b3c41; --vivid: 45%; --fill: 26%; --edge: 48%; }
}
body { background: var(--page); color: var(--ink); font: 1rem/2.1 system-ui, sans-serif;
  max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { font-size: 1rem; line-height: 1.5; margin: .8rem 0 .4rem; }
article { border-top: 1px solid var(--line); padding: .4rem 0; }
p { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
mark { background: hsl(var(--hue) var(--vivid) var(--fill)); border: 1px solid hsl(var(--hue) 55% var(--edge));
  color: inherit; border-radius: .3em; padding: .25em .2em;
  -webkit-box-decoration-break: clone; box-decoration-break: clone;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
mark mark { padding-block: .1em; }
mark mark mark { padding-block: 0; }
sub { font-size: .7em; font-weight: 600; line-height: 0; margin-inline-start: .3em; white-space: nowrap;
  unicode-bidi: isolate; }
"""
FOOTER = "</body>\n</html>"


class Mark(NamedTuple):
    """A span of a text that is shown in colour."""

    begin: int
    end: int
    """Not included. Both count characters of a string, or tokens of a list."""
    colour: int
    """The same number is the same colour."""
    label: str = ""
    """Shown after the span."""
    probability: float | None = None
    """Shown after the label."""
    title: str = ""
    """Shown while the mouse is over the span."""


def header(title: str, style: str = "") -> str:
    """The page up to its first example; `style` is added to the CSS."""
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n<h1>{escaped(title)}</h1>"
    )


def article(paragraphs: Iterable[str], heading: str = "") -> str:
    """One example: paragraphs, which are HTML, and a heading, which is text."""
    shown = [f'<h2 dir="auto">{escaped(heading)}</h2>'] if heading else []
    shown += [f'<p dir="auto">{paragraph}</p>' for paragraph in paragraphs]
    return "\n".join(["<article>", *shown, "</article>"])


def marked(text: RawText, marks: Iterable[Mark]) -> str:
    """A text with spans in colour; tokens are joined by spaces. Spans may be nested, but may not cross.

    >>> marked(["her", "cat"], [Mark(0, 1, 0, "1"), Mark(0, 2, 1, "2")])
    '<mark style="--hue:186"><mark style="--hue:48">her<sub>1</sub></mark> cat<sub>2</sub></mark>'
    """
    if not isinstance(text, str):
        starts = [0, *accumulate(len(token) + 1 for token in text)]
        marks = [mark._replace(begin=starts[mark.begin], end=starts[mark.end] - 1) for mark in marks]
        text = " ".join(text)
    parts: list[str] = []
    opened: list[Mark] = []
    at = 0

    def write_until(place: int) -> None:
        """The text up to a place, and the ends of the spans that end there or before."""
        nonlocal at
        while opened and opened[-1].end <= place:
            mark = opened.pop()
            parts.extend([escaped(text[at : mark.end]), _label(mark), "</mark>"])
            at = mark.end
        parts.append(escaped(text[at:place]))
        at = place

    for mark in sorted(marks, key=lambda mark: (mark.begin, -mark.end)):
        write_until(mark.begin)
        title = f' title="{escaped(mark.title)}"' if mark.title else ""
        parts.append(f'<mark style="--hue:{round((FIRST_HUE + NEXT_HUE * mark.colour) % 360)}"{title}>')
        opened.append(mark)
    write_until(len(text))
    return "".join(parts)


def escaped(text: str) -> str:
    """A text as HTML, which cannot hold the character 0."""
    return html.escape(text.replace("\0", "\ufffd"))


def _label(mark: Mark) -> str:
    shown = [mark.label] if mark.label else []
    shown += [f"{mark.probability:.2f}"] if mark.probability is not None else []
    return f"<sub>{escaped(' '.join(shown))}</sub>" if shown else ""
