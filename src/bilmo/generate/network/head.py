"""The head of tasks that write: the loss of given targets, and the search for the best ones.

Knows: the network, the search, target words. Blind to: files, how heads are trained.
"""

# B sources, S source tokens, T target words

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilmo.generate.data.items import PairItem
from bilmo.generate.data.target_text import TargetText
from bilmo.generate.network.decoder import Decoder, DecoderSteps, Encoder, Memory
from bilmo.generate.network.search import Found, SearchOptions, search
from bilmo.generate.network.target_model import TargetModel, TargetRows
from bilmo.generate.settings import GenerateSettings
from bilmo.net.layers import Layers
from bilmo.net.mix import Mix
from bilmo.tasks.network.batch import tokens_of
from bilmo.tasks.network.head import Head
from bilmo.tasks.network.input import TaskInput
from bilmo.tasks.network.probabilities import WordProbabilities

END, UNKNOWN, FIRST = 0, 1, 2
"""Numbers of target words: the end (also before the first word), unknown ones, and the first word of the list."""
ATTENDED = 50
"""A batch holds as much for this many pairs of source and target words as for one word."""
MOST_ROWS = 256
"""Partial results that the search computes in one step."""


@dataclass(frozen=True)
class Hypothesis:
    """One result of the search."""

    text: str
    tokens: list[str]
    """Its target words; a mark on one says that no space follows or precedes it."""
    log_probability: float
    """Log-probability of all tokens and the end together."""
    score: float
    """The log-probability, divided by the length penalty, and lowered by the coverage penalty."""
    probabilities: list[float]
    """Probability of each token, and of the end."""
    attention: NDArray[np.float32]
    """(tokens and end, source tokens): how much attention each token, and the end, gave to each source token."""


