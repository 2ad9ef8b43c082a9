"""The settings of a recipe as keyword arguments: the fields of its three sections, by name.

Knows: nothing; a test compares it with the recipe. Blind to: what the settings do.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class RecipeSettings(TypedDict, total=False):
    """Each one replaces a setting of the recipe; they are explained in `TextRecipe`, `NetworkRecipe`, `TrainRecipe`."""

    lang: str
    dictionary: str | None
    held_out: float
    max_words: int | None
    min_count: int
    vocab_size: int | None

    words: str
    chars: Literal["auto", "bytes", "unicode"]
    char_width: int
    filters: tuple[tuple[int, int], ...]
    activation: Literal["relu", "tanh"]
    highways: int
    word_highways: int
    max_characters: int
    table_width: int | None
    tuned: bool
    cell: Literal["rnn", "gru", "lstm"]
    cells: int
    width: int
    layers: int
    skip: bool
    cell_clip: float | None

    context: Literal["sentences", "stream", "document"]
    batch: int
    window: int
    longest: int
    softmax: Literal["auto", "full", "sampled"]
    samples: int
    prior: Literal["counts", "flat"]
    head_first: float
    optimizer: Literal["adam", "adagrad", "sgd"]
    rate: float
    warm_up: float
    decay: bool
    clip: float
    dropout: float
    vector_dropout: float
    weight_decay: float
    average: float
    epochs: float
    minutes: float | None
    evaluate_every: int
    save_every: int
    patience: int
    seed: int
    device: str
    precision: Literal["float32", "bfloat16"]
