"""Where bilmo keeps files between runs."""

from __future__ import annotations

from functools import partial

import pytest

from bilmo.errors import ConfigError
from bilmo.store.installed import installed
from bilmo.store.user_folders import cache_folder, models_folder


@pytest.mark.parametrize(
    ("folder", "own", "given", "shared", "usual"),
    [
        (partial(cache_folder, "layers"), "BILMO_CACHE", "layers", "XDG_CACHE_HOME", ".cache/bilmo/layers"),
        (models_folder, "BILMO_MODELS", "", "XDG_DATA_HOME", ".local/share/bilmo/models"),
    ],
)
def test_a_variable_of_its_own_then_the_usual_place(tmp_path, monkeypatch, folder, own, given, shared, usual):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(own, str(tmp_path / "own"))
    assert folder() == tmp_path / "own" / given
    monkeypatch.delenv(own)
    monkeypatch.setenv(shared, str(tmp_path / "shared"))
    assert folder() == tmp_path / "shared" / "bilmo" / usual.rpartition("/")[2]
    monkeypatch.delenv(shared)
    assert folder() == tmp_path / usual


@pytest.fixture
def homeless(monkeypatch):
    """A user without HOME and without an entry in the list of users, as in a container with a random user id."""

    def unknown(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("HOME", "BILMO_CACHE", "XDG_CACHE_HOME", "BILMO_MODELS", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


def test_a_user_without_a_home_folder_has_the_included_models_and_a_folder_for_layers(homeless, monkeypatch, tmp_path):
    assert {"en", "zh"} <= installed().keys()
    layers = cache_folder("layers")
    assert layers == cache_folder("layers") and layers.parent.is_dir()
    with pytest.raises(ConfigError, match=r"has no home folder. Set BILMO_MODELS to a folder"):
        models_folder()
    monkeypatch.setenv("BILMO_MODELS", str(tmp_path))
    assert models_folder() == tmp_path


def test_a_user_without_a_home_folder_can_embed_and_fit(homeless, run, tmp_path):
    assert run("embed", "en", "He sat.").code == 0
    rows = "".join(f"{label}\t{text}\n" for label, text in [("a", "the cat sat"), ("b", "a dog ran")] * 4)
    (tmp_path / "a.tsv").write_text(rows, encoding="utf-8")
    done = run("fit", "classify", "en", "--train", tmp_path / "a.tsv", "-o", tmp_path / "task", "--epochs", 1)
    assert done.code == 0, done.err
