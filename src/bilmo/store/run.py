"""A run: work that takes long, belongs to one process at a time, and can be resumed.

A run makes an output, a file or a folder, and has a work folder with

    bilmo.lock   held by the process that is at work
    run.json     what the run was started with; once it is there, the run can be resumed, with exactly that

and whatever the run keeps to resume from: checkpoints, finished parts. `store.atomic` has the rest: `new_file` for
checkpoints, `new_files` for the best result so far.

    with open_run(folder, folder / WORK, kind="training run", identity=Identity(settings, inputs)) as run:
        state = read(run.work / "checkpoint") if run.resumed else fresh()
        run.start()
        ...

Knows: filelock, JSON. Blind to: what the run computes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bilmo.errors import ConfigError, OutputError
from bilmo.store.atomic import PARTIAL, new_file, unwritable_message

WORK, RUN, LOCK = "training", "run.json", "bilmo.lock"
"""The work folder of a run whose output is a folder; its description and its lock."""
FORMAT = 2
"""Of run.json and of all that a run keeps beside it; raised when runs of the version before cannot be resumed.
Format 1 had no number."""
ATTEMPTS = 100
"""To make and lock a work folder, which other runs may remove as they end."""


@dataclass(frozen=True)
class Identity:
    """What a run is started with; it can be resumed only with the same."""

    settings: Mapping[str, Any]
    """By name, as JSON has them; a section is a mapping of its own."""
    inputs: Mapping[str, str]
    """A fingerprint of each input, by what it is: "the text", "the model"."""


class Run:
    """A run at work: its work folder is locked, and it may use all files in it."""

    def __init__(self, work: Path, kind: str, identity: Identity | None, *, resumed: bool) -> None:
        self.work, self._kind, self._identity = work, kind, identity
        self.resumed = resumed
        """Whether it was started before, by another process."""

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
def open_run(output: Path, work: Path, *, kind: str, identity: Identity | None) -> Iterator[Run]:
    """The run that makes `output`, while no other process works on it.

    work: the run's work folder, in `output` or beside it. Folders that are missing are made, and removed again if the
        run stops before it is started.
    kind: what such a run is called in messages, such as "training run".
    identity: None if the run can never be repeated, so that nothing is kept and nothing is resumed.

    A run of another kind, of another version, or with another identity is refused and left as it is; so is a folder
    that no run created.
    """
    made, lock = _lock(output, work, kind)
    try:
        resumed = False
        if (work / RUN).exists():
            if identity is None:
                raise OutputError(f"{output}: holds an unfinished run; finish it, or remove {work}")
            _check_same(output, work, kind, identity)
            resumed = True
        _remove_leftovers(output, work, everything=not resumed)
        yield Run(work, kind, identity, resumed=resumed)
    finally:
        try:
            if not (work / RUN).exists():
                made = [work, *made]
                with suppress(FileNotFoundError):  # the user removed the folder during the run
                    _remove_leftovers(output, work, everything=True)
                    (work / LOCK).unlink()  # last, because it marks the folder as ours
        finally:
            lock.release()
            for folder in made:
                with suppress(OSError):  # not empty: it is used
                    folder.rmdir()


def started_with(work: Path) -> Mapping[str, Any] | None:
    """The settings of the run in a work folder; None if there is none, or if its description cannot be read."""
    try:
        settings = json.loads((work / RUN).read_bytes())["settings"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return settings if isinstance(settings, dict) else None


def _lock(output: Path, work: Path, kind: str) -> tuple[list[Path], FileLock]:
    """Make and lock the work folder; returns the folders that had to be made, the innermost first."""
    lock = FileLock(work / LOCK)
    for _ in range(ATTEMPTS):
        try:
            _check_ours(output, work, kind)
            made = [folder for folder in work.parents if not folder.exists()]
            work.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise OutputError(
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


def _check_ours(output: Path, work: Path, kind: str) -> None:
    """Refuse a folder that no run created: it may hold the user's files."""
    inside = _names(work)
    # A run that was killed before it was started leaves its lock.
    ours = not inside or RUN in inside or LOCK in inside
    if work.parent != output:
        if not ours:
            raise OutputError(f"{work}: already exists and was not made by bilmo. Rename it, or remove it first.")
        return
    try:
        str(output).encode("utf-8")
    except UnicodeEncodeError:
        raise OutputError(
            f"{output}: the name is not UTF-8, so weights in it could not be read. Choose another name."
        ) from None
    # Before it is started, a run has nothing beside its work folder.
    alone = all(name == work.name or _is_leftover(name) for name in _names(output))
    if RUN not in inside and not (ours and alone):
        raise OutputError(f"{output}: already exists and is not a {kind}. Choose another name, or remove it first.")


def _names(folder: Path) -> list[str]:
    """What is in a folder; a file has its own name."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        return [folder.name] if folder.exists() else []  # else one of its parents is a file


def _is_leftover(name: str) -> bool:
    """Whether a process that was killed left a file or folder of this name half written."""
    return name.startswith(".") and name.endswith(PARTIAL)


def _remove_leftovers(output: Path, work: Path, *, everything: bool) -> None:
    """Remove what killed processes left half written; with `everything`, all that the work folder holds."""
    left = [entry for entry in work.iterdir() if entry.name != LOCK and (everything or _is_leftover(entry.name))]
    if work.parent == output:
        left += [entry for entry in output.iterdir() if _is_leftover(entry.name)]
    for entry in left:
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _check_same(output: Path, work: Path, kind: str, identity: Identity) -> None:
    """Refuse to resume a run of another kind or version, or with other settings or inputs."""
    over = f"To start over, choose another name or remove {output if work.parent == output else work}."
    try:
        was = json.loads((work / RUN).read_bytes())
        version, was_kind = was.get("bilmo_run"), was.get("kind")
        settings, inputs = was.get("settings", {}), was.get("inputs", {})
    except (OSError, ValueError, AttributeError) as error:
        raise OutputError(f"{output}: {work / RUN} is damaged ({error}). {over}") from None
    if version != FORMAT:
        raise OutputError(
            f"{output}: was started by another version of bilmo (run format {version or 1}; this version resumes "
            f"format {FORMAT}). Finish it with that version. {over}"
        )
    if was_kind != kind:
        raise OutputError(f"{output}: contains a {was_kind}, not a {kind}. {over}")
    changed = _differences(settings, json.loads(json.dumps(identity.settings)))
    changed += [
        f"{name}: not the same as when the run was started"
        for name in dict.fromkeys((*inputs, *identity.inputs))
        if inputs.get(name) != identity.inputs.get(name)
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
