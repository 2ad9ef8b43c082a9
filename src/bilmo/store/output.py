"""Where a command may write: never onto its own inputs, whatever names they have.

Knows: the file system. Blind to: what is read and written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os.path import exists, isdir  # those of pathlib raise an error for some names that cannot exist
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
    present = [path for path in (*texts, *files) if path != STDIN and exists(path)]
    for target in targets:
        for path in present:
            if path.is_dir() and target.resolve().is_relative_to(path.resolve()):
                raise OutputError(
                    f"{target}: is inside {path}, whose files are all read as text. Choose a folder outside it."
                )
            if isdir(target) and path.resolve().is_relative_to(target.resolve()):
                raise OutputError(f"{target}: contains the input {path}. Choose another folder.")
    inputs = {_identity(path): path for path in text_files(present)}
    for target in targets:
        if exists(target) and _identity(target) in inputs:
            raise OutputError(
                f"{target}: is the input {inputs[_identity(target)]}, which would be overwritten. Choose another name."
            )


def _identity(path: Path) -> tuple[int, int]:
    """The same for all names of a file."""
    found = path.stat()
    return found.st_dev, found.st_ino
