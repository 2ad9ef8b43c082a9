"""Which word vectors find the nearest words that a reader expects: `python benchmarks/neighbours.py MODEL`.

GloVe serves as the expectation: for 2,000 of the first 8,000 words of a model that are also in GloVe, which share of
GloVe's ten nearest words are among the ten nearest words of the model? Many of them are the same word with another
ending, which spelling alone finds. So the share is also counted among words that share neither the first nor the last
three letters with the given word.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import bilmo
from bilmo.embed.word_space import LAYER_0_SHARE, whitened
from bilmo.store.vectors_file import read
from text import DATA

HERE = Path(__file__).parent
GLOVE = DATA / "vectors" / "glove.6B.50d.top50k.txt.xz"
WORDS, EVERY, NEAR = 8_000, 4, 10
Floats = NDArray[np.float32]


def centred(values: Floats) -> Floats:
    """Vectors minus their mean, scaled to length 1."""
    values = values - values.mean(axis=0)
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True))


def nearest(values: Floats, never: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Indices of the ten nearest words, for every fourth word."""
    asked = np.arange(0, len(values), EVERY)
    cosines = np.where(never[asked], -2, values[asked] @ values.T)
    return np.argpartition(-cosines, NEAR, axis=1)[:, :NEAR]


def shared(a: NDArray[np.intp], b: NDArray[np.intp]) -> float:
    """The share of nearest words that two lists have in common."""
    return float(np.mean([len(set(x) & set(y)) / NEAR for x, y in zip(a, b, strict=True)]))


def main(name: str) -> None:
    """Compare all kinds of vectors and write the table."""
    elmo = bilmo.load(name)
    glove = read(GLOVE)
    places = {word: n for n, word in enumerate(glove.words)}
    vocab = elmo.bundle.vocab
    assert vocab is not None
    words = [word for word in vocab.words if word in places and word.isalpha()][:WORDS]
    alone, rows = elmo.word_vectors(words), elmo.bundle.weights["softmax.weight"][vocab.ids(words)].float()
    predicted = centred(rows.numpy())
    ways = {
        "layer 0, centred": centred(alone),
        "layer 0, whitened": whitened(alone),
        "softmax row, centred": predicted,
        "softmax row, whitened": whitened(rows.numpy()),
    } | {
        f"{share} x layer 0, whitened; softmax row, centred": np.concatenate(
            [share * whitened(alone), predicted], axis=1
        )
        for share in (0.25, 0.5, 0.7, 1.0)
    }
    itself = np.eye(len(words), dtype=bool)
    first, last = (np.array([word[part] for word in words]) for part in (slice(3), slice(-3, None)))
    alike = itself | (first[:, None] == first) | (last[:, None] == last)
    expected = centred(glove.values[[places[word] for word in words]])
    table = ["| vectors | all words | different spelling |", "|---|---|---|"]
    for way, values in ways.items():
        found = [shared(nearest(values, never), nearest(expected, never)) for never in (itself, alike)]
        table.append(f"| {way} | {found[0]:.4f} | {found[1]:.4f} |")
        print(table[-1], flush=True)
    heading = (
        f"# Nearest words\n\n{date.today()}, made by `python benchmarks/neighbours.py {name}`. Share of GloVe's {NEAR} "
        f"nearest words that are also the model's, for every fourth of {len(words):,} words. `bilmo similar` uses "
        f"{LAYER_0_SHARE} x layer 0, whitened; softmax row, centred.\n\n"
    )
    (HERE / "results" / "neighbours.md").write_text(heading + "\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
