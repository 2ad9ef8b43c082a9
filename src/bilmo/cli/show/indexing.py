"""The progress of `bilmo index`, and the results of a search, on the terminal.

Knows: progress bars, tables. Blind to: how uses are compared.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bilmo import progress
from bilmo.cli.show import tables
from bilmo.cli.show.messages import note

if TYPE_CHECKING:
    from bilmo.sense.index import Use
    from bilmo.sense.index_run import Event


def indexing(events: Iterator[Event], output: Path) -> None:
    """Show the progress of a run and its result."""
    from bilmo.sense.index_run import work_folder

    try:
        _indexing(events, output)
    except KeyboardInterrupt:
        if (work := work_folder(output)).exists():
            note(
                f"finished parts are kept; the same command resumes the run. To discard them: rm -r "
                f"{shlex.quote(str(work))}"
            )
        raise


def _indexing(events: Iterator[Event], output: Path) -> None:
    from bilmo.sense.index_parts import Step
    from bilmo.sense.index_run import Finished, Grouping, Started
    from bilmo.sense.nearest_uses import EXACT_USES

    with progress.working("reading the text"):
        first = next(events)  # after a pass over all the text
    with progress.embedding() as bar:
        event = first
        while not isinstance(event, Grouping | Finished):
            if isinstance(event, Started):
                bar.start(event.characters, event.done_characters)
                if event.done_characters:
                    note(f"resumed; {100 * event.done_characters / event.characters:.0f} % of the text is already done")
            elif isinstance(event, Step):
                bar.advance(event.characters, event.words)
            event = next(events)
    if isinstance(event, Grouping):
        with progress.working(f"grouping {event.uses:,} uses for fast search"):
            event = next(events)
    assert isinstance(event, Finished), "a run ends with this event, or with an error"
    if event.uses > EXACT_USES and not event.approximate:
        note(
            "faiss is not installed, so a search compares all uses; for fast search: pip install 'bilmo[search]', "
            "or in a clone: pip install '.[search]'"
        )
    added = "" if event.uses == event.all_uses else f"; {event.all_uses:,} uses in all"
    print(f"{output}: {event.uses:,} uses in {event.sentences:,} sentences{added}")


def uses(found: Mapping[str, Sequence[Use]], *, json: bool) -> None:
    """Print the uses that were found for each text."""
    if json:
        tables.json([{"text": text, "similar": [asdict(use) for use in near]} for text, near in found.items()])
        return
    for number, (text, near) in enumerate(found.items()):
        if len(found) > 1:
            print(f"\n{text}" if number else text)
        rows = [(f"{use.cosine:.3f}", f"{use.file}:{use.line}", use.text) for use in near]
        tables.table(["cosine", "place", "use"], rows, left=True)
