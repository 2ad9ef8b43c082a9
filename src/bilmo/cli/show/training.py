"""A training run on the screen: facts first, then a bar, and one line per evaluation.

Knows: rich, the events of a run. Blind to: networks, text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from bilmo.cli.show import messages
from bilmo.cli.show.tables import pairs
from bilmo.progress import bar

if TYPE_CHECKING:
    from bilmo.training.events import Event, Ready

YEAR = 365 * 24 * 3600
MANY_UNKNOWN = 0.1
"""Share of unknown words above which advice is shown."""


def show(events: Iterable[Event], folder: Path, more_words: str) -> None:
    """Show the progress of a training run and its result. `more_words`: options that enlarge the vocabulary."""
    from bilmo.store.checkpoint import CHECKPOINT
    from bilmo.store.run import RUN, WORK
    from bilmo.training.distributed.processes import is_first
    from bilmo.training.events import Evaluation, Finished, Reading, Ready, Step

    if not is_first():  # one process talks for all
        for _ in events:
            pass
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    try:
        with ExitStack() as stack:
            shown = bar(*columns)
            task = shown.add_task("training", total=1.0)
            for event in events:
                if isinstance(event, Reading):
                    messages.status(str(event))
                elif isinstance(event, Ready):
                    messages.notes(event.notes)
                    if not messages.is_quiet():
                        _ready(event, more_words)
                    stack.enter_context(shown)  # not before: reading the text has a bar of its own
                elif isinstance(event, Step):
                    speed = event.words / event.seconds
                    shown.update(task, completed=event.done, description=f"loss {event.loss:.3f}  {speed:,.0f} words/s")
                    if event.skipped:
                        shown.console.print(str(event), soft_wrap=True)
                elif isinstance(event, Evaluation):
                    if not messages.is_quiet():
                        shown.console.print(str(event), soft_wrap=True)
                elif isinstance(event, Finished):
                    print(f"{folder}: {event}")
    except KeyboardInterrupt:
        if (folder / WORK / RUN).exists():
            saved = (folder / WORK / CHECKPOINT).exists()
            how = (
                "resumes from the last checkpoint" if saved else "starts training again, without reading the text again"
            )
            print(f"bilmo: {folder}: the same command {how}", file=sys.stderr)
        raise


def _ready(event: Ready, more_words: str) -> None:
    """Print the facts that are known before training."""
    tokens, facts, left = event.corpus.tokens, event.corpus, event.cost.seconds
    many = event.unknown > MANY_UNKNOWN and event.left_out
    advice = f"; a larger vocabulary ({more_words}) reduces them" if many else ""
    pairs(
        [
            ("lang", event.corpus.lang),
            ("text", f"{tokens['train']:,} words in {facts.sentences['train']:,} sentences"),
            ("held out", f"{tokens['held_out']:,} words in {facts.sentences['held_out']:,} sentences"),
            ("vocabulary", f"{event.vocab:,} words; the text has {facts.words:,} distinct ones"),
            ("unknown words", f"{event.unknown:.2%} of the held-out text{advice}"),
            ("parameters", f"{event.parameters:,}"),
            ("memory", f"about {event.cost.memory / 1e9:.1f} GB" if event.cost.memory else "unknown"),
            ("time left", f"about {timedelta(seconds=round(left))}" if left < YEAR else "years"),
            ("run", "resumed" if event.resumed else "new"),
        ]
    )
