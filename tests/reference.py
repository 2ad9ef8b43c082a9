"""The arithmetic of the network in plain NumPy (float64): one sentence, one word, one step at a time.

It knows the rules of the published model and the names of the parameters, nothing of the network's own code,
and does no work in common for two words or two rows: what the network must equal, however it gets there.
"""

# T tokens with both boundaries, C characters, E character width, F filters, D one direction, H cells, L layers

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bilmo.net.config import BiLMConfig, CellConfig, CharsConfig, WordsConfig

Array = NDArray[np.float64]
Weights = Mapping[str, Array]
"""Parameters under the names that the network's state_dict gives them."""
Memory = tuple[Array, ...]
"""What one layer remembers of one row: (h,) with h (D,), for an LSTM (h, c) with c (H,)."""
State = dict[str, list[Memory]]
"""For each direction, for each layer."""


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max())
    return powers / powers.sum()


# From a word to ids


def spell(config: CharsConfig, word: str, entries: Sequence[str] = ()) -> list[int]:
    """Character ids of a word at the full width: begin mark, characters, end mark, then padding to the end.

    Where words have no greatest length, there is padding enough for every filter to see nothing else.
    """
    if config.kind == "bytes":
        begin, end, pad = 258, 259, 260
        boundary = {"<S>": 256, "</S>": 257}
        inside = list(word.encode("utf-8", "ignore"))
    else:
        number = {entry: n for n, entry in enumerate(entries)}
        begin, end, pad = number["<bow>"], number["<eow>"], number["<pad>"]
        boundary = {"<S>": number["<bos>"], "</S>": number["<eos>"]}
        inside = [number.get(character, number["<oov>"]) for character in word]
    if word in boundary:
        inside = [boundary[word]]
    if config.max_characters is not None:
        inside = inside[: config.max_characters - 2]
    ids = [begin, *inside, end]
    width = config.max_characters or len(ids) + max(w for w, _ in config.filters)
    return ids + [pad] * (width - len(ids))


def look_up(config: WordsConfig, words: Sequence[str], word: str) -> int:
    """Row of a word in the table: of words written twice the last, of words not there that of <UNK>."""
    assert config.table is not None
    if word not in ("<S>", "</S>"):
        if config.chars and config.chars.kind == "unicode" and config.chars.max_characters is not None:
            word = word[: config.chars.max_characters - 2]
        if config.table.lower:
            word = word.lower()
    rows = [n for n, entry in enumerate(words) if entry and entry == word]
    return rows[-1] if rows else words.index("<UNK>")


# From ids to a word vector


def filtered(config: CharsConfig, weights: Weights, ids: Sequence[int]) -> Array:
    """(C,) to (F,): at every place each filter gives a number; the largest counts, then the activation."""
    table = weights["words.chars.table"]  # (rows, E)
    joined = []
    for k, (w, n) in enumerate(config.filters):
        kernel = weights[f"words.chars.filters.{k}.weight"]  # (n, E, w)
        bias = weights[f"words.chars.filters.{k}.bias"]
        answers = np.empty((len(ids) - w + 1, n))
        for place in range(len(answers)):
            answers[place] = bias
            for offset in range(w):
                answers[place] += kernel[:, :, offset] @ table[ids[place + offset]]
        joined.append(answers.max(axis=0))
    x = np.concatenate(joined)
    return np.maximum(x, 0) if config.activation == "relu" else np.tanh(x)


def highway(weights: Weights, name: str, x: Array) -> Array:
    """The carry gate says how much of each number passes, the rest is its transform; relu always."""
    carry = sigmoid(weights[f"{name}.carry.weight"] @ x + weights[f"{name}.carry.bias"])
    transform = np.maximum(weights[f"{name}.transform.weight"] @ x + weights[f"{name}.transform.bias"], 0)
    return carry * x + (1 - carry) * transform


def word_vector(config: WordsConfig, weights: Weights, chars: Sequence[int] | None, word: int | None) -> Array:
    """[table ; characters], projected, then the last highways: (D,). Given vectors leave rows 0 to 2 to the marks."""
    parts = []
    if config.table is not None:
        marks = config.table.given and word < 3
        parts.append(weights["words.table.marks" if marks else "words.table.weight"][word])
    if config.chars is not None:
        x = filtered(config.chars, weights, chars)
        for k in range(config.chars.highways):
            x = highway(weights, f"words.chars.highways.{k}", x)
        parts.append(x)
    x = np.concatenate(parts)
    if config.project:
        x = weights["words.project.weight"] @ x + weights["words.project.bias"]
    for k in range(config.highways):
        x = highway(weights, f"words.highways.{k}", x)
    return x


# From word vectors to layers


