"""Tensors in safetensors files, and their hashes.

Knows: safetensors. Blind to: what the tensors mean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from bilmo.errors import DamagedFile, WeightsError
from bilmo.store.atomic import new_file
from bilmo.store.validate import finite_float32, regular_file

ABOUT, HASH = "about", "sha256"
"""The only entry of a file's metadata, in JSON, because the order of several would be random; and in it the hash."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> None:
    """Write a new file. Tensors must not share memory. `about` is text about them, by name.

    An error is an OSError, so the writers of `store.atomic` report it with the name of their target.
    """
    path.touch(exist_ok=True)
    mode = path.stat().st_mode
    try:
        clean = {name: value.detach().contiguous() for name, value in tensors.items()}
        save_file(clean, path, metadata=None if about is None else dict(about))
    except SafetensorError as error:
        raise OSError(str(error)) from None
    path.chmod(mode)  # safetensors replaces the file by one that only the owner can read


def write_hashed(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
    """Replace a file as a whole, by tensors and text about them, with a hash of both."""
    with new_file(path) as partial:
        write_tensors(partial, tensors, {ABOUT: json.dumps({**about, HASH: _hash(tensors, about)})})


def read_hashed(path: Path, remedy: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors that `write_hashed` wrote; older files have no hash. `remedy` is the advice in errors."""
    try:
        with safe_open(regular_file(path, remedy), framework="pt") as file:
            about = dict(file.metadata() or {})
            about = json.loads(about[ABOUT]) if ABOUT in about else about
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise DamagedFile(f"{path}: cannot be read as safetensors ({error}). {remedy}") from None
    hashed = about.pop(HASH, None) if isinstance(about, dict) else ""
    if hashed not in (None, _hash(tensors, about)):
        raise DamagedFile(f"{path}: is not the file that was saved (its SHA-256 differs). {remedy}")
    return tensors, about


def _hash(tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> str:
    shapes = [(name, str(value.dtype), tuple(value.shape)) for name, value in sorted(tensors.items())]
    return sha256_of_tensors((shapes, sorted(about.items())), tensors)


def sha256_of_tensors(about: object, tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of tensors, their names, and the `repr` of what else belongs to them."""
    digest = hashlib.sha256(repr(about).encode("utf-8", "surrogatepass"))
    for name, value in sorted(tensors.items()):
        digest.update(name.encode("utf-8", "surrogatepass"))
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def finite_weights(value: Tensor, where: str) -> Tensor:
    """Weights as float32; anything but finite floating-point numbers is refused."""
    if not value.is_floating_point():
        kind = str(value.dtype).removeprefix("torch.")
        raise WeightsError(f"{where} contains {kind}; weights must be floating-point numbers")
    value = value.float()  # NumPy has no bfloat16
    finite_float32(value.numpy(), where)
    return value
