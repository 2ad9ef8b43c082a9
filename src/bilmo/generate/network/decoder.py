"""The network that writes: a BiLSTM encoder, and an LSTM decoder with attention, input feeding, copying and coverage.

Knows: torch, recurrent layers. Blind to: words as strings, the search, files.
"""

# B sources, S source tokens, T target words, N rows of a step, M width of the memory, H hidden, E width of a target
# word, V target words, X words of a source that are not among them

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.generate.settings import GenerateSettings
from bilmo.tasks.network.input import TaskInput, TaskVectors
from bilmo.tasks.network.pool import MINUS
from bilmo.tasks.network.recurrent import DeepRecurrent
from bilmo.tasks.network.rows import chosen_rows

SMALLEST = 1e-20
"""A copied word has at least this probability in a loss, which needs a finite logarithm."""


@dataclass(frozen=True)
class Memory:
    """The encoded source, to which the decoder attends."""

    states: Tensor
    """(B, S, M), zero on padding."""
    keys: Tensor
    """(B, S, H): the states as attention compares them."""
    mask: Tensor
    """(B, S)"""
    copies: Tensor
    """(B, S): the number of each source token as a target word; V and above for words that are only in the source."""
    extra: int
    """X: the numbers of words that are only in a source are below V + X."""

    def rows(self, rows: Tensor) -> Memory:
        """Some rows."""
        return Memory(self.states[rows], self.keys[rows], self.mask[rows], self.copies[rows], self.extra)


@dataclass(frozen=True)
class DecoderState:
    """The recurrent state of the decoder."""

    h: Tensor
    """(N, H)"""
    c: Tensor
    """(N, H)"""
    output: Tensor
    """(N, E): the last output, which is fed to the next step."""
    seen: Tensor
    """(N, S): the sum of all attention."""

    def rows(self, rows: Tensor) -> DecoderState:
        """Some rows."""
        return DecoderState(self.h[rows], self.c[rows], self.output[rows], self.seen[rows])


@dataclass(frozen=True)
class Decoded:
    """The result of one step, or of all steps of a batch."""

    output: Tensor
    """(..., E)"""
    attention: Tensor
    """(..., S)"""
    gate: Tensor
    """(...,): the score of writing a word, against copying one."""


class Encoder(nn.Module):
    """Vectors of source tokens to states; the second mix is concatenated to them."""

    def __init__(self, input: TaskInput, settings: GenerateSettings) -> None:
        super().__init__()
        self.recurrent = DeepRecurrent(input.width, settings.hidden, settings.depth, dropout=settings.dropout)
        self.dropout = nn.Dropout(settings.dropout)
        self.output_width = self.recurrent.output_width + input.output_width

    def forward(self, source: TaskVectors) -> tuple[Tensor, Tensor]:
        """States (B, S, M), and for each source the last state of both directions (B, 2H)."""
        states = self.recurrent(source.vectors, source.mask)
        half = states.shape[-1] // 2
        lengths = source.mask.sum(dim=1)
        ends = (lengths - 1).clamp(min=0) + torch.arange(len(lengths)) * states.shape[1]
        last = chosen_rows(states.flatten(0, 1), ends)[:, :half]  # (B, H)
        final = torch.cat([last, states[:, 0, half:]], dim=-1)
        if source.output_mix is not None:
            states = torch.cat([states, source.output_mix * source.mask.unsqueeze(-1)], dim=-1)
        return self.dropout(states), final


