"""The words of a model, each with one vector without context, ready to be compared by cosine.

Layer 0 of a model mostly reflects the spelling of a word. Its softmax row, if there is one, reflects the contexts in
which the word occurs. A vector has both, side by side, each without what all words have in common. A word that is not
in the vocabulary has no softmax row: where one of the compared words has none, all are compared by layer 0 alone.

Knows: LoadedModel, the cache folder. Blind to: text, words in context.
"""

# N words to compare with, D width of layer 0 and of a softmax row

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bilmo import __version__
from bilmo.embed.loaded import LoadedModel
from bilmo.errors import BilmoError, ConfigError, TextError, VocabError
from bilmo.ids.vocab import MARKS
from bilmo.store.tensors_file import read_hashed, write_hashed
from bilmo.store.user_folders import cache_folder

Floats = NDArray[np.float32]

LAYER_0_SHARE = 0.5
"""Weight of a word's layer-0 vector beside its softmax row, which counts 1."""
CANDIDATES = 20_000
"""Words to compare with, from the start of the vocabulary, where the most frequent ones are."""
KEPT_FILES = 8
"""Files of whitened vectors that are kept in the cache folder, the last used ones."""

log = logging.getLogger("bilmo")


class WordSpace:
    """The first words of a model's vocabulary, and their vectors; any other word can be compared with them."""

    def __init__(self, model: LoadedModel, candidates: int) -> None:
        vocab = model.bundle.vocab
        if vocab is None:
            raise VocabError(
                f"this model ({model.bundle.layout}) has no vocabulary of words to compare with. "
                "`bilmo similar MODEL WORD --in TEXT` compares the words of a text."
            )
        if candidates < 1:
            raise ConfigError(f"candidates is {candidates}; it must be 1 or more")
        self._model, self._vocab = model, vocab
        self.words = [word for word in vocab.words[:candidates] if word and word not in MARKS]
        """The candidates."""
        self._whitening, self._spelled = _layer_0(model, self.words)  # (N, D)
        self._both: Floats | None = None  # (N, 2D)
        if model.bundle.has_softmax:
            self._common = CommonPart.of(self._softmax_rows(self.words))
            self._both = self._joined(self._spelled, self.words)

    def vectors(self, words: Sequence[str], *, spelled: bool = False) -> Floats:
        """(words, 2D), or (words, D) by spelling alone: a vector of length 1 for each word.

        Without `spelled`, the second half of a word that has no softmax row is 0.
        """
        for word in words:
            if not isinstance(word, str) or not word.strip():
                raise TextError(f"a word must be a string that is not empty; found {word!r} ({type(word).__name__})")
            if not self._model.config.words.chars and word not in self._vocab:
                raise VocabError(
                    f"the model has vectors only for the words of its table, and {word!r} is not one of them"
                )
        alone = self._whitening.apply(self._model.word_vectors(words))
        return alone if spelled or self._both is None else self._joined(alone, words)

    def by_spelling(self, words: Iterable[str]) -> bool:
        """Whether these words are compared by layer 0 alone; notes which of them are not in the vocabulary."""
        unseen = [word for word in words if word not in self._vocab]
        for word in unseen:
            log.info("%r: never seen in training, or too rare for the vocabulary; compared by spelling alone", word)
        return bool(unseen) or self._both is None

    def nearest(self, vector: Floats, most: int, *, without: Sequence[str], spelled: bool) -> list[tuple[str, float]]:
        """Up to `most` candidates and their cosines, nearest first."""
        values = self._spelled if spelled or self._both is None else self._both
        return nearest(self.words, values, vector, most, without=without)

    def _joined(self, spelled: Floats, words: Sequence[str]) -> Floats:
        seen = np.array([word in self._vocab for word in words], dtype=bool)
        predicted = self._common.removed(self._softmax_rows(words)) * seen[:, None]
        return unit(np.concatenate([LAYER_0_SHARE * spelled, predicted], axis=1))

    def _softmax_rows(self, words: Sequence[str]) -> Floats:
        return self._model.bundle.weights["softmax.weight"][self._vocab.ids(words)].float().numpy()


