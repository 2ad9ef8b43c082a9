"""Training and scoring of a task on the terminal: facts, progress, layer weights, tables.

Knows: rich, events, scores. Blind to: networks, files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from bilmo.cli.show import messages
from bilmo.cli.show import tables as show
from bilmo.progress import bar as progress_bar

if TYPE_CHECKING:
    from bilmo.tasks.core.events import Event, Finished, Started
    from bilmo.tasks.core.measure import Score
    from bilmo.tasks.network.input import LearnedMix

MOST_LABELS = 20
"""The number of labels shown in a list or in a confusion table."""
WIDEST = 120
"""The number of characters in all labels of a confusion table."""


def watch(events: Iterable[Event], *, quiet: bool = False) -> Finished | None:
    """Show a run: facts first, then a progress bar on a terminal and one line per epoch. Returns how the run ended.

    quiet: only the bar, for many runs one after the other; `--quiet` hides that too.
    """
    from bilmo.tasks.core.events import Epoch, Finished, LayersComputed, Started, Step, WaitingForLayers

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    end = None
    waiting = False
    quiet = quiet or messages.is_quiet()
    with progress_bar(*columns, TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=1.0)
        for event in events:
            if isinstance(event, Started):
                if not quiet:
                    started(event)
            elif isinstance(event, LayersComputed):
                bar.update(task, completed=event.done / event.total, description="computing layers (once)")
            elif isinstance(event, WaitingForLayers):
                if not waiting:
                    bar.console.print("waiting for another run, which computes the layers of this data")
                waiting = True
            elif isinstance(event, Step):
                bar.update(task, completed=event.done, description=f"epoch {event.epoch}  loss {event.loss:.3f}")
            elif isinstance(event, Epoch) and not quiet:
                best = "  best so far" if event.best else ""
                bar.console.print(
                    f"epoch {event.number:>3}  loss {event.loss:.4f}  dev {event.value:.4f}  "
                    f"{event.seconds:.1f} s{best}"
                )
            elif isinstance(event, Finished):
                end = event
    return end


def started(event: Started) -> None:
    """Facts that are known before training."""
    labels = [f"{label} {count:,}" for label, count in event.labels.items()]
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    show.pairs(
        [
            ("examples", f"{event.examples:,}"),
            ("dev", f"{event.dev:,}" + (", split off from the examples" if event.dev_split_off else "")),
            *([("labels", ", ".join(labels[:MOST_LABELS]) + more)] if labels else []),
            ("input", f"{event.width:,} numbers per token"),
            ("parameters", f"{event.parameters:,}"),
        ]
    )
    messages.notes(event.notes)


def mixes(found: Sequence[LearnedMix]) -> None:
    """The learned layer weights."""
    for mix in found:
        shares = "  ".join(f"{'word' if k == 0 else f'layer {k}'} {share:.3f}" for k, share in enumerate(mix.shares))
        print(f"layer weights at the {mix.where}: {shares}  scale {mix.scale:.3f}")


def score(found: Score) -> None:
    """The measure, one row per label, and which labels are confused."""
    values = [(found.name, found.value), *found.details]
    show.pairs(
        [(name, f"{100 * value:.2f}" if found.percent else f"{value:.4f}") for name, value in values], right=True
    )
    for note in found.notes:
        print(note)
    by_label = [
        (row.label, f"{row.precision:.4f}", f"{row.recall:.4f}", f"{row.f1:.4f}", f"{row.true:,}")
        for row in found.labels
    ]
    if by_label:
        print()
        show.table(["label", "precision", "recall", "F1", "true"], by_label)
    names = sorted({name for pair in found.confusion for name in pair})
    if names and len(names) <= MOST_LABELS and sum(map(len, names)) <= WIDEST:
        print()
        rows = [(name, *(str(found.confusion.get((name, other), 0)) for other in names)) for name in names]
        show.table(["true \\ predicted", *names], rows)
    elif found.confusion:
        print("\nmost often confused:")
        wrong = sorted(((n, pair) for pair, n in found.confusion.items() if pair[0] != pair[1]), reverse=True)
        show.table(["true", "predicted", "times"], [(*pair, f"{n:,}") for n, pair in wrong[:MOST_LABELS]])


def score_json(found: Score) -> None:
    """The same for programs."""
    labels = [
        {"label": row.label, "precision": row.precision, "recall": row.recall, "f1": row.f1, "true": row.true}
        for row in found.labels
    ]
    confusion = [{"true": a, "predicted": b, "times": times} for (a, b), times in sorted(found.confusion.items())]
    shown = {"measure": found.name, "value": found.value, "details": dict(found.details)}
    notes = {"notes": list(found.notes)} if found.notes else {}
    show.json({**shown, **notes, "labels": labels, "confusion": confusion})
