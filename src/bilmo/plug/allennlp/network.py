"""The language model of AllenNLP's Elmo: character ids to layers, with bilmo's network inside.

Knows: Bundle, the driver. Blind to: mixes, raw text.
"""

# B sentences, T tokens, S steps with both boundaries, C characters, U distinct words, D one direction, L layers

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from bilmo.embed.loaded import settled
from bilmo.embed.options import check_start
from bilmo.ids.batch import Places, Words
from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END, ByteChars, Ids
from bilmo.net.bilm import BiLM
from bilmo.net.cells import Cell
from bilmo.net.config import BiLMConfig
from bilmo.net.run import run
from bilmo.net.state import State
from bilmo.plug.allennlp.files import Name, read
from bilmo.plug.allennlp.names import Renamed, gates, joined, rename, same, with_row_of_zeros
from bilmo.store.bundle import Bundle

Start = Literal["carry", "zero", "settled"]
logger = logging.getLogger(__name__)


def spelled_word(ids: Ids) -> str:
    """The word of character ids, in bilmo's scheme; a word that AllenNLP has cut off stays cut off."""
    if ByteChars.sentence_begin in ids:
        return SENTENCE_BEGIN
    if ByteChars.sentence_end in ids:
        return SENTENCE_END
    return bytes(ids[ids < ByteChars.sentence_begin].tolist()).decode("utf-8", "ignore")


def padded_ids(word: str, characters: int) -> Ids:
    """(C,): the ids of one word in AllenNLP's scheme, where 0 means padding and everything else is larger by 1."""
    chars = ByteChars(characters)
    found = np.full(characters, chars.pad, dtype=np.int64)
    ids = chars.ids(word)
    found[: len(ids)] = ids
    return found + 1


class _ElmoCharacterEncoder(nn.Module):
    """Character ids (B, T, C) to word vectors (B, T + 2, D) without context."""

    def __init__(
        self,
        options_file: Name | None,
        weight_file: Name | None,
        requires_grad: bool = False,
        *,
        given: tuple[Bundle, BiLM] | None = None,
    ) -> None:
        """`given`: the model and its network, instead of files."""
        super().__init__()
        bundle = given[0] if given else read(options_file, weight_file)
        made = given[1] if given else bundle.network()
        config, chars = made.config, made.config.words.chars
        assert chars is not None and chars.max_characters is not None
        self.output_dim = config.width
        self.requires_grad = requires_grad
        self._encoder = made.words.requires_grad_(requires_grad)
        self._indexer = bundle.indexer() if config.words.table else None
        self._widest = chars.widest_filter
        self._marks = [padded_ids(mark, chars.max_characters) for mark in (SENTENCE_BEGIN, SENTENCE_END)]
        rename(self, _encoder_names(config))

    def get_output_dim(self) -> int:
        """D."""
        return self.output_dim

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        """`token_embedding` (B, T + 2, D), zero where there is no token, and `mask` (B, T + 2)."""
        words, places = self.distinct(inputs)
        reads = torch.from_numpy(places.forward).to(words.device)
        mask = mask_of(places).to(words.device)
        return {"token_embedding": words[reads] * mask.unsqueeze(-1), "mask": mask}

    def distinct(self, inputs: Tensor) -> tuple[Tensor, Places]:
        """The vectors of the distinct words (U, D), and where they occur between boundaries; S is T + 2."""
        ids = inputs.detach().cpu().numpy()
        rows, tokens, _ = ids.shape
        lengths = (ids > 0).any(axis=2).sum(axis=1)  # as in AllenNLP, padding is on the right
        spelled = np.zeros((rows, tokens + 2, ids.shape[2]), dtype=np.int64)  # (B, S, C)
        spelled[:, 1:-1] = ids
        spelled[:, 0] = self._marks[0]
        spelled[np.arange(rows), lengths + 1] = self._marks[1]
        mask = np.arange(tokens + 2) < (lengths + 2)[:, None]
        found, numbers = np.unique(spelled[mask], axis=0, return_inverse=True)
        forward = np.zeros((rows, tokens + 2), dtype=np.int64)
        forward[mask] = numbers.reshape(-1)
        found = found - 1  # bilmo has no row for "no token"
        used = int(np.flatnonzero((found != ByteChars.pad).any(axis=0))[-1]) + 1
        chars = np.ascontiguousarray(found[:, : used + self._widest])  # more padding cannot change the result
        frozen = not any(parameter.requires_grad for parameter in self.parameters())
        with torch.set_grad_enabled(torch.is_grad_enabled() and not frozen):
            words = self._encoded(Words(chars, self._rows(found)))
        return words, as_places(forward, lengths + 2)

    def _encoded(self, words: Words) -> Tensor:
        """The vectors of distinct words (U, D). A 0 among the characters of a word has a vector of zeros."""
        assert words.chars is not None
        gaps = words.chars < 0
        if not gaps.any():
            return cast("Tensor", self._encoder(words))
        table = self._encoder.get_parameter("chars.table")
        longer = torch.cat([table, torch.zeros_like(table[:1])])
        filled = Words(np.where(gaps, len(table), words.chars), words.ids)
        return cast("Tensor", torch.func.functional_call(self._encoder, {"chars.table": longer}, (filled,)))

    def _rows(self, found: Ids) -> Ids | None:
        """Distinct words (U, C) to their rows in the model's table of words, where it has one."""
        if self._indexer is None:
            return None
        return np.array([self._indexer.key(spelled_word(ids))[1] for ids in found], dtype=np.int64)