class Decoder(nn.Module):
    """An LSTM that reads its last word and its last output, attends to the source, and writes or copies a word."""

    def __init__(self, memory: int, final: int, words: int, read: int, settings: GenerateSettings) -> None:
        """Create the decoder.

        memory, final: widths of the states and of the last states of the encoder.
        words: the number of target words.
        read: width of the vectors of a language model that reads the words; 0 without one.
        """
        super().__init__()
        hidden, width = settings.hidden, settings.target_width
        self.hidden, self.width, self.copying = hidden, width, not (settings.no_copy or settings.subwords)
        self.words = nn.Parameter(torch.empty(words, width))
        self.output_words = nn.Parameter(torch.empty(words, width)) if settings.untied else None
        self.bias = nn.Parameter(torch.zeros(words))
        self.start = nn.Linear(final, 2 * hidden)
        self.word_gates = nn.Linear(width + read, 4 * hidden)
        self.state_gates = nn.Linear(width + hidden, 4 * hidden, bias=False)
        self.keys = nn.Linear(memory, hidden, bias=False)
        self.query = nn.Linear(hidden, hidden)
        self.seen = nn.Parameter(torch.zeros(hidden))
        self.energy = nn.Linear(hidden, 1, bias=False)
        self.join = nn.Linear(hidden + memory, width)
        self.gate = nn.Linear(2 * width + hidden + memory, 1) if self.copying else None
        self.dropout = nn.Dropout(settings.dropout)
        for table in (self.words, self.output_words):
            if table is not None:
                nn.init.normal_(table, std=width**-0.5)

    def memory(self, states: Tensor, mask: Tensor, copies: Tensor, extra: int) -> Memory:
        """The states of the encoder, ready for attention."""
        return Memory(states, self.keys(states), mask, copies, extra)

    def first_state(self, final: Tensor, memory: Memory) -> DecoderState:
        """The state before the first word."""
        h, c = self.start(final).chunk(2, dim=-1)
        return DecoderState(torch.tanh(h), c, h.new_zeros(len(h), self.width), h.new_zeros(memory.mask.shape))

    def inputs(self, words: Tensor, read: Tensor | None) -> tuple[Tensor, Tensor]:
        """Words (...,) to their vectors (..., E) and their part of the gates (..., 4H); unknown ones are number 1.

        read: their vectors by a language model, where there is one.
        """
        known = words.masked_fill(words >= len(self.words), 1)
        vectors = self.dropout(F.embedding(known, self.words))
        whole = vectors if read is None else torch.cat([vectors, self.dropout(read)], dim=-1)
        return vectors, self.word_gates(whole)

    def step(self, vectors: Tensor, gates: Tensor, memory: Memory, state: DecoderState) -> tuple[Decoded, DecoderState]:
        """One word of each row, given by `inputs`, and the state before it to the output and the state after it."""
        all_gates = gates + self.state_gates(torch.cat([state.output, state.h], dim=-1))
        write, forget, new, read = all_gates.chunk(4, dim=-1)
        c = torch.sigmoid(forget + 1) * state.c + torch.sigmoid(write) * torch.tanh(new)
        h = torch.sigmoid(read) * torch.tanh(c)
        compared = memory.keys + self.query(h).unsqueeze(1) + state.seen.unsqueeze(-1) * self.seen  # (N, S, H)
        scores = self.energy(torch.tanh(compared)).squeeze(-1)  # (N, S)
        attention = torch.softmax(scores.masked_fill(~memory.mask, MINUS), dim=-1) * memory.mask
        context = torch.bmm(attention.unsqueeze(1), memory.states).squeeze(1)  # (N, M)
        output = torch.tanh(self.join(torch.cat([h, context], dim=-1)))
        if self.gate is not None:
            gate = self.gate(torch.cat([context, h, output, vectors], dim=-1)).squeeze(-1)
        else:
            gate = h.new_zeros(len(h))
        after = DecoderState(h, c, output, state.seen + attention)
        return Decoded(output, attention, gate), after

    def teach(self, words: Tensor, read: Tensor | None, memory: Memory, state: DecoderState) -> tuple[Decoded, Tensor]:
        """All steps for given words before each step (B, T), and how much attention each step repeats (B, T)."""
        vectors, gates = self.inputs(words, read)
        steps: list[Decoded] = []
        repeated: list[Tensor] = []
        for t in range(words.shape[1]):
            before = state.seen
            decoded, state = self.step(vectors[:, t], gates[:, t], memory, state)
            steps.append(decoded)
            repeated.append(torch.minimum(decoded.attention, before).sum(dim=-1))
        whole = Decoded(
            torch.stack([one.output for one in steps], dim=1),
            torch.stack([one.attention for one in steps], dim=1),
            torch.stack([one.gate for one in steps], dim=1),
        )
        return whole, torch.stack(repeated, dim=1)

    def scores(self, output: Tensor) -> Tensor:
        """(..., V): a score for each target word."""
        table = self.words if self.output_words is None else self.output_words
        return F.linear(self.dropout(output), table, self.bias)

    def log_probabilities(self, decoded: Decoded, memory: Memory) -> Tensor:
        """(N, V + X): of each target word and each word that is only in the source. Gradients are off."""
        written = torch.softmax(self.scores(decoded.output), dim=-1)
        if self.gate is None:
            return written.log_()
        share = torch.sigmoid(decoded.gate).unsqueeze(-1)
        all_words = F.pad(written * share, (0, memory.extra))
        return all_words.scatter_add_(1, memory.copies, decoded.attention * (1 - share)).log_()

    def losses(self, decoded: Decoded, memory: Memory, targets: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """For all target words under the mask: minus their log-probability, and that of all words on average.

        decoded: all steps of a batch. targets, mask: (B, T).
        """
        wanted = targets[mask]  # (words,)
        scores = self.scores(decoded.output[mask])  # (words, V)
        total = torch.logsumexp(scores, dim=-1)
        known = wanted < scores.shape[1]
        picked = scores.gather(1, wanted.masked_fill(~known, 0).unsqueeze(1)).squeeze(1) - total
        smooth = total - scores.mean(dim=-1)
        if self.gate is None:
            return -picked, smooth
        gate = decoded.gate[mask]
        match = memory.copies.unsqueeze(1) == targets.unsqueeze(2)  # (B, T, S)
        copied = (decoded.attention * match).sum(dim=-1)[mask]
        written = (F.logsigmoid(gate) + picked).masked_fill(~known, MINUS)
        return -torch.logaddexp(written, F.logsigmoid(-gate) + copied.clamp(min=SMALLEST).log()), smooth


class Reading(Protocol):
    """A language model that reads what the search has written in each row."""

    def read(self, words: Tensor, sources: Tensor) -> Tensor:
        """The last word of each row and the number of its source to vectors (N, width)."""

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows."""


class DecoderSteps:
    """The decoder as the search uses it: rows of partial results."""

    def __init__(self, decoder: Decoder, memory: Memory, state: DecoderState, reading: Reading | None = None) -> None:
        self.decoder, self.memory, self.state, self._reading = decoder, memory, state, reading
        self._sources = torch.arange(len(memory.mask))
        self._memory = memory

    def step(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """The last word of each row to log-probabilities of the next, and to its attention."""
        read = self._reading.read(words, self._sources) if self._reading is not None else None
        vectors, gates = self.decoder.inputs(words, read)
        decoded, self.state = self.decoder.step(vectors, gates, self._memory, self.state)
        return self.decoder.log_probabilities(decoded, self._memory), decoded.attention

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows."""
        sources = self._sources[rows]
        if not torch.equal(sources, self._sources):  # else each row has the memory of its source already
            self._memory = self.memory.rows(sources)
            self._sources = sources
        self.state = self.state.rows(rows)
        if self._reading is not None:
            self._reading.keep(rows)
