"""SHA-256 of files and of tensors.

Knows: hashlib, torch. Blind to: what is hashed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_tensors(about: object, tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of tensors, their names, and the `repr` of what else belongs to them."""
    digest = hashlib.sha256(repr(about).encode("utf-8", "surrogatepass"))
    for name, value in sorted(tensors.items()):
        digest.update(name.encode("utf-8", "surrogatepass"))
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
