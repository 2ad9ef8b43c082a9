"""The hooks of the documentation site that `mkdocs build` calls.

The pages are also read on GitHub, so they link to files of the repository. The result tables become pages of the site
(results/NAME.md), and links to other files outside docs/ become their path in plain text. A line such as

    Code: [Mix.shares](../src/bilmo/net/mix.py)

becomes the source of that function, as it is now. Formulas between dollar signs become MathML, which browsers show
without a script.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
RESULT_LINK = re.compile(r"\]\((?:\.\./)+benchmarks/results/([\w-]+)\.md\)")
FILE_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+)([\w./-]+)\)")
CODE_LINE = re.compile(r"^Code: \[([\w.]+)\]\(\.\./(src/[\w/]+\.py)\)$", re.MULTILINE)
BLOCK, INLINE = re.compile(r"\$\$(.+?)\$\$", re.DOTALL), re.compile(r"\$([^$\n]+?)\$")


def source_of(path: Path, name: str) -> str:
    """The source of a function or class, found by its name without importing the file."""
    text = path.read_text(encoding="utf-8")
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        inside = [child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part]
        if not inside:
            raise LookupError(f"{path} has no {name}; correct the page that shows it")
        node = inside[-1]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return textwrap.dedent("\n".join(text.splitlines()[first - 1 : node.end_lineno]))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the result tables."""
    for path in sorted(RESULTS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        files.append(File.generated(config, f"results/{path.name}", content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links and formulas outside code."""
    up = "../" * page.file.src_uri.count("/")
    depth = page.file.src_uri.count("/") + 1

    def file_link(found: re.Match[str]) -> str:
        text, ups, target = found.groups()
        if ups.count("..") < depth:  # it stays inside docs/
            return found[0]
        if not (ROOT / target).exists():
            raise FileNotFoundError(f"{page.file.src_uri} links to {target}, which does not exist")
        return f"{text} (`{target}`)"

    def code(found: re.Match[str]) -> str:
        name, path = found.groups()
        return f'```python title="{path}, {name}"\n{source_of(ROOT / path, name)}\n```'

    parts = CODE.split(CODE_LINE.sub(code, markdown))
    for at in range(0, len(parts), 2):
        part = RESULT_LINK.sub(rf"]({up}results/\1.md)", parts[at])
        part = FILE_LINK.sub(file_link, part)
        part = BLOCK.sub(lambda found: convert(found[1].strip(), display="block"), part)
        parts[at] = INLINE.sub(lambda found: convert(found[1]), part)
    return "".join(parts)