def as_places(forward: Ids, lengths: Ids) -> Places:
    """Places of whole sentences: the backward stack reads each row from its end."""
    backward = np.zeros_like(forward)
    for row, length in enumerate(lengths):
        backward[row, :length] = forward[row, :length][::-1]
    return Places(forward, backward, lengths.astype(np.int64))


def mask_of(places: Places) -> Tensor:
    """(B, S), True on real steps."""
    return torch.from_numpy(np.arange(places.forward.shape[1]) < places.lengths[:, None])


class _ElmoLstm(nn.Module):
    """The recurrent layers. `stateful`, `_states` and `reset_states` are those of AllenNLP."""

    def __init__(self, network: BiLM, start: State, requires_grad: bool) -> None:
        """`start`: the state of one row from which a sentence starts, unless one is carried."""
        super().__init__()
        self.stateful = True
        self._carried: State | None = None
        self._skip = network.config.skip
        for direction, cells in network.stacks.items():
            self.add_module(f"{direction}_stack", nn.ModuleList(cells))
        self.requires_grad_(requires_grad)
        self._start = start
        self._directions = network.config.directions
        rename(self, _lstm_names(network.config))

    def forward(self, words: Tensor, places: Places) -> Tensor:
        """Words (U, D) and where they occur to layers (L+1, B, S, 2D), zero where there is no token."""
        stacks = {d: list(cast("Iterable[Cell]", self.get_submodule(f"{d}_stack"))) for d in self._directions}
        rows, steps = places.forward.shape
        longest = int(places.lengths.max(initial=0))  # a batch may be padded to more than its longest sentence
        places = Places(places.forward[:, :longest], places.backward[:, :longest], places.lengths)
        before = self._start.to(words.device).expand(rows)
        if self.stateful and self._carried is not None:
            before = before.replace_first(self._carried.to(words.device))
        with torch.set_grad_enabled(torch.is_grad_enabled() and any(p.requires_grad for p in self.parameters())):
            packed, after = run(stacks, words, places, before, skip=self._skip)
            values = packed.padded().values
        if self.stateful:
            kept = self._carried
            after = after.detach()
            # Rows beyond those of this call stay as they were.
            self._carried = kept.to(words.device).replace_first(after) if kept and kept.rows > rows else after
        return nn.functional.pad(values, (0, 0, 0, steps - values.shape[2]))

    def reset_states(self) -> None:
        """Forget what earlier calls ended with."""
        self._carried = None

    @property
    def _states(self) -> tuple[Tensor, Tensor] | None:
        """What is carried: outputs (L, B, 2D) and memories (L, B, 2H), forward and backward side by side."""
        if self._carried is None:
            return None
        layers = list(zip(*(self._carried.stacks[d] for d in self._directions), strict=True))
        h, c = (torch.stack([torch.cat([state[k] for state in both], dim=-1) for both in layers]) for k in (0, 1))
        return h, c

    @_states.setter
    def _states(self, states: Sequence[Tensor] | None) -> None:
        if states is None:
            return self.reset_states()
        halves = [part.chunk(len(self._directions), dim=-1) for part in states]
        layers = range(len(states[0]))
        self._carried = State(
            {d: [(halves[0][k][i], halves[1][k][i]) for i in layers] for k, d in enumerate(self._directions)}
        )


