"""The options of embedding, and their accepted values.

Knows: mixes, number formats. Blind to: running networks, files.
"""

from __future__ import annotations

from os import PathLike
from typing import Literal, TypedDict, get_args

import torch

from bilmo.errors import ConfigError
from bilmo.net.config import Precision
from bilmo.net.device import device_of
from bilmo.net.mix import How
from bilmo.store.model_folder import DType
from bilmo.workers import check_number

Start = Literal["settled", "zero", "carry"]
"""The state from which a sentence starts."""
All = Literal["all"]
"""Instead of a mix: all layers."""
Pool = Literal["none", "mean", "max"]
"""How the token vectors of a text become one vector."""


class LoadOptions(TypedDict, total=False):
    """How a model is loaded; `bilmo.load` explains them."""

    start: Start
    lang: str
    dictionary: str | PathLike[str] | None
    batch_tokens: int | None
    precision: Precision
    device: str | torch.device
    word_cache: str | PathLike[str] | None


class StreamOptions(TypedDict, total=False):
    """Options that do not change the type of the result; `Embedder.embed` explains them."""

    mix: How | All
    dtype: DType
    normalize: bool
    batch_tokens: int | None


class EmbedOptions(StreamOptions, total=False):
    """The same, and what a stream cannot show."""

    progress: bool


def check(mix: How | All, pool: str, dtype: str, batch_tokens: int | None) -> None:
    """Refuse unknown values; the mix itself checks numbers of layers."""
    if mix == "weighted":
        raise ConfigError(
            "a weighted mix is learned with a task: use module(), or mix='mean', which is an untrained weighted mix"
        )
    mixes = ("all", "mean", "top", "concat")
    if isinstance(mix, str) and mix not in mixes:
        raise ConfigError(f"mix is {mix!r}; accepted: {', '.join(mixes)}, or layer numbers such as 0 or (0, 1)")
    for name, value, accepted in (("pool", pool, get_args(Pool)), ("dtype", dtype, get_args(DType))):
        if value not in accepted:
            raise ConfigError(f"{name} is {value!r}; accepted: {', '.join(accepted)}")
    check_batch_tokens(batch_tokens)


def check_batch_tokens(number: int | None) -> None:
    """Refuse a batch without tokens."""
    if number is not None and number < 1:
        raise ConfigError(f"batch_tokens is {number}; it must be 1 or more")


def check_start(start: str) -> None:
    """Refuse a start that does not exist."""
    if start not in get_args(Start):
        raise ConfigError(f"start is {start!r}; accepted: {', '.join(get_args(Start))}")


def check_precision(precision: str) -> None:
    """Refuse a precision that does not exist."""
    if precision not in get_args(Precision):
        raise ConfigError(f"precision is {precision!r}; accepted: {', '.join(get_args(Precision))}")


def check_workers(number: int, *, start: str, device: str | torch.device) -> None:
    """Refuse what several processes cannot do."""
    check_number(number)
    if number == 1:
        return
    if start == "carry":
        raise ConfigError(
            "start='carry' reads the text in order, each sentence after the one before, so it needs one worker. "
            "Use workers=1, or start='settled'."
        )
    if device_of(device).type != "cpu":
        raise ConfigError(f"several workers compute on the CPU; found device {device}. Use workers=1, or device cpu.")
