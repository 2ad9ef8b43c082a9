"""The work of one training step, counted: operations, bytes and parameters for each process.

Knows: recipes, network configs. Blind to: machines, time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bilmo.ids.chars import ByteChars
from bilmo.net.config import BiLMConfig
from bilmo.training.loop import FULL_SOFTMAX
from bilmo.training.recipe import Recipe

WORDS_PER_SENTENCE = 25
"""In the 1 Billion Word benchmark; one boundary per sentence is predicted too."""
CHARACTERS = 30
"""Positions over which the filters of the words of a step are evaluated: the longest word decides."""
ZIPF_SHIFT = 2.7
"""The k-th word of a text is taken to have a share proportional to 1 / (k + 2.7): the law of Zipf and Mandelbrot."""
PASSES = {"adam": 11, "adagrad": 9, "sgd": 7}
"""How often a step reads or writes each parameter or a number that belongs to it: the gradient is set to 0, its norm is
taken, it is clipped (2); the update reads parameter, gradient and what the optimizer keeps, and writes them."""
KEPT = {"adam": 4, "adagrad": 3, "sgd": 2}
"""Numbers in memory for each parameter: itself, its gradient, and what the optimizer keeps."""
KEPT_PER_CELL = 9
"""Numbers that the forward pass keeps for each cell and position: four gates, memory, its tanh, and copies."""
FLOAT = 4
"""Bytes."""


@dataclass(frozen=True)
class Work:
    """One step of one process, which computes its share of the rows."""

    words: int
    """Words of the whole step, for each direction."""
    products: float
    """Operations of matrix products over all positions at once."""
    recurrent: float
    """Operations of matrix products of one time step after another."""
    recurrent_bytes: float
    """Of the weights that these read from memory."""
    update_bytes: float
    """Of parameters and what belongs to them, read or written by the update."""
    summed_bytes: float
    """Of gradients, which all processes sum."""
    messages: int
    """Sums in a step."""
    parameters: int
    memory: float
    """Bytes that the process holds, without the program itself."""


def work(recipe: Recipe, vocab: int, processes: int = 1, words_per_sentence: float = WORDS_PER_SENTENCE) -> Work:
    """The work of a process for a recipe and a vocabulary of this size."""
    train, network = recipe.train, recipe.network
    config = network.config(vocab, characters=None, given=None)
    length = train.window if train.context != "sentences" else words_per_sentence + 1
    rows = max(1, round(train.batch / length))
    own = math.ceil(rows / processes)  # of the process with most rows
    positions = own * length  # for each direction
    cells, width = config.cell.cells, config.width
    recur = 4 * cells * width  # multiply-adds of one position
    project = cells * width if config.cell.project else 0
    layers = 2 * config.layers  # of both directions
    # Forward, and backward for inputs and for weights: 2 operations each. Only two of the recurrent ones are in a loop.
    products = positions * layers * (6 * recur + 2 * recur + 2 * project)
    recurrent = positions * layers * 4 * (recur + project)
    samples = min(train.samples, vocab)
    full = train.softmax == "full" or samples == vocab or (train.softmax == "auto" and vocab <= FULL_SOFTMAX)
    products += 2 * positions * 6 * (vocab if full else samples) * width
    here = distinct(2 * positions, vocab)
    products += 6 * here * _per_word(config)
    parameters = _parameters(config, vocab)
    softmax = vocab * (width + 1)
    touched = vocab if full else min(vocab, samples + distinct(2 * rows * length, vocab))
    kept = parameters * KEPT[train.optimizer] + positions * layers * (KEPT_PER_CELL * cells + 3 * width)
    kept += here * 6 * _features(config) + 2 * positions * 3 * width
    summed = parameters - softmax + touched * (width + 1)
    return Work(
        words=int(rows * length),
        products=products,
        recurrent=recurrent,
        recurrent_bytes=length * layers * 2 * FLOAT * (recur + project),
        update_bytes=PASSES[train.optimizer] * FLOAT * parameters,
        summed_bytes=FLOAT * summed,
        messages=config.layers + 2,
        parameters=parameters,
        memory=FLOAT * (kept + summed * (processes > 1)),
    )


def distinct(words: float, vocab: int) -> float:
    """The expected number of distinct words among this number of words of a text."""
    share = 1 / (np.arange(1, vocab + 1) + ZIPF_SHIFT)
    return float(-np.expm1(words * np.log1p(-share / share.sum())).sum())


def _features(config: BiLMConfig) -> int:
    """What the word encoder computes of a word before the projection."""
    return config.words.outputs


def _per_word(config: BiLMConfig) -> float:
    """Multiply-adds of the word encoder for one word, forward."""
    chars, found = config.words.chars, 0.0
    if chars is not None:
        # Backward reaches one position of each filter only, so the filters cost a third of what others do.
        found += CHARACTERS * sum(chars.width * size * number for size, number in chars.filters) / 3
        found += chars.highways * 2 * chars.outputs**2
    if config.words.project:
        found += config.words.outputs * config.width
    return found + config.words.highways * 2 * config.width**2


def _parameters(config: BiLMConfig, vocab: int) -> int:
    cells, width, chars, table = config.cell.cells, config.width, config.words.chars, config.words.table
    layer = 4 * cells * (2 * width + 1) + (cells * width if config.cell.project else 0)
    start = width + cells if config.cell.kind == "lstm" else width
    found = 2 * config.layers * (layer + start) + vocab * (width + 1)
    if chars is not None:
        found += ByteChars.rows * chars.width
        found += sum(number * (chars.width * size + 1) for size, number in chars.filters)
        found += chars.highways * 2 * chars.outputs * (chars.outputs + 1)
    if table is not None:
        found += table.rows * table.width
    if config.words.project:
        found += (config.words.outputs + 1) * width
    return found + config.words.highways * 2 * width * (width + 1)
