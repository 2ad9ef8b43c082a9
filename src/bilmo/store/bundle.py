"""A model in memory as it is loaded and saved: config, weights, vocabulary.

Knows: ids, net. Blind to: files and formats.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from bilmo.errors import ConfigError, VocabError, WeightsError
from bilmo.ids.batch import Indexer
from bilmo.ids.chars import ByteChars, Chars, CharTable
from bilmo.ids.vocab import Vocab
from bilmo.net.bilm import BiLM
from bilmo.net.config import BiLMConfig
from bilmo.net.softmax import Softmax
from bilmo.net.state import State
from bilmo.store.tensors_file import sha256_of_tensors
from bilmo.text.dictionary import Dictionary

Shape = tuple[int, ...]
Identified = Literal["words", "layers", "all"]
"""A part of a model that `Bundle.identity` identifies."""


@dataclass(frozen=True)
class Bundle:
    """Everything that makes a model."""

    config: BiLMConfig
    weights: dict[str, Tensor]
    """By the names of `BiLM.state_dict()`, and `softmax.weight`, `softmax.bias` if there is a softmax."""
    layout: str
    """Name of the source layout, for display."""
    vocab: Vocab | None = None
    chars: CharTable | None = None
    """Only for a character CNN over Unicode; bytes do not need a table."""
    start: State | None = None
    """The settled state of one row; None if the model does not store it."""
    lang: str = ""
    """How the training text was split, by the name of the rules; empty if that is not known."""
    dictionary: Dictionary | None = None
    """Words that the Chinese rules keep whole."""
    card: str = ""
    """The model card, in Markdown."""
    notes: list[str] = field(default_factory=list)
    """What a user should know about how the model was read: unused tensors, assumed values."""

    def __post_init__(self) -> None:
        table, vocab = self.config.words.table, self.vocab
        if table and table.given and vocab and (vocab.begin, vocab.end, vocab.unknown) != (0, 1, 2):
            raise VocabError(
                "the vocabulary of pretrained vectors must begin with <S>, </S>, <UNK>, whose rows are trained"
            )

    @property
    def has_softmax(self) -> bool:
        """Whether the model can score words."""
        return "softmax.weight" in self.weights

    def identity(self, of: Identified = "layers") -> str:
        """A SHA-256 of everything that a part of the model depends on, the same for every layout.

        of: "words" for the vectors of words without context; "layers" for those in context, without the start, which
            follows from the rest unless it was learned; "all" for everything, with start, softmax and vocabulary.
        """
        encoder = self.config.words
        chars = self.chars.lines() if self.chars else []
        words = self.vocab.words if self.vocab and encoder.table else ()
        weights = {name: value.float() for name, value in self.weights.items()}
        if of == "words":
            parts = {name: value for name, value in weights.items() if name.startswith("words.")}
            return sha256_of_tensors((encoder, self.config.width, (chars, words)), parts)
        rest = {name: weights.pop(name) for name in list(weights) if name.startswith("softmax.")}
        layers = sha256_of_tensors((self.config, [*chars, "", *words]), weights)
        if of == "layers":
            return layers
        rest |= self.start.named() if self.start else {}
        return sha256_of_tensors((layers, self.vocab and self.vocab.words), rest)

    def network(self) -> BiLM:
        """A network with a copy of these weights, ready to embed."""
        return copy.deepcopy(self.shared_network())

    def shared_network(self) -> BiLM:
        """The same without a copy, for callers that only read: a change of its weights changes this bundle."""
        with torch.device("meta"):  # do not allocate values that are replaced at once
            bilm = BiLM(self.config)
        own = {name: value for name, value in self.weights.items() if not name.startswith("softmax.")}
        bilm.load_state_dict(own, assign=True)
        for name, parameter in bilm.named_parameters():
            parameter.requires_grad_(trains(self.config, name))
        return bilm.eval()

    def softmax(self) -> Softmax | None:
        """The softmax over words; None if the model came without one."""
        if not self.has_softmax:
            return None
        with torch.device("meta"):
            head = Softmax(*self.weights["softmax.weight"].shape)
        names = ("weight", "bias")
        head.load_state_dict({name: self.weights[f"softmax.{name}"] for name in names}, assign=True)
        return head

    def indexer(self) -> Indexer:
        """The indexer that makes batches for this model."""
        words = self.config.words
        chars: Chars | None = None
        if words.chars:
            chars = self.chars if words.chars.kind == "unicode" else ByteChars(words.chars.max_characters)
        return Indexer(
            chars,
            self.vocab if words.table else None,
            lower=words.table.lower if words.table else False,
            widest_filter=words.chars.widest_filter if words.chars else 1,
        )


def trains(config: BiLMConfig, name: str) -> bool:
    """Whether a parameter is trained; given word vectors are not, unless the config says so."""
    table = config.words.table
    return not (name == "words.table.weight" and table is not None and table.given and not table.tuned)


def shapes_of(config: BiLMConfig, *, softmax_words: int | None) -> dict[str, Shape]:
    """The shape of every tensor of a model, without making one."""
    try:
        with torch.device("meta"):
            shapes = {name: tuple(value.shape) for name, value in BiLM(config).state_dict().items()}
            if softmax_words is not None:
                head = Softmax(softmax_words, config.width).state_dict()
                shapes |= {f"softmax.{name}": tuple(value.shape) for name, value in head.items()}
    except RuntimeError as error:  # each size is valid, but their product is too large
        raise ConfigError(f"a network of this size does not fit into memory ({error})") from None
    return shapes


def check_shapes(found: Mapping[str, Shape], needed: Mapping[str, Shape], *, where: str) -> list[str]:
    """Names in `found` that are not needed; an error lists every missing or misshapen tensor."""
    wrong = [f"{name} is missing; its shape must be {shape}" for name, shape in needed.items() if name not in found]
    wrong += [
        f"{name} has shape {found[name]}; it must be {shape}"
        for name, shape in needed.items()
        if name in found and tuple(found[name]) != tuple(shape)
    ]
    if wrong:
        shown = "\n".join(f"  {line}" for line in wrong[:12])
        more = f"\n  and {len(wrong) - 12} more" if len(wrong) > 12 else ""
        raise WeightsError(f"{where}: the weights do not fit the settings.\n{shown}{more}")
    return [name for name in found if name not in needed]
