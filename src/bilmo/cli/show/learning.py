"""How a task that learns looks in a terminal: facts, progress, learned layer weights, tables of measures.

Knows: rich, events, scores. Blind to: networks, files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from bilmo.cli.show import tables as show

if TYPE_CHECKING:
    from bilmo.tasks.core.events import Event, Finished, Prepared
    from bilmo.tasks.core.measure import Score
    from bilmo.tasks.network.input import LearnedMix

MOST_LABELS = 20
"""In a list, or in a confusion table."""


def watch(events: Iterable[Event], *, quiet: bool = False) -> Finished | None:
    """A run as it goes: facts first, then a bar on a terminal and a line an epoch. Returns how it ended.

    quiet: the bar alone, for many runs one after the other.
    """
    from bilmo.tasks.core.events import Computed, Epoch, Finished, Prepared, Step

    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    end = None
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task("", total=1.0)
        for event in events:
            if isinstance(event, Prepared):
                if not quiet:
                    prepared(event)
            elif isinstance(event, Computed):
                bar.update(task, completed=event.done / event.total, description="computing layers, once")
            elif isinstance(event, Step):
                bar.update(task, completed=event.done, description=f"epoch {event.epoch}  loss {event.loss:.3f}")
            elif isinstance(event, Epoch) and not quiet:
                best = "  best so far" if event.best else ""
                console.print(
                    f"epoch {event.number:>3}  loss {event.loss:.4f}  dev {event.value:.4f}  "
                    f"{event.seconds:.1f} s{best}"
                )
            elif isinstance(event, Finished):
                end = event
    return end


def prepared(event: Prepared) -> None:
    """What is known before learning begins."""
    labels = [f"{label} {count:,}" for label, count in event.labels.items()]
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    show.pairs(
        [
            ("examples", f"{event.examples:,}"),
            ("dev", f"{event.dev:,}" + (", split off" if event.dev_split_off else "")),
            ("labels", ", ".join(labels[:MOST_LABELS]) + more),
            ("vector that goes in", f"{event.width:,} numbers a token"),
            ("parameters", f"{event.parameters:,}"),
        ]
    )
    show.notes(event.notes)


def mixes(found: Sequence[LearnedMix]) -> None:
    """The learned layer weights."""
    for mix in found:
        shares = "  ".join(f"{'word' if k == 0 else f'layer {k}'} {share:.3f}" for k, share in enumerate(mix.shares))
        print(f"layer weights at the {mix.where}: {shares}  scale {mix.scale:.3f}")


def score(found: Score) -> None:
    """The measure, a table by label, and which labels are taken for which."""
    show.pairs([(name, f"{value:.4f}") for name, value in [(found.name, found.value), *found.facts]], right=True)
    print()
    by_label = [
        (row.label, f"{row.precision:.4f}", f"{row.recall:.4f}", f"{row.f1:.4f}", f"{row.true:,}") for row in found.rows
    ]
    show.table(["label", "precision", "recall", "F1", "true"], by_label)
    names = [row.label for row in found.rows]
    if found.confusion and len(names) <= MOST_LABELS:
        print()
        rows = [(name, *(str(found.confusion.get((name, other), 0)) for other in names)) for name in names]
        show.table(["true \\ answered", *names], rows)
    elif found.confusion:
        print("\nmost often confused, true and answered:")
        wrong = sorted(((n, pair) for pair, n in found.confusion.items() if pair[0] != pair[1]), reverse=True)
        show.table(["true", "answered", "times"], [(*pair, f"{n:,}") for n, pair in wrong[:MOST_LABELS]])
