"""Tensors in a file: the values to the bit, the hash, the permissions of every other file."""

from __future__ import annotations

import os
import stat

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from bilmo.errors import OutputError
from bilmo.store.atomic import new_folder
from bilmo.store.tensors_file import write_tensors


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_tensors_are_written_with_the_permissions_of_the_umask(tmp_path, mask):
    tensors = {"a": torch.randn(3, 2).T, "b": torch.arange(4).half()}
    before = os.umask(mask)
    try:
        write_tensors(tmp_path / "weights", tensors)
    finally:
        os.umask(before)
    found = load_file(tmp_path / "weights")
    assert found.keys() == tensors.keys() and all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert stat.S_IMODE((tmp_path / "weights").stat().st_mode) == 0o666 & ~mask


def test_an_error_names_the_target(tmp_path, monkeypatch):
    def full(*given: object, **named: object) -> None:
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("bilmo.store.tensors_file.save_file", full)
    says = r"new: cannot be written \(No space left on device\)"
    with pytest.raises(OutputError, match=says), new_folder(tmp_path / "new") as partial:
        write_tensors(partial / "weights", {})
    assert list(tmp_path.iterdir()) == []
