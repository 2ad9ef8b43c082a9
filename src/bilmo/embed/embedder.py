"""The Embedder: a loaded model that turns sentences into numpy arrays, in their order.

Knows: Bundle, the network. Blind to: files of vectors, tasks, the command line.
"""

# B sentences, T tokens with both boundaries, U distinct words, D one direction, L layers

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, get_args, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilmo.embed.module import ElmoModule
from bilmo.embed.texts import Embedded, Floats, check, gathered, joined, splitter_for
from bilmo.embed.word_cache import WordCache
from bilmo.embed.word_cache_file import WordVectors
from bilmo.errors import ConfigError, NoSoftmax, TextError
from bilmo.ids.batch import Sentence, by_length, listed
from bilmo.net.bilm import settle
from bilmo.net.config import Precision
from bilmo.net.kernels.threads import caller_threads
from bilmo.net.layers import Layers
from bilmo.net.mix import How, Mix, Norm
from bilmo.net.state import State
from bilmo.store.bundle import Bundle
from bilmo.store.model_folder import DType

Start = Literal["settled", "zero", "carry"]
All = Literal["all"]
Pool = Literal["none", "mean", "max"]
Vectors = NDArray[np.float32]

BATCH_TOKENS = 4096
"""Tokens of a batch, boundaries included; how sentences are grouped never changes a vector."""
LONG_SENTENCES = 8
"""Number of long sentences computed together even if they exceed BATCH_TOKENS; 1 if the user set batch_tokens."""
STREAM_BATCHES = 4
"""Batches of a stream that are read at a time; among their sentences, those of similar length go together."""


