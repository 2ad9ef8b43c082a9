"""How embedding looks: a bar while it runs, and vectors as a table where there is no file to write them to.

Knows: rich. Blind to: how vectors are made.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from bilmo.embed.job import Event
    from bilmo.embed.output.table import EmbeddedText, VectorSpec

LARGE = 100_000_000
"""Bytes of a file whose size is told before it is made."""
NUMBERS = 6
"""Numbers of a vector that a table shows."""


def embedding(events: Iterable[Event], output: Path, split: str) -> None:
    """A run as it goes: sentences, tokens a second, time left; quiet where standard error is no terminal."""
    from bilmo.embed.job import Finished, Started, Step, readable
    from bilmo.embed.output.parts import folder_of

    console = Console(stderr=True, highlight=False)
    speed = TextColumn("{task.fields[speed]}")
    columns = (
        TextColumn("sentences"),
        BarColumn(),
        MofNCompleteColumn(),
        speed,
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    tokens, piped = 0, False
    begin = time.monotonic()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("embedding", total=None, speed="")
        try:
            for event in events:
                if isinstance(event, Started):
                    piped = event.sentences is None
                    bar.update(task, total=event.sentences, completed=event.done_sentences)
                    if event.bytes is not None and event.bytes >= LARGE:
                        print(f"note: {output} will have about {readable(event.bytes)}", file=sys.stderr)
                    if event.done_parts:
                        print(
                            f"note: {event.done_parts:,} parts ({event.done_sentences:,} of {event.sentences:,} "
                            "sentences) were done already",
                            file=sys.stderr,
                        )
                elif isinstance(event, Step):
                    tokens += event.tokens
                    rate = f"{tokens / max(1e-9, time.monotonic() - begin):,.0f} tokens/s"
                    bar.update(task, advance=event.sentences, speed=rate)
                elif isinstance(event, Finished):
                    for note in event.notes:
                        print(f"note: {note}", file=sys.stderr)
                    print(f"{output}: {event.sentences:,} sentences, {event.tokens:,} tokens, split: {split}")
        except KeyboardInterrupt:
            if piped:
                print("note: standard input cannot be read again, so nothing is kept to go on from", file=sys.stderr)
            elif folder_of(output).exists():
                print("note: finished parts are kept; the same command goes on from there", file=sys.stderr)
            raise


def json_lines(rows: Iterable[EmbeddedText], spec: VectorSpec) -> None:
    """A line for each text, as in a .jsonl file."""
    from bilmo.embed.output.jsonl import line

    for row in rows:
        sys.stdout.buffer.write(line(row, spec) + b"\n")  # as bytes: a terminal's encoding is not always UTF-8
        sys.stdout.buffer.flush()


def tables(rows: Iterable[EmbeddedText], spec: VectorSpec) -> None:
    """Tokens and the first numbers of their vectors, for a terminal."""
    console = Console(highlight=False, markup=False)
    layers = range(spec.layers or 1)
    for row in rows:
        table = Table(box=None, show_header=False, pad_edge=False)
        names = [" ".join(row.tokens)] if spec.pooled else row.tokens
        values = row.vectors.reshape(len(layers), len(names), spec.width)
        for number, name in enumerate(names):
            for layer in layers:
                shown = [f"{value:8.4f}" for value in values[layer, number, :NUMBERS]]
                label = [] if spec.layers is None else [str(layer)]
                table.add_row(name if layer == 0 else "", *label, *shown, "..." if spec.width > NUMBERS else "")
        console.print(table)
        console.print()
