"""Check what was built: `python scripts/check_dist.py dist`.

The wheel must hold the models, the recipes and the type marker. The source archive must hold what is needed to run the
tests and build the docs, and nothing large.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

WHEEL = [
    "bilmo/py.typed",
    "bilmo/models/en/model.safetensors",
    "bilmo/models/zh/model.safetensors",
    "bilmo/models/zh/chars.txt",
    "bilmo/models/published.toml",
    "bilmo/training/recipes/novel.toml",
]
SOURCE = ["pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt", "mkdocs.yml", "tests/test_docs.py"]
LARGEST = 1_000_000
"""Bytes that a file of the source archive may have, models aside."""


def main(folder: Path) -> None:
    """Check the one wheel and the one source archive."""
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    missing = [name for name in WHEEL if name not in inside]
    strange = sorted(name for name in inside if name.split("/")[0] != "bilmo" and ".dist-info/" not in name)
    with tarfile.open(source) as tar:
        sizes = {member.name.partition("/")[2]: member.size for member in tar if member.isfile()}
    missing += [name for name in SOURCE if name not in sizes]
    large = [name for name, size in sizes.items() if size > LARGEST and not name.startswith("src/bilmo/models/")]
    for problem, names in (("missing", missing), ("not part of the package", strange), ("too large", large)):
        if names:
            sys.exit(f"{folder}: {problem}: {', '.join(names)}")
    print(f"{wheel.name}: {len(inside)} files; {source.name}: {len(sizes)} files")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
