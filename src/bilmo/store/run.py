"""A run: work that takes long, belongs to one process at a time, and can be resumed.

A run makes an output, a file or a folder, and has a work folder with

    bilmo.lock   held by the process that computes the run
    run.json     what the run was started with; once it is there, the run can be resumed, with exactly that

and whatever the run keeps to resume from: checkpoints, finished parts. `store.atomic` has the rest: `new_file` for
checkpoints, `new_files` for the best result so far.

    identity = Identity(settings, inputs)
    with open_run(folder, folder / WORK, kind="training run", identity=identity, keeps=["checkpoint"]) as run:
        state = read(run.work / "checkpoint") if run.resumed else fresh()
        run.start()
        ...

Only files with names that runs give to their own files are removed; links are neither followed nor removed.

Knows: filelock, JSON. Blind to: what the run computes.
"""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bilmo.errors import BilmoError, ConfigError, InUse, OutputError
from bilmo.store.atomic import TEMPORARY, new_file, unwritable_message
from bilmo.store.validate import checked, parse_json

WORK, RUN, LOCK = "training", "run.json", "bilmo.lock"
"""The work folder of a run whose output is a folder; its description and its lock."""
FORMAT = 2
"""Of run.json and of all that a run keeps beside it; raised when runs of the version before cannot be resumed.
Format 1 had no number."""
ATTEMPTS = 100
"""To make and lock a work folder, which other runs may remove as they end."""


@dataclass(frozen=True)
class Identity:
    """The settings and inputs of a run; it can be resumed only with the same ones."""

    settings: Mapping[str, Any]
    """By name, as JSON has them; a section is a mapping of its own."""
    inputs: Mapping[str, str]
    """A fingerprint of each input, by what it is: "the text", "the model"."""


@dataclass(frozen=True)
class _Description:
    """The content of run.json."""

    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)


class Run:
    """A run in progress: its work folder is locked, and it may use all files in it."""

    def __init__(self, work: Path, kind: str, identity: Identity | None, *, resumed: bool) -> None:
        self.work, self._kind, self._identity = work, kind, identity
        self.resumed = resumed
        """Whether it was started before, by another process."""

    @property
    def resumable(self) -> bool:
        """Whether it can be resumed when it stops after its start."""
        return self._identity is not None

    def start(self) -> None:
        """Make the run resumable: its work folder is kept when it stops."""
        if self.resumed or self._identity is None or (self.work / RUN).exists():
            return
        with new_file(self.work / RUN) as partial:
            data = {"bilmo_run": FORMAT, "kind": self._kind, **asdict(self._identity)}
            partial.write_text(json.dumps(data, indent=1), encoding="utf-8")

    def remove(self) -> None:
        """Mark the run as complete; its work folder is removed on close."""
        (self.work / RUN).unlink(missing_ok=True)


@contextmanager
def open_run(
    output: Path, work: Path, *, kind: str, identity: Identity | None, keeps: Collection[str]
) -> Iterator[Run]:
    """The run that makes `output`, while no other process works on it.

    work: the run's work folder, in `output` or beside it. Folders that are missing are made, and removed again if the
        run stops before it is started.
    kind: what such a run is called in messages, such as "training run".
    identity: None if the run can never be repeated, so that nothing is kept and nothing is resumed.
    keeps: the names of all files and folders that the run puts into its work folder; `*` stands for any characters.

    A run of another kind, of another version, or with another identity is refused and left as it is; so is a folder
    that no run created, and a work folder that is a link or contains one.
    """
    made, lock = _lock(output, work, kind, keeps)
    try:
        resumed = False
        if (work / RUN).exists():
            if identity is None:
                raise OutputError(f"{output}: holds an unfinished run; finish it, or remove {work}")
            _check_same(output, work, kind, identity)
            resumed = True
        _remove_leftovers(output, work, () if resumed else keeps)
        yield Run(work, kind, identity, resumed=resumed)
    finally:
        try:
            if not (work / RUN).exists():
                with suppress(FileNotFoundError):  # the user removed the folder during the run
                    _remove_leftovers(output, work, keeps)
                    (work / LOCK).unlink()  # last, because it marks the folder as ours
        finally:
            lock.release()
            for folder in made:
                with suppress(OSError):  # not empty: it is used
                    folder.rmdir()


def started_with(work: Path) -> Mapping[str, Any] | None:
    """The settings of the run in a work folder; None if there is none, or if its description cannot be read."""
    try:
        return checked(parse_json(work / RUN), _Description, RUN).settings
    except BilmoError:
        return None


