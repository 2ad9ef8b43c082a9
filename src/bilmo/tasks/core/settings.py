"""Every setting of a task, as frozen values.

Knows: nothing. Blind to: data, tensors, which task it is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from bilmo.errors import ConfigError
from bilmo.net.config import STRICT
from bilmo.store.model_folder import checked


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How words go in, the head on top, and how both are trained."""

    __pydantic_config__ = STRICT

    at: Literal["input", "output", "both", "none"] = "input"
    """Where mixed ELMo layers are joined: to the input, to the output of the task's own network, both, or nowhere."""
    mix: str | tuple[int, ...] = "weighted"
    """weighted (learned), top, mean, concat, or numbers of layers for their mean."""
    l2: float = 0.001
    """On the weights of a weighted mix: 1 keeps them near the mean, 0.001 lets them vary."""
    chars: int = 0
    """Filters of a small character CNN of the task's own; 0 leaves it out."""
    word_width: int = 100
    """Width of word vectors that are trained from scratch."""
    tune: bool = False
    """Train the biLM too, with a rate of its own."""
    tune_rate: float = 0.0001
    head: str = "default"
    """classify: mean, max, attention, lstm, bilstm, linear. tag: bilstm-crf, linear. The first is the default."""
    hidden: int = 200
    """Width of dense layers, and of one direction of an LSTM."""
    dense: int = 1
    """classify: hidden layers after pooling; linear has none."""
    batch_norm: bool = False
    """classify: normalise before the last layer."""
    dropout: float = 0.5
    """On what goes in and before the last layer."""
    rate: float = 0.001
    batch: int = 32
    """Examples in a step."""
    epochs: int = 50
    """At most."""
    patience: int = 5
    """Epochs without a better result on dev until training stops."""
    dev_share: float = 0.1
    """Share of the examples split off to judge by, where no dev set is given."""
    clip: float = 5.0
    """Bound on the norm of all gradients together."""
    lang: str = "auto"
    """How text is split: auto, spaces (it is split already), en, west, zh."""
    column: str = ""
    """tag: the column of a file that holds the tags; empty for the last, or upos of CoNLL-U."""
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("word_width", "hidden", "batch", "epochs", "patience"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        for name in ("chars", "dense", "l2", "seed"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        for name in ("rate", "tune_rate", "clip"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout is {self.dropout}; it must be from 0 up to 1, 1 not included")
        if self.seed >= 2**63:
            raise ConfigError(f"seed is {self.seed}; it must be below 2**63, {2**63}")
        if self.tune and self.at == "none":
            raise ConfigError(
                "tune trains the biLM with the task, but this task uses none; leave out tune, or use ELMo"
            )
        if not 0 < self.dev_share < 1:
            raise ConfigError(f"dev_share is {self.dev_share}; it must be between 0 and 1")

    @property
    def at_input(self) -> bool:
        """Whether ELMo is joined to the input."""
        return self.at in ("input", "both")

    @property
    def at_output(self) -> bool:
        """Whether ELMo is joined to the output of the task's own network."""
        return self.at in ("output", "both")


def settings_of(given: dict[str, Any]) -> Settings:
    """Settings by name, checked; the others have their defaults."""
    unknown = sorted(given.keys() - {field.name for field in fields(Settings)})
    if unknown:
        known = ", ".join(field.name for field in fields(Settings))
        raise ConfigError(f"there is no setting {', '.join(unknown)}; known are {known}")
    mix = given.get("mix", "weighted")
    if isinstance(mix, int):
        given = given | {"mix": (mix,)}
    elif isinstance(mix, str) and mix.replace(",", "").isdecimal():
        given = given | {"mix": tuple(int(number) for number in mix.split(",") if number)}
    return checked(given, Settings, "settings")
