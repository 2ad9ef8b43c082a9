"""The tree keeps its own rules: imports go downwards, files are small and say what they are, only cli/ prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bilmo

PACKAGE = Path(bilmo.__file__).parent
RANK = {
    "errors": 0,
    "text": 1,
    "ids": 1,
    "net": 2,
    "progress": 2,
    "workers": 2,
    "store": 3,
    "formats": 4,
    "embed": 5,
    "training": 5,
    "tasks": 6,
    "sense": 7,
    "generate": 7,
    "api": 8,
    "plug": 8,
    "web": 8,
    "cli": 9,
}
"""A file imports its own room and rooms of lower rank."""
TOP, OTHER = "", "*"
SUB_RANK = {
    "net": {"kernels": 0, TOP: 1},
    "embed": {"output": 0, TOP: 1},
    "training": {"distributed": 0, TOP: 1, "plan": 2},
    "tasks": {"network": 0, "data": 0, "core": 1, OTHER: 2, TOP: 3},
    "generate": {"data": 0, "network": 1, TOP: 2},
    "sense": {"labelled": 0, "draw": 0, TOP: 1},
    "cli": {"show": 0, "tasks": 1, "sense": 1, TOP: 2},
}
"""The same inside a room: by folder, TOP for files beside the folders, OTHER for every other folder (each task)."""
SHARED = {"net": {"config"}, "generate": {"settings"}, "cli": {"options", "completion"}}
"""Files beside the folders of a room that every folder in it may import."""
WHOLE_PACKAGE = "bilmo"
"""What `import bilmo` means: its names come from the upper rooms, so no room may use it."""
LONGEST, MOST_FILES = 400, 16
"""Lines in a file; files in a folder."""
FILES = sorted(PACKAGE.rglob("*.py"))
IN_ROOMS = [file for file in FILES if file.name not in ("__init__.py", "__main__.py") or file.parent != PACKAGE]
FOLDERS = sorted({file.parent for file in FILES})


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST, file: Path) -> Iterator[str]:
    """Full names of everything that a file imports, anywhere in it; `from a import b` gives a.b."""
    package = ("bilmo", *file.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            full = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{full}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__", "need")):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def own_imports(source: str, file: Path) -> list[list[str]]:
    """The parts after `bilmo` of every name that a file imports from this package."""
    names = (name.split(".") for name in imports(ast.parse(source), file))
    return [rest for first, *rest in names if first == "bilmo" and not (rest and rest[0].startswith("__"))]


def trespasses(source: str, file: Path) -> list[str]:
    """Rooms that a file imports from, but that are neither its own nor of lower rank."""
    own = room_of(file)
    rooms = {rest[0] if rest and rest[0] in RANK else WHOLE_PACKAGE for rest in own_imports(source, file)}
    return sorted(room for room in rooms if room != own and not RANK.get(room, 99) < RANK[own])


def folder_in(room: str, parts: list[str]) -> str:
    """The folder of a room that a name or a file belongs to."""
    return parts[0] if len(parts) > 1 and (PACKAGE / room / parts[0]).is_dir() else TOP


def sub_trespasses(source: str, file: Path) -> list[str]:
    """Folders inside the file's own room that it may not import from."""
    room = room_of(file)
    ranks = SUB_RANK.get(room)
    if ranks is None:
        return []
    own = folder_in(room, list(file.relative_to(PACKAGE / room).parts))
    found = set()
    for first, *rest in own_imports(source, file):
        if first != room or not rest or rest[0] in SHARED.get(room, ()):
            continue
        other = folder_in(room, [*rest, ""])
        below = ranks.get(other, ranks.get(OTHER, 0)) < ranks.get(own, ranks.get(OTHER, 0))
        if other != own and not below:
            found.add(other or rest[0])
    return sorted(found)


def private_torch(source: str) -> list[str]:
    """Uses of torch's private names and of its operator table."""
    dotted = (ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute))
    return sorted({name for name in dotted if name.startswith(("torch.ops.", "torch._"))})


