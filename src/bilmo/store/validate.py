"""Read JSON files, validate plain data, check files against each other; errors name the file and the mistake.

Knows: pydantic, numpy. Blind to: networks, torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from bilmo.errors import BilmoError, ConfigError, DamagedFile, VocabError, WeightsError

Config = TypeVar("Config")
Read = TypeVar("Read")


LARGEST_JSON = 1 << 20
"""Bytes of a file of settings: a thousand times as many as any real one has."""


def regular_file(path: Path, remedy: str = "") -> Path:
    """The same path, if it is a file: a pipe or a device in its place might never end."""
    if not path.is_file():
        what = "is not a file" if path.exists() else "is missing"
        raise DamagedFile(f"{path}: {what}. {remedy}".rstrip())
    return path


MOST_MISTAKES = 12
"""Mistakes that an error lists."""
KINDS: dict[type, str] = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path, kind: type[Config]) -> Config:
    """A JSON file as a validated dataclass; the error names every mistake with its place."""
    return checked(parse_json(path), kind, str(path))


def parse_json(path: Path, largest: int = LARGEST_JSON) -> Any:
    """A JSON file of at most `largest` bytes as plain data."""
    try:
        size = regular_file(path).stat().st_size
        if size > largest:
            raise DamagedFile(f"{path}: has {size:,} bytes; a file of settings has at most {largest:,}")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path}: is not JSON ({error})") from None


def checked(data: Any, kind: type[Config], where: str) -> Config:
    """Plain data as a validated dataclass; the error names every mistake with its place.

    Values are converted, as "64" to a number, only if the dataclass is not marked as STRICT (see net/config.py).
    """
    try:
        found: Config = _adapter(kind).validate_python(data)  # type: ignore[arg-type]
        mistakes = list(_converted(data, found))[:MOST_MISTAKES] if hasattr(kind, "__pydantic_config__") else []
    except ValidationError as error:
        mistakes = _mistakes(error)
    except RecursionError:
        mistakes = ["  lists or tables inside each other, deeper than any setting"]
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    if mistakes:
        raise ConfigError(f"{where}: invalid settings.\n" + "\n".join(mistakes))
    return found


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """The validation of a dataclass; pydantic takes some milliseconds to build it."""
    return TypeAdapter(kind)


def _converted(data: Any, found: Any, place: str = "") -> Iterator[str]:
    """One line per value that pydantic converted to another type, such as "64" or true to a number."""
    if isinstance(data, dict):
        parts = found if isinstance(found, dict) else vars(found) if is_dataclass(found) else {}
        for key, value in data.items():
            yield from _converted(value, parts.get(key, value), f"{place}.{key}" if place else str(key))
    elif isinstance(data, list | tuple) and isinstance(found, list | tuple):
        for number, (value, part) in enumerate(zip(data, found, strict=True)):
            yield from _converted(value, part, f"{place}.{number}")
    elif type(data) in KINDS and type(data) is not type(found) and (type(data), type(found)) != (int, float):
        yield f"  {place}: must be {KINDS.get(type(found), 'a different type')}; found {_shown(data)}"


def _mistakes(error: ValidationError) -> list[str]:
    """One line per mistake: its place, what is accepted, what was found."""
    rows = []
    for mistake in error.errors(include_url=False)[:MOST_MISTAKES]:
        place = ".".join(map(str, mistake["loc"])) or "all of it"
        # For a missing key, pydantic has only the value around it.
        found = "" if mistake["type"] == "missing" else f"; found {_shown(mistake['input'])}"
        rows.append(f"  {place}: {mistake['msg']}{found}")
    return rows


def _shown(value: object) -> str:
    """The beginning of a value."""
    try:
        return repr(value)[:60]
    except RecursionError:
        return "lists or tables inside each other"


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


def finite_float32(values: NDArray[Any], where: str) -> NDArray[Any]:
    """Values as float32; anything but finite numbers is refused."""
    if not np.issubdtype(values.dtype, np.floating):
        raise WeightsError(f"{where} contains {values.dtype}; weights must be floating-point numbers")
    with np.errstate(over="ignore"):  # values too large for float32 become infinite and are refused below
        values = values.astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        bad = int(values.size - np.isfinite(values).sum())
        raise WeightsError(f"{where}: {bad} of {values.size} values are not finite. The file is damaged.")
    return values