class _ElmoBiLm(nn.Module):
    """Character ids to the activations of every layer, boundaries included.

    start: "carry", the default, continues each row of a call where that row of the previous call ended, as AllenNLP
        does; "settled" and "zero" start every sentence from the same state, so that its vectors never change.
    """

    def __init__(
        self,
        options_file: Name | None,
        weight_file: Name | None,
        requires_grad: bool = False,
        vocab_to_cache: list[str] | None = None,
        *,
        start: Start = "carry",
    ) -> None:
        super().__init__()
        check_start(start)
        bundle: Bundle = read(options_file, weight_file)
        if start == "settled":
            bundle = settled(bundle)
        network = bundle.network()
        first = bundle.start if start == "settled" else None
        self._token_embedder = _ElmoCharacterEncoder(None, None, requires_grad, given=(bundle, network))
        self._elmo_lstm = _ElmoLstm(network, first or network.zero_state(1), requires_grad)
        self._elmo_lstm.stateful = start == "carry"
        self._requires_grad = requires_grad
        self.num_layers = network.config.layers + 1
        self._word_embedding: nn.Embedding | None = None
        if vocab_to_cache:
            if requires_grad:
                logger.warning("the network is trained, but the vectors of cached words are not updated")
            self.create_cached_cnn_embeddings(vocab_to_cache)

    def get_output_dim(self) -> int:
        """2D."""
        return 2 * self._token_embedder.get_output_dim()

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Tensor | list[Tensor]]:
        """`activations`, a list of (B, T + 2, 2D) for each layer, and `mask` (B, T + 2).

        inputs: character ids (B, T, C). word_inputs: numbers (B, T) of cached words, where 0 means padding; if one of
            them is not cached, the characters are used.
        """
        found = None if word_inputs is None else self._cached(word_inputs)
        words, places = found or self._token_embedder.distinct(inputs)
        layers = self._elmo_lstm(words, places)
        return {"activations": list(layers), "mask": mask_of(places).to(layers.device)}

    def create_cached_cnn_embeddings(self, tokens: Sequence[str]) -> None:
        """Compute the vectors of words once; in `word_inputs`, a word is its place in this list."""
        characters = len(self._token_embedder._marks[0])
        ids = np.stack([padded_ids(word, characters) for word in (SENTENCE_BEGIN, SENTENCE_END, *tokens)])
        device = next(self.parameters()).device
        with torch.no_grad():
            vectors = self._token_embedder(torch.from_numpy(ids)[:, None].to(device))["token_embedding"][:, 1]  # (U, D)
        self.register_buffer("_bos_embedding", vectors[0], persistent=False)
        self.register_buffer("_eos_embedding", vectors[1], persistent=False)
        table = vectors[2:].clone()
        table[0] = 0  # stands for no token
        self._word_embedding = nn.Embedding.from_pretrained(table, freeze=not self._requires_grad, padding_idx=0)

    def _cached(self, word_inputs: Tensor) -> tuple[Tensor, Places] | None:
        """As `distinct`, from cached words; None if a word is not cached."""
        table = self._word_embedding
        ids = word_inputs.detach().cpu().numpy()
        if table is None or ids.max(initial=0) >= len(table.weight):
            return None
        assert isinstance(self._bos_embedding, Tensor) and isinstance(self._eos_embedding, Tensor)
        words = torch.cat([table.weight, torch.stack([self._bos_embedding, self._eos_embedding])])
        lengths = (ids > 0).sum(axis=1)
        forward = np.zeros((len(ids), ids.shape[1] + 2), dtype=np.int64)
        forward[:, 1:-1] = ids
        forward[:, 0] = len(table.weight)
        forward[np.arange(len(ids)), lengths + 1] = len(table.weight) + 1
        return words, as_places(forward, lengths + 2)


def _encoder_names(config: BiLMConfig) -> list[Renamed]:
    chars = config.words.chars
    assert chars is not None
    names = [with_row_of_zeros("_char_embedding_weights", "_encoder.chars.table")]
    for kind in ("weight", "bias"):
        names += [
            same(f"char_conv_{k}.{kind}", f"_encoder.chars.filters.{k}.{kind}") for k in range(len(chars.filters))
        ]
        for k in range(chars.highways):
            parts = (f"_encoder.chars.highways.{k}.{part}.{kind}" for part in ("transform", "carry"))
            names.append(joined(f"_highways._layers.{k}.{kind}", *parts))
        names += [same(f"_projection.{kind}", f"_encoder.project.{kind}")] if config.words.project else []
    return names


def _lstm_names(config: BiLMConfig) -> list[Renamed]:
    names = []
    for direction in config.directions:
        for k in range(config.layers):
            theirs, ours = f"{direction}_layer_{k}", f"{direction}_stack.{k}"
            names += [
                gates(f"{theirs}.input_linearity.weight", f"{ours}.input"),
                gates(f"{theirs}.state_linearity.weight", f"{ours}.recur"),
                gates(f"{theirs}.state_linearity.bias", f"{ours}.bias", config.cell.forget_bias),
            ]
            names += [same(f"{theirs}.state_projection.weight", f"{ours}.project")] if config.cell.project else []
    return names