def prints(source: str) -> list[int]:
    """Lines that print."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]


@pytest.mark.parametrize("file", IN_ROOMS, ids=named)
def test_a_file_imports_its_own_room_and_rooms_of_lower_rank(file):
    assert trespasses(file.read_text(encoding="utf-8"), file) == []


@pytest.mark.parametrize("file", IN_ROOMS, ids=named)
def test_inside_a_room_a_file_imports_folders_of_lower_rank_and_no_task_imports_another(file):
    assert sub_trespasses(file.read_text(encoding="utf-8"), file) == []


@pytest.mark.parametrize("file", FILES, ids=named)
def test_only_the_kernels_use_private_operators_of_torch(file):
    if not named(file).startswith("net/kernels/"):
        assert private_torch(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("file", FILES, ids=named)
def test_every_file_is_short_and_starts_with_what_it_is(file):
    source = file.read_text(encoding="utf-8")
    text = ast.get_docstring(ast.parse(source))
    assert text
    assert text.strip().splitlines()[0].endswith((".", ":"))
    assert len(source.splitlines()) <= LONGEST


@pytest.mark.parametrize("folder", FOLDERS, ids=named)
def test_a_folder_has_few_files(folder):
    assert len([file for file in folder.glob("*.py") if file.name != "__init__.py"]) <= MOST_FILES


@pytest.mark.parametrize("file", [file for file in FILES if room_of(file) != "cli"], ids=named)
def test_only_the_command_line_prints(file):
    assert prints(file.read_text(encoding="utf-8")) == []


def test_every_room_has_a_rank():
    rooms = {room_of(file) for file in IN_ROOMS}
    assert rooms <= RANK.keys()
    assert {"errors", "text", "ids", "net", "store", "formats", "embed", "training", "tasks", "sense", "cli"} <= rooms


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
        ("net/x.py", "importlib.import_module('bilmo.training.loop')", ["training"]),
        ("net/x.py", "import bilmo", [WHOLE_PACKAGE]),
        ("net/x.py", "from bilmo import load", [WHOLE_PACKAGE]),
        ("net/x.py", "import bilmo.unknown", [WHOLE_PACKAGE]),
        ("text/x.py", "from bilmo.ids.vocab import Vocab", ["ids"]),
        ("embed/x.py", "from bilmo.training import loop", ["training"]),
        ("errors.py", "import bilmo.text.files", ["text"]),
        ("net/deep/x.py", "from ...store import folder", ["store"]),
        ("net/x.py", "from bilmo.net.bilm import BiLM\nfrom bilmo.ids import batch\nfrom bilmo.errors import need", []),
        ("net/x.py", "from . import bilm\nfrom .bilm import BiLM\nfrom ..ids import batch", []),
        ("net/x.py", "from bilmo import __version__\nimport torch, numpy.typing\nfrom pathlib import Path", []),
        ("cli/x.py", "from bilmo.embed import embedder\nfrom bilmo.training import loop", []),
        ("web/x.py", "from bilmo.plug import spacy", ["plug"]),
    ],
)
def test_an_import_of_a_higher_room_is_found(place, line, found):
    assert trespasses(line, PACKAGE / place) == found


@pytest.mark.parametrize(
    ("place", "line", "found"),
    [
        ("net/kernels/x.py", "from bilmo.net.bilm import BiLM", ["bilm"]),
        ("net/kernels/x.py", "from bilmo.net.config import Precision\nfrom bilmo.net.kernels import lstm", []),
        ("net/x.py", "from bilmo.net.kernels.lstm import compiled", []),
        ("embed/output/x.py", "from bilmo.embed import job", ["job"]),
        ("embed/x.py", "from bilmo.embed.output import hdf5", []),
        ("tasks/network/x.py", "from bilmo.tasks.core.estimator import Task", ["core"]),
        ("tasks/network/x.py", "from bilmo.tasks.data import spans", ["data"]),
        ("tasks/data/x.py", "from bilmo.tasks.network import crf", ["network"]),
        ("tasks/core/x.py", "from bilmo.tasks.tag.tagger import Tagger", ["tag"]),
        ("tasks/core/x.py", "from bilmo.tasks.network import crf\nfrom bilmo.tasks.data import spans", []),
        ("tasks/tag/x.py", "from bilmo.tasks.classify import classifier", ["classify"]),
        ("tasks/tag/x.py", "from bilmo.tasks import classify", ["classify"]),
        ("tasks/tag/x.py", "from bilmo.tasks import all", ["all"]),
        ("tasks/tag/x.py", "from bilmo.tasks.core import loop\nfrom bilmo.tasks.tag import tagger", []),
        ("tasks/all.py", "from bilmo.tasks.tag import tagger\nfrom bilmo.tasks.core import loop", []),
        ("cli/show/x.py", "from bilmo.cli import app", ["app"]),
    ],
)
def test_an_import_of_a_higher_folder_is_found(place, line, found):
    assert sub_trespasses(line, PACKAGE / place) == found


def test_private_operators_are_found():
    assert private_torch("torch.ops.mkldnn.linear(x)\ny = torch._foreach_add(a, b)") == [
        "torch._foreach_add",
        "torch.ops.mkldnn",
        "torch.ops.mkldnn.linear",
    ]
    assert private_torch("torch.nn.functional.relu(x)  # torch._C\n'torch.ops.x'") == []


def test_a_print_is_found():
    assert prints("def f():\n    print('x')\n") == [2]
    assert prints("'print(1)'  # print(2)\nfile.print(3)\n") == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_the_tables_of_rooms_have_every_room_with_its_rank(page):
    text = (PACKAGE.parents[1] / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", text, re.MULTILINE)
    found = {
        (name.split("/")[0].removesuffix(".py"), int(rank)) for rank, cell in rows for name in cell.split("`")[1::2]
    }
    assert found == set(RANK.items())
