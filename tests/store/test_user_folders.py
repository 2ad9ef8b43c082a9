"""Where bilmo keeps files between runs."""

from __future__ import annotations

import pytest

from bilmo.store.user_folders import layers_folder, models_folder


@pytest.mark.parametrize(
    ("folder", "own", "given", "shared", "usual"),
    [
        (layers_folder, "BILMO_CACHE", "layers", "XDG_CACHE_HOME", ".cache/bilmo/layers"),
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
