"""Write tensors to a safetensors file.

Knows: safetensors. Blind to: what the tensors mean.
"""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from bilmo.store.validate import sha256_of


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> str:
    """Write a new file; returns its SHA-256. Tensors must not share memory.

    An error is an OSError, so the writers of `store.atomic` report it with the name of their target.
    """
    path.touch(exist_ok=False)
    mode = path.stat().st_mode
    try:
        save_file({name: value.detach().contiguous() for name, value in tensors.items()}, path)
    except SafetensorError as error:
        raise OSError(str(error)) from None
    path.chmod(mode)  # safetensors replaces the file by one that only the owner can read
    return sha256_of(path)
