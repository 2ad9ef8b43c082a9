"""`bilmo.train` and `bilmo.finetune`: text to a model, in Python.

Knows: training runs, layouts, Embedder. Blind to: the command line.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Literal, Unpack, overload

from bilmo import progress as bars
from bilmo.api.settings import RecipeSettings
from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.errors import OutputError
from bilmo.formats import open as layouts
from bilmo.text.files import Paths, listed_paths
from bilmo.training import recipe as recipes
from bilmo.training import run
from bilmo.training.distributed.pieces import Map, processes
from bilmo.training.distributed.processes import is_first
from bilmo.training.events import Event, Ready, Step

log = logging.getLogger("bilmo")


@overload
def train(
    texts: Paths,
    output: str | PathLike[str],
    *,
    recipe: str = "novel",
    workers: int | Map = 1,
    progress: bool = False,
    events: Literal[False] = False,
    **settings: Unpack[RecipeSettings],
) -> Embedder: ...
@overload
def train(
    texts: Paths,
    output: str | PathLike[str],
    *,
    recipe: str = "novel",
    workers: int | Map = 1,
    progress: bool = False,
    events: Literal[True],
    **settings: Unpack[RecipeSettings],
) -> Iterator[Event]: ...
def train(
    texts: Paths,
    output: str | PathLike[str],
    *,
    recipe: str = "novel",
    workers: int | Map = 1,
    progress: bool = False,
    events: bool = False,
    **settings: Unpack[RecipeSettings],
) -> Embedder | Iterator[Event]:
    """Train a model on text files, as `bilmo train` does, and load it.

    The same call resumes a run that was interrupted. A run that is complete is not repeated: its model is loaded.

    texts: a text file, a folder of text files, or several of them.
    output: the model folder to create.
    recipe: "tiny", "novel", "small", "original", "en", "zh", or the path of a TOML file.
    workers: number of processes that split the text into words, which is done once; or a function that has it done
        elsewhere, such as `bilmo.plug.ray.on_cluster("auto")`. The model is the same.
    progress: show a progress bar on a terminal or in a notebook.
    events: return an iterator of events instead (`bilmo.training.events`): the run advances as they are read, and
        stops where you stop reading.
    settings: replace settings of the recipe, by name, such as `minutes=10`, `epochs=3`, `lang="en"`, `seed=1`. The
        names are those of the recipe's sections; most of them are also options of `bilmo train`.

    Under torchrun, call it in every process. Each one loads the model at the end; only the first one logs and shows a
    bar.

    The logger `bilmo` gets the facts and every evaluation at level INFO, and what needs attention at level WARNING.
    """
    chosen = recipes.read(recipe, dict(settings))
    mapped = processes(workers) if isinstance(workers, int) else workers
    reading = partial(_reading, show=progress)
    found = run.train(listed_paths(texts), Path(output), chosen, reading=reading, mapped=mapped)
    return found if events else _finished(found, Path(output), progress)


@overload
def finetune(
    model: str | PathLike[str],
    texts: Paths,
    output: str | PathLike[str],
    *,
    recipe: str = "finetune",
    add_words: int = 0,
    progress: bool = False,
    events: Literal[False] = False,
    **settings: Unpack[RecipeSettings],
) -> Embedder: ...
@overload
def finetune(
    model: str | PathLike[str],
    texts: Paths,
    output: str | PathLike[str],
    *,
    recipe: str = "finetune",
    add_words: int = 0,
    progress: bool = False,
    events: Literal[True],
    **settings: Unpack[RecipeSettings],
) -> Iterator[Event]: ...
def finetune(
    model: str | PathLike[str],
    texts: Paths,
    output: str | PathLike[str],
    *,
    recipe: str = "finetune",
    add_words: int = 0,
    progress: bool = False,
    events: bool = False,
    **settings: Unpack[RecipeSettings],
) -> Embedder | Iterator[Event]:
    """Fine-tune a model on text files, as `bilmo finetune` does, and load the new model.

    model: the name or the path of the model to start from; it stays as it is.
    recipe: "finetune", or the path of a TOML file; its network section is ignored.
    add_words: number of new words from the text that the model learns to predict.

    Everything else is as in `bilmo.train`.
    """
    folder = Path(output)
    if folder.resolve() == Path(model).resolve():
        raise OutputError(f"{folder}: is the folder of the original model; choose another folder for the new one")
    with bars.working("reading the model", show=progress and is_first()):
        bundle = layouts.read(Path(model))
    chosen = recipes.read(recipe, dict(settings))
    base = run.Base(bundle, str(model), add_words)
    found = run.train(listed_paths(texts), folder, chosen, base, reading=partial(_reading, show=progress))
    return found if events else _finished(found, folder, progress)


def _finished(events: Iterable[Event], folder: Path, progress: bool) -> Embedder:
    """Run to the end, with a bar and a log, which only the first of several processes has; then load the model."""
    rest = iter(events)
    if not is_first():
        deque(rest, maxlen=0)
        return load(folder)
    for event in rest:  # the text may be read now, which has a bar of its own
        log.info("%s: %s", folder, event)
        if isinstance(event, Ready):
            for note in event.notes:
                log.warning("%s: %s", folder, note)
            break
    with bars.share_done("training", 1.0, show=progress) as update:
        for event in rest:
            if isinstance(event, Step):
                update(event.done, f"loss {event.loss:.3f}")
                if event.skipped:
                    log.warning("%s: %s", folder, event)
            else:
                log.info("%s: %s", folder, event)
    return load(folder)


def _reading(lines: Iterator[str], *, show: bool) -> Iterator[str]:
    """Pass lines on as they are read, with a bar that counts them."""
    with bars.counting("lines read", show=show) as counted:
        yield from counted(lines)
