"""A picture as a file: SVG, a page for a browser, or PNG, by the extension of the file.

Knows: atomic writes, the HTML page of predictions. Blind to: what is drawn.
"""

from __future__ import annotations

from pathlib import Path

from bilmo.errors import ConfigError, need
from bilmo.sense.draw.svg import SIZE, Drawing
from bilmo.store.atomic import new_file
from bilmo.tasks.core import html

EXTENSIONS = (".html", ".svg", ".png")
SCALE = 2
"""Pixels of PNG for one of SVG, so that text is sharp."""
STYLE = """\
body { max-width: none; width: fit-content; min-width: min(52rem, 90vw); }
svg { max-width: 100%; height: auto; }
"""


def check_extension(path: Path) -> str:
    """The extension of a picture, if it can be written; PNG needs its library."""
    extension = path.suffix.lower()
    if extension not in EXTENSIONS:
        raise ConfigError(
            f"{path}: a picture can be written as {', '.join(EXTENSIONS)}; choose one of these extensions"
        )
    if extension == ".png":
        need("resvg_py", extra="draw", purpose="Writing PNG")
    return extension


def write(path: Path, svg: str, title: str, below: str = "") -> None:
    """Write a picture. A page can have more HTML below it."""
    extension = check_extension(path)
    with new_file(path) as partial:
        if extension == ".png":
            partial.write_bytes(png(svg))
        elif extension == ".svg":
            partial.write_text(svg, encoding="utf-8", newline="\n")
        else:
            page = [html.header(escaped_title(title), STYLE), svg + below, html.FOOTER]
            partial.write_text("\n".join(page), encoding="utf-8", errors="backslashreplace", newline="\n")


def png(svg: str) -> bytes:
    """A picture as PNG, with the fonts of the system."""
    resvg = need("resvg_py", extra="draw", purpose="Writing PNG")

    def drawn(picture: str) -> bytes:
        return bytes(resvg.svg_to_bytes(svg_string=picture, zoom=SCALE))

    letter, nothing = Drawing(), Drawing()
    letter.text(0, SIZE, "A")
    nothing.text(0, SIZE, " ")
    if drawn(letter.svg()) == drawn(nothing.svg()):
        raise ConfigError(
            "PNG needs a font, and none was found. Install one, such as DejaVu Sans, or write .svg or .html"
        )
    return drawn(svg)


def escaped_title(title: str) -> str:
    """A title without characters that no file can hold."""
    return title.encode("utf-8", "replace").decode("utf-8")
