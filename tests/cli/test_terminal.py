"""Commands on a terminal: colours, NO_COLOR, progress bars, --quiet."""

from __future__ import annotations

import re

import pytest

from bilmo.store import published
from file_server import serving
from small_runs import write_text

from old_models import write_hdf5
from terminal import shown

COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-79]|38|9[0-7])[0-9;]*m")
"""A sequence that sets the colour of letters."""
TRAIN = ("-m", "bilmo", "train", "text.txt", "-o", "model", "--recipe", "recipe.toml", "--epochs", "0.3")


@pytest.mark.parametrize("arguments", [("--help",), ("embed", "--help")])
def test_no_color_is_respected(tmp_path, monkeypatch, arguments):
    assert COLOUR.search(shown(tmp_path, "-m", "bilmo", *arguments))
    monkeypatch.setenv("NO_COLOR", "1")
    plain = shown(tmp_path, "-m", "bilmo", *arguments)
    assert "Usage" in plain and not COLOUR.search(plain)


def test_training_has_a_coloured_bar(tmp_path):
    write_text(tmp_path)
    seen = shown(tmp_path, *TRAIN)
    assert COLOUR.search(seen) and "words/s" in seen


def test_a_bar_has_no_colours_with_no_color_and_quiet_hides_it(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    write_hdf5(tmp_path / "model")
    (tmp_path / "long.txt").write_text("The cat sat on the mat. " * 3000)  # one line
    seen = shown(tmp_path, "-m", "bilmo", "embed", "model", "long.txt", "-o", "v.npy", "--mix", "mean")
    assert not COLOUR.search(seen)
    shares = [int(share) for share in re.findall(r"(\d+) %", seen)]
    assert shares == sorted(shares) and (shares[0], shares[-1]) == (0, 100)
    assert re.search(r"[1-9][\d,]* words/s", seen) and "v.npy: 1 sentences, 21,000 tokens" in seen
    quiet = shown(tmp_path, "-m", "bilmo", "embed", "model", "long.txt", "-o", "w.npy", "--mix", "mean", "--quiet")
    assert quiet.splitlines() == ["w.npy: 1 sentences, 21,000 tokens, lang: auto"]


def test_a_download_shows_a_bar(tmp_path, monkeypatch):
    write_hdf5(tmp_path / "old")
    with serving() as server:
        for file in published.published()["elmo-small"].urls():
            name = "weights.hdf5" if file.endswith(".hdf5") else "options.json"
            server.files[f"/elmo-small/{file}"] = (tmp_path / "old" / name).read_bytes()
        monkeypatch.setenv("BILMO_MIRROR", server.address)
        bars = shown(tmp_path, "-m", "bilmo", "get", "elmo-small")
    assert "file 1 of 2" in bars and "file 2 of 2" in bars and "━" in bars and "elmo-small: installed in" in bars
