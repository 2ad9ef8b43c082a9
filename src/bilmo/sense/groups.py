"""Groups of similar vectors, and how many groups there are.

For each number of groups from 2 on, the vectors are grouped by spherical k-means, and the mean silhouette is computed:
how much nearer a vector is to its own group than to the nearest other one, from -1 to 1. The number with the highest
mean silhouette is chosen. If that is below SEPARATE, there is only one group.

Everything is computed without random numbers.

Knows: numpy. Blind to: words, text.
"""

# N vectors of length 1, W width, K groups

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.word_space import unit

Floats = NDArray[np.float32]
Labels = NDArray[np.intp]

MOST_GROUPS = 8
SEPARATE = 0.1
"""Mean silhouette from which on there is more than one group."""
LEAST_VECTORS = 6
"""Fewer vectors are one group."""
STARTS, ROUNDS = 4, 50


def group(vectors: Floats, most: int = MOST_GROUPS) -> tuple[Labels, dict[int, float]]:
    """The group of each vector (N,), the largest group first, and the mean silhouette of each number of groups."""
    labels = np.zeros(len(vectors), dtype=np.intp)
    if len(vectors) < LEAST_VECTORS:
        return labels, {}
    tried = {number: k_means(vectors, number) for number in range(2, min(most, len(vectors) // 2) + 1)}
    scores = {number: silhouette(vectors, found) for number, found in tried.items()}
    best = max(scores, key=lambda number: (scores[number], -number))
    if scores[best] >= SEPARATE:
        labels = _by_size(tried[best])
    return labels, scores


def k_means(vectors: Floats, number: int) -> Labels:
    """Spherical k-means: each vector belongs to the centre with the highest cosine.

    It starts from vectors that are far from each other, several times, and keeps the best result.
    """
    central = np.argsort(-(vectors @ vectors.mean(axis=0)), kind="stable")
    best, kept = -np.inf, np.zeros(len(vectors), dtype=np.intp)
    for start in range(min(STARTS, len(vectors))):
        chosen = [int(central[start * (len(vectors) - 1) // STARTS])]
        while len(chosen) < number:
            chosen.append(int(np.argmin((vectors @ vectors[chosen].T).max(axis=1))))
        centres = vectors[chosen]  # (K, W)
        labels = kept
        for _ in range(ROUNDS):
            labels = (vectors @ centres.T).argmax(axis=1)
            sums = _sums(vectors, labels, number)
            moved = np.where(np.any(sums, axis=1, keepdims=True), unit(sums), centres)
            if np.array_equal(moved, centres):
                break
            centres = moved
        value = float((vectors @ centres.T).max(axis=1).sum())
        if value > best + 1e-6:
            best, kept = value, labels
    return kept


def silhouette(vectors: Floats, labels: Labels) -> float:
    """The mean silhouette by cosine distance; a vector that is alone in its group counts 0."""
    number = int(labels.max()) + 1
    sizes = np.bincount(labels, minlength=number)
    if np.count_nonzero(sizes) < 2:
        return 0.0
    # The mean of the distances to a group is one minus the cosine with the mean of its vectors.
    away = 1 - vectors @ (_sums(vectors, labels, number) / np.maximum(sizes, 1)[:, None]).T  # (N, K)
    rows = np.arange(len(vectors))
    own = away[rows, labels] * sizes[labels] / np.maximum(sizes[labels] - 1, 1)  # without the vector itself
    away[:, sizes == 0] = np.inf
    away[rows, labels] = np.inf
    other = away.min(axis=1)
    values = (other - own) / np.maximum(np.maximum(own, other), 1e-9)
    values[sizes[labels] == 1] = 0
    return float(values.mean())


def plane(vectors: Floats) -> Floats:
    """(N, 2): the vectors on the plane in which they differ most (principal components)."""
    centred = vectors - vectors.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    directions = directions[:2]
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    found = np.zeros((len(vectors), 2), dtype=np.float32)
    found[:, : len(directions)] = centred @ (directions * signs[:, None]).T
    return found


def _sums(vectors: Floats, labels: Labels, number: int) -> Floats:
    """(K, W): the sum of the vectors of each group."""
    members = np.zeros((number, len(vectors)), dtype=np.float32)
    members[labels, np.arange(len(vectors))] = 1
    return np.asarray(members @ vectors, dtype=np.float32)


def _by_size(labels: Labels) -> Labels:
    """The same groups, renumbered: the largest first, and of equal ones the one whose first vector comes first."""
    names, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    renumbered = np.zeros(int(names.max()) + 1, dtype=np.intp)
    renumbered[names[order]] = np.arange(len(names))
    return np.asarray(renumbered[labels])
