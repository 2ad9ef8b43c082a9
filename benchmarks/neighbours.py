"""Which word vectors find the nearest words that a reader expects: `python benchmarks/neighbours.py MODEL`.

GloVe serves as the expectation: for 2,000 of the first 8,000 words of a model that are also in GloVe, which share of
GloVe's ten nearest words are among the ten nearest words of the model? Many of them are the same word with another
ending, which spelling alone finds. So the share is also counted among words that share neither the first nor the last
three letters with the given word.

People's ratings of the similarity of two words are a second expectation: Spearman correlation with the cosines, for
pairs of words that the model knows.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

import bilmo
from bilmo.embed.word_space import LAYER_0_SHARE, CommonPart, whitened
from bilmo.ids.vocab import MARKS
from bilmo.store.vectors_file import read
from text import DATA

HERE = Path(__file__).parent
GLOVE = DATA / "vectors" / "glove.6B.50d.top50k.txt.xz"
RATINGS = {"MEN": "EN-MEN-TR-3k.txt", "SimLex-999": "EN-SIMLEX-999.txt", "WS-353": "EN-WS-353-ALL.txt"}
WORDS, RATED_WORDS, EVERY, NEAR = 8_000, 20_000, 4, 10
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


def ways(elmo: bilmo.Embedder, words: list[str]) -> dict[str, Floats]:
    """All kinds of vectors for some words."""
    vocab = elmo.bundle.vocab
    assert vocab is not None
    alone = elmo.word_vectors(words)
    rows = elmo.bundle.weights["softmax.weight"][vocab.ids(words)].float().numpy()
    predicted = CommonPart.of(rows).removed(rows)
    return {
        "layer 0, centred": centred(alone),
        "layer 0, whitened": whitened(alone),
        "softmax row, centred": centred(rows),
        "softmax row, whitened": whitened(rows),
        "softmax row without the common part": predicted,
    } | {
        f"{share} x layer 0, whitened; softmax row without the common part": np.concatenate(
            [share * whitened(alone), predicted], axis=1
        )
        for share in (0.25, 0.5, 0.75, 1.0)
    }


def rated(values: Floats, words: list[str], file: Path) -> float:
    """Spearman correlation of cosines with ratings."""
    places = {word: n for n, word in enumerate(words)}
    rows = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    pairs = [(places[a], places[b], float(rating)) for a, b, rating in rows if a in places and b in places]
    cosine = [values[a] @ values[b] / np.linalg.norm(values[a]) / np.linalg.norm(values[b]) for a, b, _ in pairs]
    return float(spearmanr(cosine, [rating for *_, rating in pairs]).statistic)


def main(name: str) -> None:
    """Compare all kinds of vectors and write the table."""
    elmo = bilmo.load(name)
    glove = read(GLOVE)
    places = {word: n for n, word in enumerate(glove.words)}
    vocab = elmo.bundle.vocab
    assert vocab is not None
    words = [word for word in vocab.words if word in places and word.isalpha()][:WORDS]
    itself = np.eye(len(words), dtype=bool)
    first, last = (np.array([word[part] for word in words]) for part in (slice(3), slice(-3, None)))
    alike = itself | (first[:, None] == first) | (last[:, None] == last)
    expected = centred(glove.values[[places[word] for word in words]])
    frequent = list(vocab.words[len(MARKS) : RATED_WORDS])
    rows = zip(ways(elmo, words).items(), ways(elmo, frequent).values(), strict=True)
    table = [f"| vectors | all words | different spelling | {' | '.join(RATINGS)} |", f"|{'---|' * (3 + len(RATINGS))}"]
    for (way, values), others in rows:
        found = [f"{shared(nearest(values, never), nearest(expected, never)):.4f}" for never in (itself, alike)]
        found += [
            f"{rated(others, frequent, DATA / 'tasks' / 'word_similarity' / file):.3f}" for file in RATINGS.values()
        ]
        table.append(f"| {way} | {' | '.join(found)} |")
        print(table[-1], flush=True)
    heading = (
        f"# Nearest words\n\n{date.today()}, made by `python benchmarks/neighbours.py {name}`. Share of GloVe's {NEAR} "
        f"nearest words that are also the model's, for every fourth of {len(words):,} words; and Spearman correlation "
        f"with people's ratings, for pairs among the first {RATED_WORDS:,} words of the vocabulary. "
        f"`bilmo similar` uses {LAYER_0_SHARE} x layer 0, whitened; softmax row without the common part.\n\n"
    )
    (HERE / "results" / "neighbours.md").write_text(heading + "\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