def step(config: CellConfig, weights: Weights, name: str, x: Array, memory: Memory) -> Memory:
    """One word (D,) and what the layer remembers, to what it remembers next; its output is the first part."""
    w, u, b = (weights[f"{name}.{part}"] for part in ("input", "recur", "bias"))
    h = memory[0]
    if config.kind == "rnn":
        return (np.tanh(w @ x + u @ h + b),)
    if config.kind == "gru":
        (wz, wr, wn), (uz, ur, un), (bz, br, bn) = (np.split(part, 3) for part in (w, u, b))
        z = sigmoid(wz @ x + uz @ h + bz)
        r = sigmoid(wr @ x + ur @ h + br)
        new = np.tanh(wn @ x + un @ (r * h) + bn)  # the reset gate acts before the product
        return ((1 - z) * h + z * new,)
    (wi, wf, wo, wn), (ui, uf, uo, un), (bi, bf, bo, bn) = (np.split(part, 4) for part in (w, u, b))
    i = sigmoid(wi @ x + ui @ h + bi)
    f = sigmoid(wf @ x + uf @ h + bf + config.forget_bias)
    o = sigmoid(wo @ x + uo @ h + bo)
    new = np.tanh(wn @ x + un @ h + bn)
    c = f * memory[1] + i * new
    if config.cell_clip is not None:
        c = np.clip(c, -config.cell_clip, config.cell_clip)
    h = o * np.tanh(c)
    if config.project:
        h = weights[f"{name}.project"] @ h
        if config.projection_clip is not None:
            h = np.clip(h, -config.projection_clip, config.projection_clip)
    return h, c


def stack(
    config: BiLMConfig, weights: Weights, direction: str, xs: list[Array], state: list[Memory]
) -> tuple[list[list[Array]], list[Memory]]:
    """The words in the order that this direction reads them, to layers 0 to L and the state after."""
    layers, after = [xs], []
    for number, memory in enumerate(state):
        outputs = []
        for x in layers[-1]:
            memory = step(config.cell, weights, f"{direction}_stack.{number}", x, memory)
            outputs.append(memory[0])
        after.append(memory)
        if config.skip and number > 0:  # what is remembered stays as it was, without the sum
            outputs = [out + x for out, x in zip(outputs, layers[-1], strict=True)]
        layers.append(outputs)
    return layers, after


def layers_of(
    config: BiLMConfig,
    weights: Weights,
    chars: Sequence[Sequence[int] | None],
    words: Sequence[int | None],
    state: State,
) -> tuple[Array, State]:
    """One sentence, its boundaries included, to (L+1, T, D * directions) and the state after it."""
    xs = [word_vector(config.words, weights, c, w) for c, w in zip(chars, words, strict=True)]
    halves: list[Array] = []
    after: State = {}
    for direction in config.directions:
        if direction == "forward":
            layers, after[direction] = stack(config, weights, direction, xs, state[direction])
        else:
            layers, after[direction] = stack(config, weights, direction, xs[::-1], state[direction])
            layers = [layer[::-1] for layer in layers]
        halves.append(np.array(layers))
    return np.concatenate(halves, axis=-1), after


# From layers to one vector a token, and to words


def normed(sentences: list[Array], epsilon: float) -> list[Array]:
    """Each layer less its mean, over its deviation: one of each for all tokens and numbers of the batch."""
    out = [np.empty_like(sentence) for sentence in sentences]
    for j in range(len(sentences[0])):
        numbers = np.concatenate([sentence[j].ravel() for sentence in sentences])
        mean = numbers.mean()
        variance = ((numbers - mean) ** 2).mean()
        for to, sentence in zip(out, sentences, strict=True):
            to[j] = (sentence[j] - mean) / np.sqrt(variance + epsilon)
    return out


def mixed(sentences: list[Array], weights: Array, scale: float, norm: str | None = None) -> list[Array]:
    """Sentences (L+1, T, W) with their boundaries, to (T-2, W) without: scale * sum_j softmax(weights)_j h_j.

    weights is (1, L+1), or a row for each direction. The boundaries count for the norm of AllenNLP, and do not
    for that of bilm-tf.
    """
    if norm == "allennlp":
        sentences = normed(sentences, 1e-13)
    sentences = [sentence[:, 1:-1] for sentence in sentences]
    if norm == "bilm-tf":
        sentences = normed(sentences, 1e-12)
    out = []
    for sentence in sentences:
        parts = np.split(sentence, len(weights), axis=-1)  # a direction each, or all as one
        summed = [
            sum(s * layer for s, layer in zip(softmax(row), part, strict=True))
            for row, part in zip(weights, parts, strict=True)
        ]
        out.append(scale * np.concatenate(summed, axis=-1))
    return out


def log_probs(weight: Array, bias: Array, outputs: Array, targets: Sequence[int]) -> Array:
    """(N, D) and N words to the natural logarithm of each word's share among all words."""
    return np.array([np.log(softmax(weight @ h + bias)[t]) for h, t in zip(outputs, targets, strict=True)])
