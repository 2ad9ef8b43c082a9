"""What `make demo` shows: a small model, its layers, and that a vector depends on the sentence and nothing else.

The model is made from a seed, not trained: its numbers obey the arithmetic of ELMo, but mean nothing yet.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import bilmo
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store import folder
from bilmo.store.bundle import Bundle

SENTENCES = ["He sat on the bank of the river .", "She took the money to the bank .", "他 坐 在 河岸 上 。"]


def make_model(path: Path) -> None:
    """A model of 2 layers, 256 cells, 64 wide, from seed 1."""
    torch.manual_seed(1)
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(filters=((1, 32), (2, 64), (3, 128)), highways=1)),
        cell=CellConfig(cells=256),
        width=64,
    )
    folder.write(Bundle(config, bilmo.BiLM(config).state_dict(), layout="made from seed 1, not trained"), path)


def run(*command: str) -> None:
    """Show a command and what it prints, as a user would see it."""
    print(f"\n$ bilmo {' '.join(command)}", flush=True)
    subprocess.run([sys.executable, "-m", "bilmo", *command], check=True)


def main() -> None:
    """Make, look, embed, compare."""
    with tempfile.TemporaryDirectory() as name:
        model, text, vectors = (str(Path(name) / part) for part in ("model", "sentences.txt", "vectors.h5"))
        print("A small model, made from seed 1. It is not trained: what you see is the arithmetic, not yet meaning.")
        make_model(Path(model))
        Path(text).write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
        run("info", model)
        run("embed", model, text, "-o", vectors)
        run("convert", model, f"{name}/old", "--to", "allennlp")

        elmo = bilmo.load(model)
        sentences = [sentence.split() for sentence in SENTENCES]
        river, money, chinese = elmo.layers(sentences)
        print(f"\nlayers of {SENTENCES[0]!r}: {river.shape} = (layers, tokens, width)")
        a, b = river[:, sentences[0].index("bank")], money[:, sentences[1].index("bank")]
        for number, (x, y) in enumerate(zip(a, b, strict=True)):
            cosine = float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))
            what = "the word alone, so the same" if number == 0 else "sees the sentence, so different"
            print(f"  layer {number}: cosine of `bank` in both sentences {cosine:.4f}  ({what})")

        alone = elmo.layers([sentences[2]])[0]
        scale = np.abs(chinese).max()
        print(f"the same sentence alone and in a batch: largest difference {np.abs(alone - chinese).max() / scale:.1e}")
        old = bilmo.load(f"{name}/old")
        apart = np.abs(old.layers(sentences)[0] - river).max()
        print(f"through the old HDF5 layout and back: largest difference {apart:.1e}")
    print("\nTry next:\n  .venv/bin/bilmo --help\n  .venv/bin/bilmo info YOUR_OLD_MODEL\n  make test")


if __name__ == "__main__":
    main()
