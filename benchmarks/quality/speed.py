"""One epoch of tagging with stored layers, compared with running the biLM in every epoch.

    python benchmarks/quality/speed.py MODEL... [--examples N]

A model is one that bilmo loads, or `original`: random weights in the shape of the published English model, because the
cost of an epoch does not depend on the weights. Both train the same head on the same sentences in the same order, and
give the same result: layers are rounded to float16 in both cases. The biLM is run by the fast embedder, as a user would
who does not store its layers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import data
import torch

import bilmo
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store.bundle import Bundle
from bilmo.tasks.core.events import Epoch, Step
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.network.layer_store import Computed, LayerStore
from bilmo.tasks.tag.tagger import Tagger

RESULTS = Path(__file__).parents[1] / "results"


class Never(LayerStore):
    """Stores nothing."""

    def fill(self, sentences: object) -> Iterator[Computed]:
        return iter(())


def loaded(name: str) -> bilmo.Embedder:
    if name != "original":
        return bilmo.load(name)
    torch.manual_seed(1)
    config = bilmo.BiLMConfig(words=WordsConfig(chars=CharsConfig()), cell=CellConfig())
    return bilmo.Embedder(Bundle(config, bilmo.BiLM(config).state_dict(), layout="random"))


def epoch_seconds(
    elmo: bilmo.Embedder, some: data.DataSet, head: str, *, stored: bool, epochs: int
) -> tuple[float, float]:
    """Seconds of the fastest epoch, evaluation left out; and the measure on the dev set at the end."""
    task = Tagger(elmo, head=head, epochs=epochs, patience=epochs)
    dev = Dataset(some.dev.examples[:100], some.dev.answers[:100])
    events = task.events(some.train, dev=dev)
    next(events)
    if not stored:
        task.network_.input.batcher = replace(task.network_.input.batcher, store=Never(elmo))
    best, value, started = float("inf"), 0.0, 0.0
    for event in events:
        if isinstance(event, Step):
            if event.done == 1:
                best = min(best, time.monotonic() - started)
        elif isinstance(event, Epoch):
            value = event.value
        started = started if isinstance(event, Step) else time.monotonic()
    return best, value


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["en", "original"])
    parser.add_argument("--examples", type=int, help="use this many sentences; nothing is saved")
    given = parser.parse_args(arguments)
    some = data.slice_of(data.ewt(), given.examples)
    rows = [
        "| model | cells, width | head | biLM each epoch, s | stored layers, s | ratio | dev, both |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in given.models:
        elmo = loaded(name)
        shape = f"{elmo.config.cell.cells}, {elmo.config.width}"
        for head in ("bilstm-crf", "linear"):
            fast, value = epoch_seconds(elmo, some, head, stored=True, epochs=2)
            slow, same = epoch_seconds(elmo, some, head, stored=False, epochs=2)
            seconds = f"{slow:.1f} | {fast:.1f} | **{slow / fast:.1f}x**"
            rows.append(f"| {name} | {shape} | {head} | {seconds} | {value:.4f} {same:.4f} |")
            print(rows[-1], flush=True)
    heading = (
        f"# One epoch of tagging\n\n{date.today()}, made by `python benchmarks/quality/speed.py "
        f"{' '.join(given.models)}`: {len(some.train[0]):,} sentences of ud_english_ewt, {torch.get_num_threads()} "
        "threads. `original` has random weights in the shape of the published English model.\n"
    )
    table = "\n".join([heading, *rows]) + "\n"
    print(table)
    if not given.examples:
        (RESULTS / "epoch.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
