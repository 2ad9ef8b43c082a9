"""The best start of a sentence: `python benchmarks/context.py [EPOCHS]`.

Two models of the same shape read the same text equally often: one is trained on single sentences with a learned start,
the other on an endless stream as in the paper. Each is evaluated on the same held-out sentences with every start:

zero     a state of zeros
empty    the state after 32 empty sentences
mean     the mean of the states at the ends of 2,000 training sentences
learned  trained with the model (only for single sentences)
carry    each sentence continues from the previous one: not isolated, so the same sentence has different vectors
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import torch
from torch import Tensor

from bilmo.embed.embedder import Embedder
from bilmo.embed.perplexity import score
from bilmo.net.bilm import settle
from bilmo.net.state import State
from bilmo.store import model_folder as folders
from bilmo.store.bundle import Bundle
from bilmo.training import recipe as recipes
from bilmo.training.corpus import Corpus
from bilmo.training.distributed.pieces import Side
from bilmo.training.events import Finished
from bilmo.training.run import train
from text import DATA

HERE = Path(__file__).parent
SENTENCES = 2000


def sentences(corpus: Corpus, side: Side) -> Iterator[list[str]]:
    """The words of each sentence of the corpus."""
    words, found = corpus.words, corpus.text(side)
    begin = 0
    for end in found.ends:
        yield [words[id] for id in found.ids[begin:end]]
        begin = end


@torch.no_grad()
def mean_end(bundle: Bundle, text: list[list[str]], start: State) -> State:
    """The mean over sentences of the state after each sentence."""
    network, indexer = bundle.network(), bundle.indexer()
    totals: dict[str, Tensor] = {}
    for at in range(0, len(text), 100):
        some = text[at : at + 100]
        _, after = network(indexer.batch(some), start.expand(len(some)))
        for name, part in after.named().items():
            totals[name] = totals.get(name, 0) + part.sum(0, keepdim=True)
    return State.from_named({name: total / len(text) for name, total in totals.items()})


def evaluate(folder: Path, context: str) -> list[str]:
    """One row of the table per start."""
    bundle, corpus = folders.read(folder), Corpus(folder / "training" / "corpus")
    held = list(sentences(corpus, "held_out"))
    empty = settle(bundle.network(), bundle.indexer().batch([[]]))
    text = [s for s, _ in zip(sentences(corpus, "train"), range(SENTENCES), strict=False)]
    starts: dict[str, State | None] = {"zero": None, "empty": empty, "mean": mean_end(bundle, text, empty)}
    if context == "sentences":
        starts["learned"] = bundle.start
    rows = []
    for name, start in starts.items():
        elmo = Embedder(replace(bundle, start=start), start="zero" if start is None else "settled")
        rows.append(_row(context, name, score(elmo, held).perplexity))
    rows.append(_row(context, "carry", score(Embedder(bundle, start="carry"), held).perplexity))
    return rows


def _row(context: str, start: str, perplexity: dict[str, float]) -> str:
    row = (
        f"| {context} | {start} | " + " | ".join(f"{perplexity[k]:.1f}" for k in ("forward", "backward", "mean")) + " |"
    )
    print(row, flush=True)
    return row


def main(epochs: float) -> None:
    """Train both models, evaluate them, write the table."""
    text = DATA / "text" / "hongloumeng-zh.txt.xz"
    if not text.exists():
        sys.exit(f"The benchmark needs real text, and {text} does not exist. Set BILMO_DATA to the data folder.")
    rows = ["| trained on | start | forward | backward | mean |", "|---|---|---|---|---|"]
    took: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for context in ("sentences", "stream"):
            folder = Path(name) / context
            seconds = 0.0
            for event in train([text], folder, recipes.read("novel", {"context": context, "epochs": epochs})):
                seconds = event.progress.seconds if isinstance(event, Finished) else seconds
            took.append(f"{context} {seconds / 60:.1f} minutes")
            rows += evaluate(folder, context)
    heading = (
        f"# The start of a sentence\n\n{date.today()}, made by `python benchmarks/context.py {epochs:g}`: recipe "
        f"`novel`, {epochs:g} epochs over one classical Chinese novel on two cores ({', '.join(took)}); perplexity of "
        "the held-out sentences with the full softmax.\n\n"
    )
    (HERE / "results" / "context.md").write_text(heading + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3)
