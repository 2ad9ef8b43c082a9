"""The settings that all tasks share. Each task extends them with its own.

Knows: the settings of the input. Blind to: data, tensors, single tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, TypeVar

from bilmo.errors import ConfigError
from bilmo.net.config import MAX_DEPTH, MAX_SIZE
from bilmo.tasks.network.settings import InputSettings

MAX_RATE = 1000
"""The highest learning rate and penalty; useful ones are far below it."""

SettingsT = TypeVar("SettingsT", bound="Settings")


@dataclass(frozen=True, kw_only=True)
class Settings(InputSettings):
    """The input of a task, the width of its head, and how both are trained."""

    tune_rate: float = 0.0001
    """Learning rate of the biLM if `tune` is set."""
    hidden: int = 200
    """Width of hidden layers, and of one direction of an LSTM."""
    rate: float = 0.001
    """Learning rate of the task's own network."""
    batch: int = 32
    """Examples per step."""
    epochs: int = 50
    """Maximum number of epochs."""
    patience: int = 5
    """Stop after this many epochs without a better result on the dev set."""
    dev_share: float = 0.1
    """Share of the examples to split off as the dev set if none is given."""
    clip: float = 5.0
    """Maximum norm of all gradients together."""
    lang: str = "auto"
    """How raw text is split: auto, spaces (already tokenized), en, west, zh."""
    dictionary: str | None = None
    """File of words that are never split, one per line; for Chinese text. The task keeps them."""
    seed: int = 1
    """Random seed; the same seed gives the same result."""

    def __post_init__(self) -> None:
        for name in ("word_width", "hidden", "batch", "epochs", "patience"):
            self._within(name, 1, MAX_SIZE)
        self._within("chars", 0, MAX_SIZE)
        self._within("l2", 0, MAX_RATE)
        for name in ("rate", "tune_rate", "clip"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in ("rate", "tune_rate"):
            self._within(name, 0, MAX_RATE)
        self._within("seed", 0, 2**63 - 1)
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout is {self.dropout}; it must be at least 0 and below 1")
        if self.tune and self.elmo_at == "none":
            raise ConfigError(
                "tune trains the biLM with the task, but this task does not use one; leave out tune, or use ELMo"
            )
        if not 0 < self.dev_share < 1:
            raise ConfigError(f"dev_share is {self.dev_share}; it must be between 0 and 1")

    def _within(self, name: str, least: int, most: int) -> None:
        """Refuse a setting that is not a number in a range."""
        value = getattr(self, name)
        if not least <= value <= most:
            raise ConfigError(f"{name} is {value}; it must be from {least} to {most}")


def check_settings(given: Mapping[str, Any], kind: type[SettingsT]) -> SettingsT:
    """Settings by name, checked; those not given have their defaults."""
    from bilmo.store.validate import checked  # pydantic is slow to import; help screens do not wait

    accepted = [field.name for field in fields(kind)]
    unknown = sorted(given.keys() - set(accepted))
    if unknown:
        raise ConfigError(f"there is no setting {', '.join(unknown)}; accepted: {', '.join(accepted)}")
    values = dict(given)
    if isinstance(values.get("dictionary"), PathLike):
        values["dictionary"] = str(values["dictionary"])
    mix = values.get("mix")
    if isinstance(mix, int):
        values["mix"] = (mix,)
    elif isinstance(mix, str) and mix.replace(",", "").isdecimal() and len(mix) <= MAX_DEPTH:
        values["mix"] = tuple(int(number) for number in mix.split(",") if number)
    return checked(values, kind, "settings")


def check_choice(name: str, value: str, accepted: tuple[str, ...]) -> None:
    """Refuse a value that is not one of those accepted."""
    if value not in accepted:
        raise ConfigError(f"{name} is {value!r}; accepted: {', '.join(accepted)}")
