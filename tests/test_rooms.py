"""The house is built as it says: rooms import downwards only, files say what they are, only the command line prints."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import bilmo

HOUSE = Path(bilmo.__file__).parent
RANK = {
    "errors": 0,
    "models": 0,
    "text": 1,
    "ids": 1,
    "net": 2,
    "store": 3,
    "formats": 4,
    "embed": 5,
    "train": 5,
    "tasks": 6,
    "sense": 6,
    "plug": 6,
    "cli": 7,
    "web": 7,
}
FRONT = "the package itself"
"""What `import bilmo` stands for: its names come from the upper rooms, so no room may use it."""
FILES = sorted(HOUSE.rglob("*.py"))
IN_ROOMS = [file for file in FILES if file.name not in ("__init__.py", "__main__.py") or file.parent != HOUSE]


def room_of(file: Path) -> str:
    return file.relative_to(HOUSE).parts[0].removesuffix(".py")


def modules(tree: ast.AST, file: Path) -> Iterator[str]:
    """Full names of what a file imports, anywhere in it; of `from a import b`, which may be either, a.b."""
    package = ("bilmo", *file.relative_to(HOUSE).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            full = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{full}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__", "need")):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def rooms(source: str, file: Path) -> set[str]:
    """Rooms that a file imports from; no import is executed."""
    found = set()
    for name in modules(ast.parse(source), file):
        first, *rest = name.split(".")
        if first == "bilmo" and not (rest and rest[0].startswith("__")):
            found.add(rest[0] if rest and rest[0] in RANK else FRONT)
    return found


def trespasses(source: str, file: Path) -> list[str]:
    """Rooms that a file may not import from: those that are neither its own nor below it."""
    own = room_of(file)
    return sorted(room for room in rooms(source, file) if room != own and not RANK.get(room, 99) < RANK[own])


def prints(source: str) -> list[int]:
    """Lines that print."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]


def named(file: Path) -> str:
    return str(file.relative_to(HOUSE))


@pytest.mark.parametrize("file", IN_ROOMS, ids=named)
def test_rooms_import_downwards_only(file):
    assert trespasses(file.read_text(encoding="utf-8"), file) == []


@pytest.mark.parametrize("file", FILES, ids=named)
def test_every_file_opens_with_what_it_is(file):
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert text
    assert text.strip().splitlines()[0].endswith((".", ":"))


@pytest.mark.parametrize("file", [file for file in FILES if room_of(file) != "cli"], ids=named)
def test_only_the_command_line_prints(file):
    assert prints(file.read_text(encoding="utf-8")) == []


def test_every_room_has_a_rank():
    assert {room_of(file) for file in IN_ROOMS} <= RANK.keys()
    assert {"errors", "text", "ids", "net", "store", "formats", "embed", "cli"} <= {room_of(file) for file in IN_ROOMS}


@pytest.mark.parametrize(
    ("place", "line", "found"),
    [
        ("net/x.py", "from bilmo.store.bundle import Bundle", ["store"]),
        ("net/x.py", "import bilmo.store.bundle as b", ["store"]),
        ("net/x.py", "from bilmo import store", ["store"]),
        ("net/x.py", "from bilmo.store import folder", ["store"]),
        ("net/x.py", "from ..store import folder", ["store"]),
        ("net/x.py", "from .. import cli, web", ["cli", "web"]),
        ("net/x.py", "def f():\n    from bilmo.embed.load import load", ["embed"]),
        ("net/x.py", "if TYPE_CHECKING:\n    from bilmo.formats import open", ["formats"]),
        ("net/x.py", "importlib.import_module('bilmo.train.loop')", ["train"]),
        ("net/x.py", "import bilmo", [FRONT]),
        ("net/x.py", "from bilmo import load", [FRONT]),
        ("net/x.py", "import bilmo.unknown", [FRONT]),
        ("text/x.py", "from bilmo.ids.vocab import Vocab", ["ids"]),
        ("embed/x.py", "from bilmo.train import loop", ["train"]),
        ("errors.py", "import bilmo.text.files", ["text"]),
        ("net/deep/x.py", "from ...store import folder", ["store"]),
        ("net/x.py", "from bilmo.net.bilm import BiLM\nfrom bilmo.ids import batch\nfrom bilmo.errors import need", []),
        ("net/x.py", "from . import bilm\nfrom .bilm import BiLM\nfrom ..ids import batch", []),
        ("net/x.py", "from bilmo import __version__\nimport torch, numpy.typing\nfrom pathlib import Path", []),
        ("cli/x.py", "from bilmo.embed import embedder\nfrom bilmo.train import loop", []),
    ],
)
def test_a_trespass_is_seen(place, line, found):
    assert trespasses(line, HOUSE / place) == found


def test_a_print_is_seen():
    assert prints("def f():\n    print('x')\n") == [2]
    assert prints("'print(1)'  # print(2)\nfile.print(3)\n") == []
