"""Download a file so that an interrupted download can be resumed.

The file grows as NAME.part; beside it, NAME.part.json says which version of the file it is a part of. The complete
file appears under its name.

Knows: HTTP. Blind to: what the file is.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import logging
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bilmo import __version__
from bilmo.errors import BilmoError, DamagedFile, OutputError
from bilmo.store.atomic import new_file, sync

ATTEMPTS = 5
"""Connections in a row that may be cut without a byte received before the download is given up."""
WAIT = 1.0
"""Seconds before the second attempt; twice as long before each further one."""
TIMEOUT = 60.0
"""Seconds without an answer after which a connection counts as cut."""
CHUNK = 1 << 20
PART, STATE = ".part", ".part.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Received:
    """How much of a file is there."""

    bytes: int
    total: int | None
    """None if the server does not say."""


@dataclass(frozen=True)
class Version:
    """The length and the tag of a file at an address, which identify its version."""

    url: str
    tag: str
    """The server's ETag, or the date of the last change; empty if it gives neither."""
    total: int | None


def download(url: str, target: Path) -> Iterator[Received]:
    """Download to `target`, or resume; the events say how much is there. A complete file is not downloaded again."""
    if target.exists():
        return
    part, state = target.with_name(target.name + PART), target.with_name(target.name + STATE)
    failed = 0
    while True:
        before = _size(part)
        try:
            yield from _receive(url, part, state)
            break
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # the part is longer than the file
                part.unlink(missing_ok=True)
            elif error.code < 500 and error.code not in (408, 429):
                raise _refused(url, error) from None
            problem: Exception = error
        except (http.client.HTTPException, OSError) as error:
            problem = error
        failed = failed + 1 if _size(part) <= before else 1
        if failed >= ATTEMPTS:
            raise _gave_up(url, part, problem) from None
        log.info("%s: the connection was cut (%s); trying again", url, problem)
        time.sleep(WAIT * 2 ** (failed - 1))
    sync(part)
    part.replace(target)
    state.unlink(missing_ok=True)


def check_sha256(path: Path, expected: str) -> str:
    """The SHA-256 of a file; a file that has another than expected is removed."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if expected and found != expected:
        path.unlink()
        raise DamagedFile(
            f"{path.name}: the SHA-256 of the downloaded file is {found}, but {expected} was published. "
            "The file was removed. Try again; if it happens again, the file at its address was changed."
        )
    return found


def _receive(url: str, part: Path, state: Path) -> Iterator[Received]:
    """Append to the part until it is complete; a connection that ends too early is an OSError or HTTPException."""
    had, known = _size(part), _read_state(state)
    headers = {"User-Agent": f"bilmo/{__version__}"}
    if had and known is not None and known.url == url and known.tag:
        if had == known.total:
            return
        headers |= {"Range": f"bytes={had}-", "If-Range": known.tag}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        start = _start(response.headers) if response.status == 206 else 0
        if start not in (0, had):
            raise http.client.HTTPException(f"the server sent the file from byte {start} on, not from {had}")
        length = response.headers.get("Content-Length")
        total = start + int(length) if length and length.isdecimal() else None
        _write_state(state, Version(url, _tag(response.headers), total))
        _check_disk_space(part, total, start)
        log.debug("%s: %s, from byte %d of %s", url, response.status, start, total)
        with _writing(part), part.open("r+b" if start else "wb") as file:
            file.truncate(start)
        yield Received(start, total)
        while chunk := response.read(CHUNK):
            with _writing(part), part.open("ab") as file:
                file.write(chunk)
            yield Received(_size(part), total)
    if total is not None and _size(part) < total:
        raise ConnectionError(f"the connection ended after {_size(part):,} of {total:,} bytes")


def _start(headers: Mapping[str, str]) -> int:
    """The first byte of a partial answer."""
    found = re.match(r"bytes (\d+)-", headers.get("Content-Range") or "")
    return int(found[1]) if found else 0


def _tag(headers: Mapping[str, str]) -> str:
    """The value for If-Range: a strong ETag, or the date of the last change."""
    tag = headers.get("ETag") or ""
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified") or ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _read_state(path: Path) -> Version | None:
    try:
        data: dict[str, Any] = json.loads(path.read_bytes())
        return Version(str(data["url"]), str(data["tag"]), data["total"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_state(path: Path, version: Version) -> None:
    with new_file(path) as partial:
        partial.write_text(json.dumps(asdict(version)), encoding="utf-8")


def _check_disk_space(part: Path, total: int | None, start: int) -> None:
    needed, free = (total or 0) - start, shutil.disk_usage(part.parent).free
    if needed > free:
        raise OutputError(
            f"{part.parent}: {needed / 1e6:,.0f} MB are to be downloaded, but only {free / 1e6:,.0f} MB are free. "
            "Free some space, or set BILMO_MODELS to a folder on another disk, and run the same command again."
        )


def _refused(url: str, error: urllib.error.HTTPError) -> BilmoError:
    return BilmoError(
        f"{url}: the server answered {error.code} ({error.reason}). The file may have been moved or removed. "
        "If you know a copy of it, use --mirror or BILMO_MIRROR."
    )


def _gave_up(url: str, part: Path, problem: Exception) -> BilmoError:
    reason = getattr(problem, "reason", None) or problem
    kept = f" {_size(part):,} bytes are kept; the same command resumes the download." if _size(part) else ""
    return BilmoError(f"{url}: cannot be downloaded ({reason}).{kept}")


@contextmanager
def _writing(part: Path) -> Iterator[None]:
    """Turn errors of the disk into ones that are not taken for a connection that was cut."""
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or error
        raise OutputError(
            f"{part}: cannot be written ({reason}). What was downloaded is kept. Free some space, or set "
            "BILMO_MODELS to a folder on another disk, and run the same command again."
        ) from None
