"""Embedding on the screen: a bar while it runs, or the vectors themselves as tables or JSON lines.

Knows: rich. Blind to: how vectors are computed.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from bilmo import progress
from bilmo.cli.show.messages import note, notes

if TYPE_CHECKING:
    from bilmo.embed.job import Event
    from bilmo.embed.output.table import EmbeddedText, VectorSpec
    from bilmo.plug.ray import Embedded, Shard

LARGE = 100_000_000
"""Size in bytes from which on the size of the output is announced."""
NUMBERS = 6
"""How many numbers of each vector a table shows."""


def embedding(events: Iterable[Event], output: Path) -> None:
    """Show the progress of a run (share of the text, words per second, time left) and its result."""
    from bilmo.embed.job import Finished, Started, Step, readable
    from bilmo.embed.output.parts import folder_of

    piped = False
    with progress.embedding() as bar:
        try:
            for event in events:
                if isinstance(event, Started):
                    piped = event.sentences is None
                    bar.start(event.characters, event.done_characters)
                    if event.bytes is not None and event.bytes >= LARGE:
                        note(f"the size of {output} will be about {readable(event.bytes)}")
                    if event.done_parts:
                        done = f"{event.done_sentences:,} of {event.sentences:,} sentences"
                        note(f"resumed; {done} are already done")
                elif isinstance(event, Step):
                    bar.advance(event.characters, event.tokens)
                elif isinstance(event, Finished):
                    notes(event.notes)
                    print(f"{output}: {event.sentences:,} sentences, {event.tokens:,} tokens, lang: {event.lang}")
        except KeyboardInterrupt:
            if piped:
                note("standard input cannot be read twice, so this run cannot be resumed")
            elif folder_of(output).exists():
                note(f"finished parts are kept; the same command resumes the run. To discard them: {discard(output)}")
            raise


def shards(given: Sequence[Shard], found: Iterable[Embedded], output: Path) -> None:
    """Show how many files of a cluster run are finished, and its result."""
    with progress.counting("files", len(given)) as counted:
        finished = list(counted(found))
    sentences, tokens = sum(one.sentences for one in finished), sum(one.tokens for one in finished)
    print(f"{output}: {len(finished):,} files, {sentences:,} sentences, {tokens:,} tokens")


def discard(output: Path) -> str:
    """The command that removes the finished parts of a run."""
    from bilmo.embed.output.parts import folder_of

    return f"rm -r {shlex.quote(str(folder_of(output)))}"


def json_lines(rows: Iterable[EmbeddedText], spec: VectorSpec) -> None:
    """Write one line per text, as in a .jsonl file."""
    from bilmo.embed.output.jsonl import line

    for row in rows:
        sys.stdout.buffer.write(line(row, spec) + b"\n")  # bytes, because a terminal's encoding is not always UTF-8
        sys.stdout.buffer.flush()


def tables(rows: Iterable[EmbeddedText], spec: VectorSpec) -> None:
    """Print tokens and the first numbers of their vectors."""
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
