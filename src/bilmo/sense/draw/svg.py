"""SVG by hand: text, cells, points, and a picture that follows the reader's light or dark theme.

Colours are CSS classes, so the same picture works on a light and on a dark page. A program that draws SVG without a
browser uses the light ones.

Knows: SVG. Blind to: what is drawn.
"""

from __future__ import annotations

import html
import re
import unicodedata

SIZE = 14
"""Pixels of the text."""
MARGIN = 16
LONGEST = 18
"""Characters of a label; longer ones are cut, and shown in full while the mouse is over them."""
STYLE = """\
svg { font-family: system-ui, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", \
"DejaVu Sans", "Liberation Sans", Helvetica, Arial, sans-serif; font-size: 14px; }
.page { fill: #fff; }
text { fill: #1c1c1e; }
.title { font-weight: 600; }
.note { fill: #636368; font-size: 12px; }
.number { font-size: 11px; }
.up { fill: #2a78c2; }
.down { fill: #c2662a; }
.frame { fill: none; stroke: #d9d9de; }
.g0 { fill: #2a78c2; } .g1 { fill: #c2662a; } .g2 { fill: #2f8f4e; } .g3 { fill: #8a4fbf; } .g4 { fill: #b8304f; }
.g5 { fill: #7a6a1e; } .g6 { fill: #16808a; } .g7 { fill: #6d6d72; }
"""
DARK = """\
.page { fill: #17181a; }
text { fill: #e9e9ec; }
.note { fill: #a5a5ab; }
.up { fill: #2f7fc4; }
.down { fill: #bf6a30; }
.frame { stroke: #3b3c41; }
.g0 { fill: #5aa5e8; } .g1 { fill: #e8935a; } .g2 { fill: #63c284; } .g3 { fill: #b98ae0; } .g4 { fill: #ec6f8c; }
.g5 { fill: #c7b458; } .g6 { fill: #4fbdc8; } .g7 { fill: #a5a5ab; }
"""
COLOURS = 8
"""Number of classes g0, g1, ... for groups."""
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Drawing:
    """A picture that grows as things are drawn on it."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.width = self.height = 0.0

    def text(self, x: float, y: float, text: str, kind: str = "", *, end: bool = False, turned: bool = False) -> None:
        """A line of text whose baseline starts at a point; `end`: it ends there; `turned`: it is written upwards."""
        options = f' class="{kind}"' if kind else ""
        options += ' text-anchor="end"' if end else ""
        options += f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
        cut = short(text)
        title = f"<title>{escaped(text)}</title>" if cut != text else ""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{options}>{escaped(cut)}{title}</text>')
        along = 0 if end else width_of(cut)
        self._grow(x + (0 if turned else along), y + SIZE / 2)

    def centred(self, x: float, y: float, text: str, kind: str = "") -> None:
        """A short text around a point."""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="middle">{escaped(text)}</text>')

    def cell(self, x: float, y: float, size: float, kind: str, opacity: float, title: str) -> None:
        """A square with a colour of some strength from 0 to 1."""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{size:.1f}"'
        self._parts.append(
            f'<rect {place} class="{kind}" fill-opacity="{opacity:.2f}"><title>{escaped(title)}</title></rect>'
        )
        self._grow(x + size, y + size)

    def point(self, x: float, y: float, kind: str, title: str) -> None:
        """A point with a text that is shown while the mouse is over it."""
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="{kind}" fill-opacity="0.75">'
            f"<title>{escaped(title)}</title></circle>"
        )
        self._grow(x + SIZE, y + SIZE)

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        """An empty rectangle."""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect {place} class="frame"/>')
        self._grow(x + width, y + height)

    def svg(self) -> str:
        """The whole picture as one SVG element, with its own style."""
        width, height = round(self.width + MARGIN), round(self.height + MARGIN)
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        style = f"{STYLE}@media (prefers-color-scheme: dark) {{\n{DARK}}}\n"
        body = "\n".join(self._parts)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>\n{style}</style>'
        page = f'<rect width="{width}" height="{height}" class="page"/>'
        return f"{head}\n{page}\n{body}\n</svg>\n"

    def _grow(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)


def width_of(text: str) -> float:
    """About how many pixels a text takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return SIZE * (wide + 0.58 * (len(text) - wide))


def short(text: str, longest: int = LONGEST) -> str:
    """A label that is not too long; sentences and titles are not cut."""
    return text if len(text) <= longest or " " in text else f"{text[: longest - 1]}…"


def escaped(text: str) -> str:
    """A text as XML, which cannot hold control characters."""
    return html.escape(NOT_XML.sub("\ufffd", text))
