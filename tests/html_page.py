"""A page of predictions, read with Python's own parser."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

ALLOWED = {"html", "head", "meta", "title", "style", "body", "h1", "article", "h2", "p", "mark", "sub"}


@dataclass
class Mark:
    """A span in colour."""

    hue: str
    title: str | None
    text: str = ""
    """Without labels."""
    label: str = ""


@dataclass
class Article:
    """One example."""

    heading: str = ""
    paragraphs: list[str] = field(default_factory=list)
    """Their texts, without labels."""
    marks: list[Mark] = field(default_factory=list)
    """In the order in which they begin, the outer ones first."""

    @property
    def spans(self) -> list[tuple[str, str]]:
        """The text and the label of each span."""
        return [(mark.text, mark.label) for mark in self.marks]


class Page(HTMLParser):
    """Its articles. Every tag must be known and closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.articles: list[Article] = []
        self.style = ""
        self._open: list[str] = []
        self._marks: list[Mark] = []
        assert page.startswith("<!DOCTYPE html>\n") and page.endswith("</html>\n")
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        given = dict(attrs)
        if tag == "meta":  # has no end
            return
        self._open.append(tag)
        if tag == "article":
            assert self._open == ["html", "body", "article"]
            self.articles.append(Article())
        elif tag == "p":
            assert given == {"dir": "auto"}
            self.articles[-1].paragraphs.append("")
        elif tag == "mark":
            style, value = (given.pop("style") or "").split(":")
            assert style == "--hue" and 0 <= int(value) <= 360 and given.keys() <= {"title"}
            mark = Mark(value, given.get("title"))
            self.articles[-1].marks.append(mark)
            self._marks.append(mark)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "mark":
            self._marks.pop()

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "style":
            self.style += data
        elif inside == "h2":
            self.articles[-1].heading += data
        elif inside == "sub":
            self._marks[-1].label += data
        elif "p" in self._open:
            self.articles[-1].paragraphs[-1] += data
            for mark in self._marks:
                mark.text += data
        else:
            assert inside in ("title", "h1") or not data.strip()

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)
