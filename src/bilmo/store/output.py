"""Where a command may write: never onto its own inputs, whatever names they have.

Knows: the file system. Blind to: what is read and written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bilmo.errors import OutputError
from bilmo.text.files import STDIN
from bilmo.text.files import files as text_files


def check_output(targets: Sequence[Path], *, texts: Iterable[Path] = (), files: Iterable[Path] = ()) -> None:
    """Refuse an output that is an input, also under another name: a relative path, a link or a hard link.

    texts: inputs of which a folder means all files in it. An output in such a folder is refused too, because the same
        command would read it the next time.
    files: all other inputs.
    """
    present = [path for path in (*texts, *files) if path != STDIN and _found(path)]
    for target in targets:
        for path in present:
            if path.is_dir() and target.resolve().is_relative_to(path.resolve()):
                raise OutputError(
                    f"{target}: is inside {path}, whose files are all read as text. Choose a folder outside it."
                )
            if _found(target) and target.is_dir() and path.resolve().is_relative_to(target.resolve()):
                raise OutputError(f"{target}: contains the input {path}. Choose another folder.")
    inputs = {_found(path): path for path in text_files(present)}
    for target in targets:
        if _found(target) and _found(target) in inputs:
            raise OutputError(
                f"{target}: is the input {inputs[_found(target)]}, which would be overwritten. Choose another name."
            )


def _found(path: Path) -> tuple[int, int] | None:
    """The identity of a file or folder, which is the same for all of its names; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
