"""Check the built documentation site: `python scripts/check_site.py site`.

Every link and picture must lead to a file of the site, every anchor to an element with that id, and nothing may be
loaded from a network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
"""What a browser loads by itself; an `a` is only followed."""


class PageLinks(HTMLParser):
    """The ids and links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect from one element."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if name in ("href", "src") and value:
                self.links.append((tag, name, value))


def problems(site: Path) -> list[str]:
    """One line per broken link, missing anchor and network resource."""
    pages = {path: PageLinks(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links are made for a server
            continue
        for tag, name, link in page.links:
            where = urlsplit(link)
            if where.scheme or where.netloc:
                if (tag, name) in LOADED and where.scheme != "data":
                    found.append(f"{path.relative_to(site)}: <{tag}> loads {link}")
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.is_file():
                found.append(f"{path.relative_to(site)}: {link} does not exist")
            elif where.fragment and target in pages and unquote(where.fragment) not in pages[target].ids:
                found.append(f"{path.relative_to(site)}: {link} has no such anchor")
    return found


def main(site: Path) -> None:
    """Print the problems and fail if there are any."""
    site = site.resolve()
    found = problems(site)
    print("\n".join(found))
    if found:
        sys.exit(f"{len(found)} problems in {site}")
    pages = len(list(site.rglob("*.html")))
    print(f"{site}/index.html: {pages} pages, every link and anchor resolves, nothing is loaded from a network")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
