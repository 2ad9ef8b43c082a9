"""An extension of griffe for the API reference: settings that a docstring explains line by line become a list.

Our docstrings explain a setting as `name: what it does`, with its other lines indented.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SETTING = re.compile(r"([a-z_]\w*): (?=\S)")


def listed(text: str) -> str:
    """The docstring with such lines as Markdown list items."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if SETTING.match(line):
            if not inside:
                lines.append("")
            line, inside = SETTING.sub(r"- `\1`: ", line, count=1), True
        elif inside and not line.startswith(" "):
            lines.append("")
            inside = False
        lines.append(line)
    return "\n".join(lines)


class SettingLists(griffe.Extension):  # type: ignore[misc]
    """Called by mkdocstrings for each object that it collects."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite its docstring."""
        if obj.docstring:
            obj.docstring.value = listed(obj.docstring.value)
