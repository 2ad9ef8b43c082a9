"""Watches a process: nothing may be written outside some folders, and no program or connection may be started.

Python reports every such operation to the audit hook before it happens, and the hook prevents it. Files that libraries
write in C are not reported; for these, a box has files of its own that must not change.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PATHS = {
    **dict.fromkeys(("os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate", "os.utime", "os.chown"), (0,)),
    **{"os.rename": (0, 1), "os.link": (1,), "os.symlink": (1,), "open": (0,)},
}
"""Operations that change files, and which of their arguments are the paths that they change."""
WITHOUT_FOLDER = ("open", "os.truncate")
"""Of the others, the last argument is the open folder that a path is relative to, or -1."""
NEVER = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "socket.bind")


class Trespass(BaseException):
    """An operation outside the box. Not an Exception, so that no handler in between hides it."""


class Guard:
    """The audit hook; it cannot be removed again, only switched off. A process has one, also after a fork."""

    def __init__(self) -> None:
        self.allowed: list[str] = []
        self.on = False
        self.trespass: Trespass | None = None
        """The first one; a library may hide it in an error of its own."""
        self.before_change: Callable[[], None] = lambda: None
        """Called before each operation that changes files."""

    def start(self, allowed: Iterable[Path]) -> None:
        """Watch this process from now on; only these folders may be changed."""
        self.allowed = [os.path.realpath(folder) for folder in allowed]
        sys.addaudithook(self._hook)

    def _hook(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in NEVER:
            self._refuse(f"{event}{given!r:.200}")
        if event not in PATHS or (event == "open" and not (given[2] or 0) & WRITING):
            return
        for number in PATHS[event]:
            path = given[number]
            if not isinstance(path, int) and not self._inside(path, -1 if event in WITHOUT_FOLDER else given[-1]):
                self._refuse(f"{event} {os.fsdecode(path)}")
        self.before_change()

    def _refuse(self, what: str) -> None:
        self.trespass = self.trespass or Trespass(what)
        raise self.trespass

    def _inside(self, path: Any, folder: Any) -> bool:
        """Whether the name is in an allowed folder; links in the folders above it are followed."""
        path = os.fsdecode(path)
        if not path.startswith("/") and isinstance(folder, int) and folder >= 0:  # a path relative to an open folder
            path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)  # noqa: PTH115, PTH118
        parent, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
        place = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118
        return place == os.devnull or any(f"{place}/".startswith(f"{folder}/") for folder in self.allowed)


GUARD = Guard()