def _lock(output: Path, work: Path, kind: str, keeps: Collection[str]) -> tuple[list[Path], FileLock]:
    """Make and lock the work folder; returns the folders that a run had to make, the innermost first."""
    lock = FileLock(work / LOCK)
    for _ in range(ATTEMPTS):
        try:
            _check_ours(output, work, kind, keeps)
            made = [folder for folder in work.parents if not folder.exists()]
            if not work.exists() or _names(work):  # else it is an empty folder of the user
                made = [work, *made]
            work.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise InUse(
                f"{output}: another process is working on it. Wait until it ends, or choose another name."
            ) from None
        except (FileNotFoundError, FileExistsError):
            continue  # a run that has just ended removed its folder, or no folder can be made there
        except OSError as error:
            raise OutputError(f"{output}: cannot be written ({error.strerror or error}).") from None
        if (work / LOCK).exists():
            return made, lock
        lock.release()  # a run that has just ended removed the folder with the lock in it
    raise OutputError(unwritable_message(output))


def _check_ours(output: Path, work: Path, kind: str, keeps: Collection[str]) -> None:
    """Refuse a folder that no run created: it may hold the user's files."""
    inside = _names(work)
    for path in (work, *(work / name for name in inside if _is_ours(name, keeps))):
        with suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                what = "a link, which bilmo does not follow" if stat.S_ISLNK(mode) else "neither a file nor a folder"
                raise OutputError(f"{path}: is {what}. Remove it, or choose another output.")
    foreign = next((name for name in inside if not _is_ours(name, keeps)), None)
    # A run that was killed before it was started leaves its lock.
    ours = not inside or RUN in inside or (LOCK in inside and foreign is None)
    if work.parent != output:
        if not ours:
            raise OutputError(
                f"{work}: already exists and was not made by bilmo; it contains {foreign or inside[0]}. Rename it, or "
                "remove it first."
            )
        return
    try:
        str(output).encode("utf-8")
    except UnicodeEncodeError:
        raise OutputError(
            f"{output}: the name is not UTF-8, so weights in it could not be read. Choose another name."
        ) from None
    # Before it is started, a run has nothing beside its work folder.
    alone = all(name == work.name or TEMPORARY.fullmatch(name) for name in _names(output))
    if RUN not in inside and not (ours and alone):
        raise OutputError(f"{output}: already exists and is not a {kind}. Choose another name, or remove it first.")


def _names(folder: Path) -> list[str]:
    """The names in a folder; for a file, its own name."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        return [folder.name] if folder.exists() else []  # else one of its parents is a file


def _is_ours(name: str, keeps: Collection[str]) -> bool:
    """Whether a run gives this name to a file or folder in its work folder."""
    return any(fnmatchcase(name, pattern) for pattern in (RUN, LOCK, *keeps)) or bool(TEMPORARY.fullmatch(name))


def _remove_leftovers(output: Path, work: Path, names: Collection[str]) -> None:
    """Remove what killed processes left half written, and what has one of these names in the work folder."""
    left = [entry for entry in work.iterdir() if entry.name not in (RUN, LOCK) and _is_ours(entry.name, names)]
    if work.parent == output:
        left += [entry for entry in output.iterdir() if TEMPORARY.fullmatch(entry.name)]
    for entry in left:
        if not entry.is_symlink():  # no run makes links
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _check_same(output: Path, work: Path, kind: str, identity: Identity) -> None:
    """Refuse to resume a run of another kind or version, or with other settings or inputs."""
    over = f"To start over, choose another name or remove {output if work.parent == output else work}."
    try:
        data = parse_json(work / RUN)
        version = data.get("bilmo_run", 1) if isinstance(data, dict) else FORMAT
        was = checked(data, _Description, str(work / RUN)) if version == FORMAT else None
    except BilmoError as error:
        raise OutputError(f"{output}: cannot be resumed, because its description is damaged. {error}\n{over}") from None
    if was is None:
        raise OutputError(
            f"{output}: was started by another version of bilmo (run format {version}; this version resumes "
            f"format {FORMAT}). Finish it with that version. {over}"
        )
    if was.kind != kind:
        raise OutputError(f"{output}: contains a {was.kind}, not a {kind}. {over}")
    changed = _differences(was.settings, json.loads(json.dumps(identity.settings)))
    changed += [
        f"{name}: not the same as when the run was started"
        for name in dict.fromkeys((*was.inputs, *identity.inputs))
        if was.inputs.get(name) != identity.inputs.get(name)
    ]
    if changed:
        raise ConfigError(
            f"{output}: was started with different settings or inputs and cannot be resumed.\n"
            + "\n".join(f"  {line}" for line in changed)
            + f"\nTo resume it, use the same settings and inputs. {over}"
        )


def _differences(was: Any, now: Any, name: str = "") -> list[str]:
    """Each setting in which two runs differ."""
    if isinstance(was, dict) and isinstance(now, dict):
        keys = dict.fromkeys((*was, *now))
        parts = [_differences(was.get(key), now.get(key), f"{name}.{key}" if name else key) for key in keys]
        return [line for part in parts for line in part]
    shown = ["not set" if value is None else repr(value) for value in (was, now)]
    return [] if was == now else [f"{name} was {shown[0]} and is now {shown[1]}"]