class Embedder:
    """A model that embeds.

    Any number of threads may use one Embedder at the same time, also through asyncio's `to_thread`. A forked process
    may use the Embedder of its parent, with one thread for torch. A call changes the Embedder only with start="carry":
    the carried state belongs to one caller at a time.
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        start: Start = "settled",
        lang: str = "auto",
        batch_tokens: int | None = None,
        precision: Precision = "float32",
        word_vectors: WordVectors | None = None,
    ) -> None:
        """`word_vectors`: words whose vectors were computed beforehand, and those vectors."""
        if start not in get_args(Start):
            raise ConfigError(f"start is {start!r}; accepted: {', '.join(get_args(Start))}")
        check_precision(precision)
        if batch_tokens is not None and batch_tokens < 1:
            raise ConfigError(f"batch_tokens is {batch_tokens}; it must be 1 or more")
        bundle = settled(bundle) if start == "settled" else bundle
        self.bundle = bundle
        self.config = bundle.config
        self.start = start
        self.precision = precision
        self.lang = lang
        self.split = splitter_for(lang, bundle.lang, bundle.vocab)
        self._batch_tokens = batch_tokens
        self.batch_tokens = batch_tokens or BATCH_TOKENS
        """Maximum number of tokens in a batch."""
        self._vector_width = bundle.config.vector_width
        self._indexer = bundle.indexer()
        network = bundle.shared_network()
        self._prepared = network.prepared(precision)
        self.start_state = bundle.start if start == "settled" and bundle.start is not None else network.zero_state(1)
        """What a sentence starts from: the state of one row."""
        self._softmax = bundle.softmax()
        self._carried: State | None = None
        self._words = WordCache(self._prepared.words, self._indexer, bundle.config.width)
        if word_vectors is not None:
            words, vectors = word_vectors
            # For duplicates, the last one wins.
            distinct = {self._indexer.key(word): row for row, word in enumerate(words)}
            self._words.preload(list(distinct), torch.from_numpy(vectors[list(distinct.values())]))

    def __getstate__(self) -> dict[str, Any]:
        """The constructor's arguments: packed weights are machine-specific and rebuilt on unpickling."""
        made = {"bundle": self.bundle, "start": self.start, "lang": self.lang, "precision": self.precision}
        return {"made": made | {"batch_tokens": self._batch_tokens}, "preloaded": self._words.preloaded()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Embedder.__init__(self, **state["made"])
        self._words.preload(*state["preloaded"])

    def __repr__(self) -> str:
        """What the model is, and how it was loaded."""
        vocab = self.bundle.vocab
        shown = {
            "layout": self.bundle.layout,
            "layers": self.config.layers,
            "vector_width": self._vector_width,
            "words": None if vocab is None else len(vocab),
            "start": self.start,
            "lang": self.lang,
            "precision": self.precision,
        }
        return f"Embedder({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def layers(self, sentences: Iterable[Sentence]) -> list[Vectors]:
        """For each sentence (L+1, tokens, 2D): layer 0 is the word alone, the others see its context.

        With start="carry", the call is one batch, and sentence k continues where sentence k of the last call ended.
        """
        return self._vectors(listed(sentences), None)

    @overload
    def embed(  # type: ignore[overload-overlap]
        self, texts: str, *, mix: How | All = "mean", pool: Pool = "none", dtype: DType = "float32"
    ) -> Embedded: ...
    @overload
    def embed(  # type: ignore[overload-overlap]
        self, texts: Iterable[str], *, mix: How | All = "mean", pool: Pool = "none", dtype: DType = "float32"
    ) -> list[Embedded]: ...
    @overload
    def embed(
        self, texts: Iterable[Sentence], *, mix: How | All = "mean", pool: Pool = "none", dtype: DType = "float32"
    ) -> list[Floats]: ...
    def embed(
        self,
        texts: str | Iterable[str | Sentence],
        *,
        mix: How | All = "mean",
        pool: Pool = "none",
        dtype: DType = "float32",
    ) -> Embedded | list[Embedded] | list[Floats]:
        """Vectors (tokens, width) of a text, of many texts, or of sentences that are lists of tokens.

        A string is raw text: it is split, and its tokens are returned with the vectors. Each of its sentences is
        embedded separately. A list of tokens is used as it is, and only its vectors are returned. Several texts give
        a list in the same order.

        mix: a mix of `bilmo.Mix` that needs no training; "all" keeps the layers, (L+1, tokens, 2D).
        pool: "mean" or "max" over the tokens gives one vector per text; a text without tokens gets zeros.
        dtype: "float16" takes half the space and keeps about three digits.
        """
        if isinstance(texts, str):
            return self.embed([texts], mix=mix, pool=pool, dtype=dtype)[0]
        items = list(texts)
        listed([[] if isinstance(item, str) else item for item in items])  # refuses what is neither text nor tokens
        rows = [self.sentences(item) for item in items]
        return _with_tokens(items, rows, self.embed_rows(rows, mix=mix, pool=pool, dtype=dtype))

    @overload
    def embed_stream(  # type: ignore[overload-overlap]
        self, texts: Iterable[str], *, mix: How | All = "mean", pool: Pool = "none", dtype: DType = "float32"
    ) -> Iterator[Embedded]: ...
    @overload
    def embed_stream(
        self, texts: Iterable[Sentence], *, mix: How | All = "mean", pool: Pool = "none", dtype: DType = "float32"
    ) -> Iterator[Floats]: ...
    def embed_stream(
        self,
        texts: Iterable[str | Sentence],
        *,
        mix: How | All = "mean",
        pool: Pool = "none",
        dtype: DType = "float32",
    ) -> Iterator[Embedded] | Iterator[Floats]:
        """Like `embed`, for any number of texts: only a few batches are in memory at a time.

        With start="carry", each text continues where the previous one ended.
        """
        check(pool, dtype)
        if isinstance(texts, str):
            raise TextError("a stream consists of many texts; found one string. Use embed for a single text.")
        return self._stream(texts, mix, pool, dtype)

    def _stream(self, texts: Iterable[str | Sentence], mix: How | All, pool: Pool, dtype: DType) -> Iterator[Any]:
        for items, rows in gathered(((item, self.sentences(item)) for item in texts), self.at_once):
            yield from _with_tokens(items, rows, self.embed_rows(rows, mix=mix, pool=pool, dtype=dtype))

    @property
    def at_once(self) -> int:
        """Tokens of a stream that are embedded together; 0 means one text at a time, which a carried state requires."""
        return 0 if self.start == "carry" else STREAM_BATCHES * self.batch_tokens

    def sentences(self, item: str | Sentence) -> list[Sentence]:
        """The sentences of a text; a list of tokens is one sentence."""
        return list(self.split(item)) if isinstance(item, str) else listed([item])

    def embed_rows(
        self,
        rows: Sequence[Sequence[Sentence]],
        *,
        mix: How | All = "mean",
        pool: Pool = "none",
        dtype: DType = "float32",
    ) -> list[Floats]:
        """The vectors of texts that are already split into sentences, as `embed` gives them.

        With start="carry" all sentences of a text are read as one, and text k continues where text k of the last call
        ended.
        """
        check(pool, dtype)
        if mix == "weighted":
            raise ConfigError(
                "a weighted mix is learned with a task: use module(), or mix='mean', which is an untrained weighted mix"
            )
        if self.start == "carry":
            rows = [[list(chain.from_iterable(row))] for row in rows]
        with torch.device("cpu"):
            made = None if mix == "all" else self._mix(mix)
        vectors = iter(self._vectors(list(chain.from_iterable(rows)), made))
        return [joined([next(vectors) for _ in row], pool, dtype) for row in rows]

    def _vectors(self, sentences: Sequence[Sentence], mix: Mix | None) -> list[Floats]:
        """For each sentence its layers (L+1, tokens, 2D), or these mixed; layers above the mix are not computed."""
        out: list[Floats] = [np.empty(0, dtype=np.float32)] * len(sentences)
        layers = self.config.layers + 1
        for numbers, lengths, values in self._run(sentences, max(mix.chosen) + 1 if mix else layers):
            if mix is not None:
                # All sentences as one row without padding; zeros stand for the layers that the mix does not read.
                unread = values.new_zeros(layers - len(values), 1, 1).expand(-1, *values.shape[1:])
                values = torch.cat([values, unread]) if len(unread) else values
                with torch.inference_mode():
                    real = torch.ones(1, values.shape[1], dtype=torch.bool, device="cpu")
                    values = mix(Layers(values[:, None], real))[0]
            at = 0
            for k, length in zip(numbers, lengths, strict=True):
                inside = values[..., at + 1 : at + length - 1, :].numpy()
                out[k] = inside if len(numbers) == 1 else inside.copy()  # a copy does not keep the others in memory
                at += length
        return out

    def carried(self) -> dict[str, Vectors]:
        """The state that the next call starts from, by name; empty if there is none."""
        return {name: value.numpy() for name, value in self._carried.named().items()} if self._carried else {}

    def set_carried(self, carried: Mapping[str, Vectors]) -> None:
        """Let the next call start from a state that `carried` returned."""
        tensors = {name: torch.from_numpy(value) for name, value in carried.items()}
        self._carried = State.from_named(tensors) if tensors else None

    def log_probs(self, sentences: Iterable[Sentence]) -> list[Vectors]:
        """For each sentence (2, tokens + 1): natural logarithms of probabilities, with the full softmax.

        Row 0, forward: each word given those before it, then `</S>`. Row 1, backward: `<S>`, then each word, given
        those after it. A network of one direction has only its row.
        """
        if self._softmax is None or self.bundle.vocab is None:
            raise NoSoftmax(
                f"this model ({self.bundle.layout}) has no softmax, so it gives vectors but no probabilities. "
                "Of the old layouts, only TensorFlow checkpoints have one."
            )
        vocab, width = self.bundle.vocab, self.config.width
        sentences = listed(sentences)
        out: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(sentences)
        with torch.inference_mode():
            for numbers, lengths, values in self._run(sentences, self.config.layers + 1):
                words = [id for k in numbers for id in (vocab.begin, *vocab.ids(sentences[k]), vocab.end)]
                ids = torch.tensor(words, device="cpu")
                ends = np.cumsum(lengths)
                before = torch.from_numpy(np.delete(np.arange(len(ids)), ends - 1))  # all but the last of each sentence
                scores = []
                for half, direction in enumerate(self.config.directions):
                    read, predicted = (before, before + 1) if direction == "forward" else (before + 1, before)
                    output = values[-1, read, half * width : (half + 1) * width]  # of all sentences at once
                    scores.append(self._softmax.log_probs(output, ids[predicted]))
                parts = torch.stack(scores).split([length - 1 for length in lengths], dim=1)
                for k, part in zip(numbers, parts, strict=True):
                    out[k] = part.numpy().copy()  # a copy does not keep the others in memory
        return out

    def word_vectors(self, words: Sequence[str]) -> Vectors:
        """(words, D): the vector of each word without context, which is each half of layer 0."""
        keys = [self._indexer.key(word) for word in words]
        with torch.inference_mode():
            found = self._words.vectors(list(dict.fromkeys(keys)))
        rows = {key: row for row, key in enumerate(dict.fromkeys(keys))}
        return found.numpy()[[rows[key] for key in keys]]

    def module(
        self,
        mixes: int = 1,
        tune: bool = False,
        *,
        mix: How = "weighted",
        own: bool = False,
        norm: Norm | None = None,
        dropout: float = 0.0,
        word: bool = False,
    ) -> ElmoModule:
        """The model as a torch module: token lists in, (B, T, width) and mask out.

        mixes: number of mixes, each with its own weights; more than one gives a tuple of tensors.
        tune: train the network too; otherwise its parameters do not require gradients.
        The other settings are those of `bilmo.Mix`, where `mix` is its `how`.

        The module has its own copy of the network, so this Embedder never changes.
        """
        if self.start == "carry":
            raise ConfigError("a module cannot carry a state; load the model with start='settled' or 'zero'")
        if mixes < 1:
            raise ConfigError(f"mixes is {mixes}; it must be 1 or more")
        network = self.bundle.network()
        made = [self._mix(mix, own=own, norm=norm, dropout=dropout, word=word) for _ in range(mixes)]
        return ElmoModule(network if tune else network.requires_grad_(False), self._indexer, self.start_state, made)

    def _mix(
        self, how: How, *, own: bool = False, norm: Norm | None = None, dropout: float = 0.0, word: bool = False
    ) -> Mix:
        return Mix.for_network(self.config, how, own=own, norm=norm, dropout=dropout, word=word)

    def reset(self) -> None:
        """Drop the carried state: the next call starts from zero."""
        self._carried = None

    def _run(self, sentences: Sequence[Sentence], layers: int) -> Iterator[tuple[list[int], list[int], Tensor]]:
        """Groups of sentences through the network; only the first `layers` are computed.

        For each group: the numbers of its sentences; their lengths, boundaries included; and their layers
        (layers, N, 2D), one sentence after the other.
        """
        if not sentences:
            return
        if self.start == "carry":
            layers = self.config.layers + 1  # the next call continues every layer
            groups = iter([list(range(len(sentences)))])
        else:
            rows = LONG_SENTENCES if self._batch_tokens is None else 1
            groups = by_length([len(s) for s in sentences], self.batch_tokens, rows)
        for numbers in groups:
            keys, places = self._indexer.places([sentences[k] for k in numbers])
            size = (layers, int(places.lengths.sum()), self._vector_width)
            values = torch.empty(size, dtype=torch.float32, device="cpu")
            before = self.start_state.expand(len(numbers))
            if self._carried is not None:
                before = before.replace_first(self._carried)
            with torch.inference_mode(), caller_threads(1):
                words = self._words.vectors(keys)
                after = self._prepared.layers(words, places, before, values)
            if self.start == "carry":  # rows beyond those of this call stay as they were
                more = self._carried is not None and self._carried.rows > len(numbers)
                self._carried = self._carried.replace_first(after) if self._carried and more else after
            yield numbers, places.lengths.tolist(), values


def check_precision(precision: str) -> None:
    """Refuse a precision that does not exist."""
    if precision not in get_args(Precision):
        raise ConfigError(f"precision is {precision!r}; accepted: {', '.join(get_args(Precision))}")


def settled(bundle: Bundle) -> Bundle:
    """The same model with its settled start, which is computed if the model has none."""
    if bundle.start is not None:
        return bundle
    with caller_threads(1):
        return replace(bundle, start=settle(bundle.shared_network(), bundle.indexer().batch([[]])))


def _with_tokens(
    items: Sequence[str | Sentence], rows: Sequence[Sequence[Sentence]], vectors: Sequence[Floats]
) -> list[Any]:
    """Vectors, with the tokens of those texts that were split here."""
    return [
        Embedded(list(chain.from_iterable(row)), found) if isinstance(item, str) else found
        for item, row, found in zip(items, rows, vectors, strict=True)
    ]
