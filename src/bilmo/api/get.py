"""`bilmo.get`: download a published model, verify it, convert it and install it under its name.

The files are downloaded into a hidden folder beside the installed models. They stay there until the model is installed,
so that an interrupted download is resumed. The model appears complete or not at all.

Knows: published models, downloads, layouts. Blind to: the command line.
"""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from bilmo import progress as bars
from bilmo.embed.loaded import settled
from bilmo.errors import BilmoError, ConfigError, DamagedFile, OutputError
from bilmo.formats import open as layouts
from bilmo.store import model_folder
from bilmo.store.bundle import Bundle
from bilmo.store.card import card_of
from bilmo.store.download import check_sha256, download
from bilmo.store.published import PublishedModel, find
from bilmo.store.user_folders import models_folder

MIRROR = "BILMO_MIRROR"
"""The environment variable with the address of a mirror."""
DOWNLOADS = ".downloads"
log = logging.getLogger("bilmo")


def get(name: str, *, mirror: str | None = None, progress: bool = False) -> Path:
    """Install a published model, as `bilmo get` does, and return its folder; `bilmo.load(name)` then loads it.

    A model that is installed already is not downloaded again. The same call resumes a download that was interrupted.

    name: one of the names in `bilmo.models(all=True)`.
    mirror: address of a copy of the files, with one folder per model, instead of the publisher's address; by default
        the environment variable BILMO_MIRROR.
    progress: show a progress bar on a terminal or in a notebook.
    """
    model = find(name)
    target, downloads = models_folder() / name, models_folder() / DOWNLOADS
    mirror = mirror or os.environ.get(MIRROR)
    if mirror is not None and not mirror.startswith(("http://", "https://")):
        raise ConfigError(f"the mirror is {mirror!r}; it must be an address that starts with https:// or http://")
    try:
        (downloads / name).mkdir(parents=True, exist_ok=True)
        lock = FileLock(downloads / f"{name}.lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise OutputError(f"{name}: another process is installing it. Wait until it ends.") from None
    except OSError as error:
        raise OutputError(
            f"{models_folder()}: cannot be written ({error.strerror or error}). Set BILMO_MODELS to another folder."
        ) from None
    try:
        if not target.exists():
            _install(model, downloads / name, target, model.urls(mirror), progress)
        shutil.rmtree(downloads / name, ignore_errors=True)
    finally:
        lock.release()
    return target


def _install(model: PublishedModel, work: Path, target: Path, urls: dict[str, str], progress: bool) -> None:
    hashes = {}
    for number, (file, url) in enumerate(urls.items(), start=1):
        _download(url, work / file, f"file {number} of {len(urls)}", progress)
        hashes[file] = check_sha256(work / file, model.sha256.get(file, ""))
    unchecked = [file for file in urls if file not in model.sha256]
    if unchecked:
        log.info("no checksum is known for %s; length and contents are checked", ", ".join(unchecked))
    with bars.working("reading the model", show=progress):
        bundle = _read(model, work, list(urls))
    with bars.working("computing the settled start state", show=progress):
        bundle = settled(bundle)
    section = _source(model, urls, hashes)
    with bars.working("writing the model", show=progress):
        model_folder.write(replace(bundle, card=card_of(bundle, section)), target)


def _download(url: str, path: Path, what: str, progress: bool) -> None:
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    log.info("downloading %s", url)
    columns = (TextColumn(what), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with bars.bar(*columns, show=progress) as shown:
        task = shown.add_task("downloading", total=None)
        for event in download(url, path):
            shown.update(task, completed=event.bytes, total=event.total)


def _read(model: PublishedModel, work: Path, files: list[str]) -> Bundle:
    """The model in its published layout; files that are not a model are removed, because no resume can mend them."""
    try:
        return layouts.read(work / files[0] if len(files) == 1 else work)
    except BilmoError as error:
        shutil.rmtree(work, ignore_errors=True)
        raise DamagedFile(
            f"{model.name}: the downloaded files are not a model that bilmo can read, and were removed. {error}"
        ) from error


def _source(model: PublishedModel, urls: dict[str, str], hashes: dict[str, str]) -> str:
    """The part of the model card that says where the model comes from."""
    rows = [
        ("name", model.name),
        ("language", model.language),
        ("published by", model.publisher),
        ("page", model.page),
        ("licence", model.licence or "unknown"),
        ("trained on", model.text or "unknown"),
        *([("lang", model.lang)] if model.lang else []),
        *((f"file {file}", f"{url}, SHA-256 {hashes[file]}") for file, url in urls.items()),
    ]
    table = "".join(f"| {name} | {value} |\n" for name, value in rows)
    return f"## Source\n\nInstalled by `bilmo get`.\n\n| what | value |\n|---|---|\n{table}"
