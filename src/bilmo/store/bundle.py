"""A model in memory, before it becomes a network and after it was one.

Knows: ids, net. Blind to: files and formats.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

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

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Bundle:
    """Config, weights, vocabulary: all that makes a model."""

    config: BiLMConfig
    weights: dict[str, Tensor]
    """By the names of `BiLM.state_dict()`, and `softmax.weight`, `softmax.bias` where there is a softmax."""
    layout: str
    """What was found on disk."""
    vocab: Vocab | None = None
    chars: CharTable | None = None
    """Only for a character CNN over Unicode; bytes need no table."""
    start: State | None = None
    """The settled state of one row; None where the model does not carry it."""
    card: str = ""
    """The model card, in Markdown."""
    notes: list[str] = field(default_factory=list)
    """What a user should know of how the model was read: tensors that were not used, values that were assumed."""

    def __post_init__(self) -> None:
        table, vocab = self.config.words.table, self.vocab
        if table and table.given and vocab and (vocab.begin, vocab.end, vocab.unknown) != (0, 1, 2):
            raise VocabError("a vocabulary of given vectors must begin with <S>, </S>, <UNK>: they have learned rows")

    @property
    def has_softmax(self) -> bool:
        """Whether the model can score words."""
        return "softmax.weight" in self.weights

    def identity(self) -> str:
        """A SHA-256 of what gives the model its layers, the same whatever layout it lies in.

        The softmax is no part of it, and neither is the start, which follows from the rest unless it was learned.
        """
        words = self.vocab.words if self.vocab and self.config.words.table else ()
        names = [*(self.chars.lines() if self.chars else ()), "", *words]
        digest = hashlib.sha256(repr((self.config, names)).encode("utf-8", "surrogatepass"))
        for name, value in sorted(self.weights.items()):
            if not name.startswith("softmax."):
                digest.update(name.encode())
                digest.update(value.detach().float().contiguous().numpy().data)
        return digest.hexdigest()

    def network(self) -> BiLM:
        """The network with these weights, ready to embed."""
        with torch.device("meta"):  # no memory for values that are replaced at once
            bilm = BiLM(self.config)
        own = {name: value for name, value in self.weights.items() if not name.startswith("softmax.")}
        bilm.load_state_dict(own, assign=True)
        for name, parameter in bilm.named_parameters():
            parameter.requires_grad_(trains(self.config, name))
        return bilm.eval()

    def softmax(self) -> Softmax | None:
        """The head of the language model, where the model came with one."""
        if not self.has_softmax:
            return None
        with torch.device("meta"):
            head = Softmax(*self.weights["softmax.weight"].shape)
        names = ("weight", "bias")
        head.load_state_dict({name: self.weights[f"softmax.{name}"] for name in names}, assign=True)
        return head

    def indexer(self) -> Indexer:
        """Sentences to batches, the way this model wants them."""
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
    """Whether a parameter is ever trained: given word vectors may have to stay as they came."""
    table = config.words.table
    return not (name == "words.table.weight" and table is not None and table.given and not table.tuned)


def shapes_of(config: BiLMConfig, *, softmax_words: int | None) -> dict[str, Shape]:
    """Every tensor that a model of this shape has, without making one."""
    try:
        with torch.device("meta"):
            shapes = {name: tuple(value.shape) for name, value in BiLM(config).state_dict().items()}
            if softmax_words is not None:
                head = Softmax(softmax_words, config.width).state_dict()
                shapes |= {f"softmax.{name}": tuple(value.shape) for name, value in head.items()}
    except RuntimeError as error:  # each size is possible, their product is not
        raise ConfigError(f"no memory holds a network of these sizes ({error})") from None
    return shapes


def compare(found: Mapping[str, Shape], needed: Mapping[str, Shape], *, where: str) -> list[str]:
    """Names in `found` that nobody needs; an error names all that is missing or misshapen, at once."""
    wrong = [f"{name} is missing; needed is {shape}" for name, shape in needed.items() if name not in found]
    wrong += [
        f"{name} has shape {found[name]}; needed is {shape}"
        for name, shape in needed.items()
        if name in found and tuple(found[name]) != tuple(shape)
    ]
    if wrong:
        shown = "\n".join(f"  {line}" for line in wrong[:12])
        more = f"\n  and {len(wrong) - 12} more" if len(wrong) > 12 else ""
        raise WeightsError(f"{where}: the weights do not fit the settings beside them.\n{shown}{more}")
    return [name for name in found if name not in needed]