def nearest(
    words: Sequence[str], values: Floats, vector: Floats, most: int, *, without: Sequence[str]
) -> list[tuple[str, float]]:
    """Up to `most` words and the cosines of their vectors (N, W) with a vector (W,), all of length 1, nearest first."""
    cosines = values @ vector
    order = np.argsort(-cosines, kind="stable")
    found = ((words[n], float(cosines[n])) for n in order if words[n] not in without)
    return [pair for pair, _ in zip(found, range(most), strict=False)]


@dataclass(frozen=True)
class CommonPart:
    """What softmax rows have in common: their mean, and the direction in which they differ most.

    That direction mostly follows how frequent words are. With it, words of about the same frequency look similar.
    """

    mean: Floats
    direction: Floats

    @classmethod
    def of(cls, rows: Floats) -> CommonPart:
        """The common part of these rows (N, D)."""
        if not len(rows):
            return cls(*np.zeros((2, rows.shape[1]), dtype=np.float32))
        mean = rows.mean(axis=0)
        _, directions = np.linalg.eigh((rows - mean).T @ (rows - mean))
        return cls(mean, directions[:, -1])

    def removed(self, rows: Floats) -> Floats:
        """These rows or others without the common part, of length 1."""
        rows = rows - self.mean
        return unit(rows - np.outer(rows @ self.direction, self.direction))


@dataclass(frozen=True)
class Whitening:
    """Centres vectors, makes all directions count equally, and scales to length 1.

    The vectors of a language model share a large common part, and differ most in a few directions (frequency, length,
    spelling). Both make unrelated words look similar. The fewer vectors there are, the less reliable the variance of a
    direction is, and the less it is equalized: few vectors are hardly more than centred.
    """

    centre: Floats
    directions: Floats

    @classmethod
    def of(cls, values: Floats) -> Whitening:
        """The whitening of these vectors (N, W)."""
        number, width = values.shape
        if not number:
            return cls(np.zeros(width, dtype=np.float32), np.eye(width, dtype=np.float32))
        centre = values.mean(axis=0)
        values = values - centre
        spreads, directions = np.linalg.eigh(values.T @ values / number)
        smoothing = max(width / number * spreads.sum() / min(number, width), 1e-12)
        return cls(centre, directions / np.sqrt(np.maximum(spreads, 0) + smoothing))

    def apply(self, values: Floats) -> Floats:
        """These vectors or others, whitened."""
        return unit((values - self.centre) @ self.directions)


def whitened(values: Floats) -> Floats:
    """Vectors by their own whitening."""
    return Whitening.of(values).apply(values)


def unit(values: NDArray[np.floating[Any]]) -> Floats:
    """Vectors of length 1; a zero vector stays zero."""
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    return np.asarray(values / np.maximum(lengths, 1e-12), dtype=np.float32)


def _layer_0(model: LoadedModel, words: list[str]) -> tuple[Whitening, Floats]:
    """The whitening of layer 0, and the whitened vectors (N, D) of words.

    They are read from the cache folder, or computed and written there, because a large model needs many seconds.
    """
    made_from = (__version__, model.bundle.identity("words"), model.precision, words)
    key = hashlib.sha256(repr(made_from).encode("utf-8", "surrogatepass")).hexdigest()
    folder = cache_folder("words")
    path = folder / f"{key}.safetensors"
    with suppress(BilmoError, OSError):  # not there, or damaged: computed again
        stored = {name: value.numpy() for name, value in read_hashed(path, "")[0].items()}
        path.touch()  # used last
        return Whitening(stored["centre"], stored["directions"]), stored["vectors"]
    alone = model.word_vectors(words)
    whitening = Whitening.of(alone)
    vectors = whitening.apply(alone)
    with suppress(BilmoError, OSError):  # a folder that cannot be written, or a full disk: the next call computes again
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {"centre": whitening.centre, "directions": whitening.directions, "vectors": vectors}
        write_hashed(path, {name: torch.from_numpy(value) for name, value in tensors.items()}, {"key": key})
        for old in sorted(folder.glob("*.safetensors"), key=lambda file: -file.stat().st_mtime)[KEPT_FILES:]:
            old.unlink(missing_ok=True)
    return whitening, vectors
