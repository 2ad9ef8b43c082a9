"""The checks of the built documentation site and of the built packages find what they are made for."""

from __future__ import annotations

import io
import runpy
import tarfile
import zipfile
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('<a href="other.html#part">x</a><img src="p.svg"><a href="https://example.org">x</a>', []),
        ('<a href="none.html">x</a>', ["none.html does not exist"]),
        ('<a href="other.html#nowhere">x</a>', ["other.html#nowhere has no such anchor"]),
        ('<a href="#nowhere">x</a>', ["#nowhere has no such anchor"]),
        ('<img src="missing.svg">', ["missing.svg does not exist"]),
        ('<script src="https://example.org/x.js"></script>', ["<script> loads https://example.org/x.js"]),
        ('<link rel="stylesheet" href="//example.org/x.css">', ["<link> loads //example.org/x.css"]),
    ],
)
def test_broken_links_and_network_resources_are_found(tmp_path, body, found):
    (tmp_path / "index.html").write_text(body, encoding="utf-8")
    (tmp_path / "other.html").write_text('<h2 id="part">x</h2>', encoding="utf-8")
    (tmp_path / "p.svg").touch()
    problems = runpy.run_path(str(SCRIPTS / "check_site.py"))["problems"]
    assert problems(tmp_path) == [f"index.html: {problem}" for problem in found]


@pytest.mark.parametrize(
    ("left_out", "added", "message"),
    [
        (None, None, None),
        ("bilmo/py.typed", None, "missing: bilmo/py.typed"),
        ("tests/test_docs.py", None, "missing: tests/test_docs.py"),
        (None, "tests/test_docs.py", "not part of the package: tests/test_docs.py"),
        (None, "benchmarks/results/large.bin", "too large: benchmarks/results/large.bin"),
    ],
)
def test_packages_must_be_complete_and_small(tmp_path, capsys, left_out, added, message):
    names = runpy.run_path(str(SCRIPTS / "check_dist.py"))
    with zipfile.ZipFile(tmp_path / "bilmo-0.1.whl", "w") as wheel:
        for name in {*names["WHEEL"], "bilmo-0.1.dist-info/METADATA", *([added] if added and "tests" in added else [])}:
            if name != left_out:
                wheel.writestr(name, "")
    with tarfile.open(tmp_path / "bilmo-0.1.tar.gz", "w:gz") as source:
        for name in {*names["SOURCE"], "src/bilmo/models/en/model.safetensors", *([added] if added else [])}:
            if name != left_out:
                member = tarfile.TarInfo(f"bilmo-0.1/{name}")
                member.size = 2_000_000 if name.endswith((".bin", ".safetensors")) else 0
                source.addfile(member, io.BytesIO(bytes(member.size)))
    if message is None:
        names["main"](tmp_path)
        assert "bilmo-0.1.whl" in capsys.readouterr().out
    else:
        with pytest.raises(SystemExit, match=message):
            names["main"](tmp_path)