class GenerateHead(Head[PairItem, str]):
    """Encoder and decoder."""

    target_model: TargetModel | None = None
    """The language model of the targets, set after the head is made; it is not trained."""

    def __init__(
        self,
        input: TaskInput,
        words: Sequence[str],
        target: TargetText,
        longest: int,
        target_layers: tuple[int, int],
        settings: GenerateSettings,
    ) -> None:
        """Create the head.

        words: the target words.
        longest: the maximum number of words of a result.
        target_layers: number and width of the layers of the target model; (0, 0) without one.
        """
        super().__init__()
        number, read = target_layers
        self.mix = Mix(layers=number - 1, width=read, directions=1) if number else None
        self.target, self.longest = target, settings.longest or longest
        self.list = tuple(words)
        self.numbers = {word: number for number, word in enumerate(words, start=FIRST)}
        self.smoothing, self.coverage = settings.smoothing, settings.coverage
        self.options = SearchOptions(
            beam=settings.beam,
            shortest=settings.shortest,
            length_penalty=settings.length_penalty,
            coverage_penalty=settings.coverage_penalty,
        )
        self.encoder = Encoder(input, settings)
        self.decoder = Decoder(self.encoder.output_width, 2 * settings.hidden, FIRST + len(words), read, settings)

    def cost(self, item: PairItem) -> int:
        """Source and target, and their attention."""
        source, target = tokens_of(item), len(item.target)
        return source + target + source * target // ATTENDED

    def loss(self, input: TaskInput, items: Sequence[PairItem]) -> Tensor:
        """Nats per target word, smoothed, with the penalty for repeated attention."""
        loss, smooth, repeated, mask = self._taught(input, items)
        plain = (1 - self.smoothing) * loss + self.smoothing * smooth
        return (plain.sum() + self.coverage * (repeated * mask).sum()) / mask.sum()

    def log_probabilities(self, input: TaskInput, items: Sequence[PairItem]) -> list[list[float]]:
        """For each item the log-probability of each word of its target and of the end."""
        loss, _, _, mask = self._taught(input, items)
        parts = (-loss).split(mask.sum(dim=1).tolist())
        return [part.tolist() for part in parts]

    def _taught(self, input: TaskInput, items: Sequence[PairItem]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Losses (words,) and smooth losses (words,) of all words, repeated attention and mask (B, T)."""
        memory, final, extra = self._encode(input, items)
        targets = torch.full((len(items), 1 + max(len(item.target) for item in items)), END)  # (B, T)
        mask = torch.zeros(targets.shape, dtype=torch.bool)
        for k, item in enumerate(items):
            found = [self._number(word, extra[k]) for word in item.target]
            targets[k, : len(found)] = torch.tensor(found, dtype=torch.long)
            mask[k, : len(found) + 1] = True
        before = torch.cat([torch.full((len(items), 1), END), targets[:, :-1]], dim=1)
        read = None
        if self.mix is not None:
            layers = self._target_model().taught([item.target for item in items], targets.shape[1])
            read = self.mix(Layers(layers.to(final.dtype), mask))
        decoded, repeated = self.decoder.teach(before, read, memory, self.decoder.first_state(final, memory))
        return *self.decoder.losses(decoded, memory, targets, mask), repeated, mask

    def _encode(self, input: TaskInput, items: Sequence[PairItem]) -> tuple[Memory, Tensor, list[dict[str, int]]]:
        """The memory, the last states, and for each source the numbers of words that are only in it."""
        source = input([item.text for item in items])
        states, final = self.encoder(source)
        extra: list[dict[str, int]] = []
        copies = torch.full(source.mask.shape, UNKNOWN)
        for k, item in enumerate(items):
            new = dict.fromkeys(word for word in item.copies if word not in self.numbers)
            extra.append({word: FIRST + len(self.list) + j for j, word in enumerate(new)})
            found = [self._number(word, extra[k]) for word in item.copies]
            copies[k, : len(found)] = torch.tensor(found, dtype=torch.long)
        return self.decoder.memory(states, source.mask, copies, max(map(len, extra))), final, extra

    def _number(self, word: str, extra: dict[str, int]) -> int:
        """The number of a word: a target word, one of the source where words are copied, or an unknown one."""
        found = self.numbers.get(word)
        return found if found is not None else extra.get(word, UNKNOWN) if self.decoder.copying else UNKNOWN

    def predict(self, input: TaskInput, items: Sequence[PairItem]) -> list[str]:
        """The best text for each source."""
        return [found[0].text if found else "" for found in self.search(input, items, self.options)]

    def greedy(self, input: TaskInput, items: Sequence[PairItem]) -> list[str]:
        """The text for each source with a beam of 1, which is fast."""
        options = SearchOptions(beam=1, shortest=self.options.shortest)
        return [found[0].text if found else "" for found in self.search(input, items, options)]

    def confidence(self, input: TaskInput, items: Sequence[PairItem]) -> list[WordProbabilities]:
        """For each source the probability of each word of the best text."""
        found = self.search(input, items, self.options)
        return [WordProbabilities(some[0].probabilities if some else []) for some in found]

    def search(
        self, input: TaskInput, items: Sequence[PairItem], options: SearchOptions, longest: int = 0
    ) -> list[list[Hypothesis]]:
        """The best results for each source, best first; `longest` is the maximum number of words, 0 for the usual."""
        size = max(1, MOST_ROWS // max(options.beam, options.best))
        parts = [items[k : k + size] for k in range(0, len(items), size)]
        return [found for part in parts for found in self._search(input, part, options, longest or self.longest)]

    def _search(
        self, input: TaskInput, items: Sequence[PairItem], options: SearchOptions, longest: int
    ) -> Iterator[list[Hypothesis]]:
        memory, final, extra = self._encode(input, items)
        reading = None
        if self.mix is not None:
            reading = _Reading(
                self._target_model().rows(len(items)), self.mix, self.list, [list(some) for some in extra]
            )
        steps = DecoderSteps(self.decoder, memory, self.decoder.first_state(final, memory), reading)
        results = search(steps, [longest] * len(items), options, end=END, banned=[UNKNOWN])
        for item, some, found in zip(items, extra, results, strict=True):
            only_here = list(some)
            yield list(map(partial(self._hypothesis, len(item.copies), only_here), found))

    def _target_model(self) -> TargetModel:
        assert self.target_model is not None, "the estimator sets it"
        return self.target_model

    def _hypothesis(self, source: int, only_here: list[str], found: Found) -> Hypothesis:
        known = FIRST + len(self.list)
        tokens = [self.list[k - FIRST] if k < known else only_here[k - known] for k in found.words]
        return Hypothesis(
            self.target.text(tokens),
            tokens,
            found.log_probability,
            found.score,
            [math.exp(value) for value in found.log_probabilities],
            found.attention[:, :source],
        )


class _Reading:
    """The target model in a search. Before the first word there are zeros, as in training."""

    def __init__(self, rows: TargetRows, mix: Mix, words: Sequence[str], only_here: list[list[str]]) -> None:
        self._rows, self._mix, self._words, self._only_here = rows, mix, words, only_here
        self._started = False

    def read(self, words: Tensor, sources: Tensor) -> Tensor:
        """The last word of each row and the number of its source to vectors (N, width)."""
        if not self._started:
            self._started = True
            return torch.zeros(len(words), self._mix.output_width)
        known = FIRST + len(self._words)
        pairs = zip(words.tolist(), sources.tolist(), strict=True)
        written = [self._words[k - FIRST] if k < known else self._only_here[source][k - known] for k, source in pairs]
        layers = self._rows.read(written).unsqueeze(2)  # (L+1, N, 1, D)
        vectors: Tensor = self._mix(Layers(layers, torch.ones(len(words), 1, dtype=torch.bool)))[:, 0]
        return vectors

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows."""
        self._rows.keep(rows)
