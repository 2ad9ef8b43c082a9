"""Read JSON files, validate plain data, check files against each other; errors name the file and the mistake.

Knows: pydantic. Blind to: networks, torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from bilmo.errors import BilmoError, ConfigError, DamagedFile, VocabError

Config = TypeVar("Config")
Read = TypeVar("Read")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path, kind: type[Config]) -> Config:
    """A JSON file as a validated dataclass; the error names every mistake with its place."""
    return checked(parse_json(path), kind, str(path))


def parse_json(path: Path) -> Any:
    """A JSON file as plain data."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path}: is not JSON ({error})") from None


def checked(data: Any, kind: type[Config], where: str) -> Config:
    """Plain data as a validated dataclass; the error names every mistake with its place."""
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        raise ConfigError(f"{where}: invalid settings.\n" + "\n".join(_mistakes(error))) from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _mistakes(error: ValidationError) -> list[str]:
    """One line per mistake: its place, what is accepted, what was found."""
    rows = []
    for mistake in error.errors()[:12]:
        place = ".".join(map(str, mistake["loc"])) or "all of it"
        # For a missing key, pydantic has only the value around it.
        found = "" if mistake["type"] == "missing" else f"; found {repr(mistake['input'])[:60]}"
        rows.append(f"  {place}: {mistake['msg']}{found}")
    return rows


def with_path_in_error(path: Path, read: Callable[[], Read]) -> Read:
    """Run a reader that does not know its file, and put the file name in front of its error."""
    try:
        return read()
    except BilmoError as error:
        raise error if str(path) in str(error) else type(error)(f"{path}: {error}") from None


def same_length(path: Path, entries: int | None, rows: int) -> None:
    """Check that a list beside the weights has one entry per row."""
    if entries is None:
        raise VocabError(f"{path}: is missing; it must name the {rows} rows of the weights")
    if entries != rows:
        raise VocabError(
            f"{path}: has {entries} entries, but the weights have {rows} rows. They belong to different models."
        )
