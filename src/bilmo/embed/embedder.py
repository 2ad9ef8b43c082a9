"""The Embedder: a loaded model that turns texts and sentences into numpy arrays, in their order.

Knows: LoadedModel, texts. Blind to: files of vectors, tasks, the command line.
"""

# D one direction, L layers

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal, Unpack, overload

import numpy as np
import torch
from torch import Tensor

from bilmo.embed.fill import Filled, fill
from bilmo.embed.loaded import LoadedModel
from bilmo.embed.options import All, EmbedOptions, Pool, StreamOptions, check
from bilmo.embed.runner import BATCH_TOKENS, Vectors
from bilmo.embed.texts import Embedded, Floats, gathered, joined
from bilmo.embed.word_space import CANDIDATES, WordSpace, unit
from bilmo.errors import TextError
from bilmo.ids.batch import Sentence, each_text, listed
from bilmo.ids.vocab import MARKS
from bilmo.net.mix import How
from bilmo.progress import advancing
from bilmo.store.model_folder import DType
from bilmo.text.offsets import offsets

STREAM_BATCHES = 4
"""Batches of a stream that are read at a time; among their sentences, those of similar length go together."""
Texts = str | Iterable[str] | Iterable[Sentence]
NoPool = Literal["none"]
Pooled = Literal["mean", "max"]


class Embedder(LoadedModel):
    """A loaded model, which turns texts into vectors.

    Any number of threads may use one Embedder at the same time, also through asyncio's `to_thread`. A forked process
    may use the Embedder of its parent, with one thread for torch. A call changes the Embedder only with start="carry":
    the carried state belongs to one caller at a time.
    """

    _space: tuple[int, WordSpace] | None = None

    @overload
    def embed(  # type: ignore[overload-overlap]
        self, texts: str, *, pool: NoPool = ..., as_tensor: Literal[False] = ..., **options: Unpack[EmbedOptions]
    ) -> Embedded[Floats]: ...
    @overload
    def embed(  # type: ignore[overload-overlap]
        self,
        texts: Iterable[str],
        *,
        pool: NoPool = ...,
        as_tensor: Literal[False] = ...,
        **options: Unpack[EmbedOptions],
    ) -> list[Embedded[Floats]]: ...
    @overload
    def embed(
        self,
        texts: Iterable[Sentence],
        *,
        pool: NoPool = ...,
        as_tensor: Literal[False] = ...,
        **options: Unpack[EmbedOptions],
    ) -> list[Floats]: ...
    @overload
    def embed(
        self, texts: Texts, *, pool: Pooled, as_tensor: Literal[False] = ..., **options: Unpack[EmbedOptions]
    ) -> Floats: ...
    @overload
    def embed(  # type: ignore[overload-overlap]
        self, texts: str, *, pool: NoPool = ..., as_tensor: Literal[True], **options: Unpack[EmbedOptions]
    ) -> Embedded[Tensor]: ...
    @overload
    def embed(  # type: ignore[overload-overlap]
        self, texts: Iterable[str], *, pool: NoPool = ..., as_tensor: Literal[True], **options: Unpack[EmbedOptions]
    ) -> list[Embedded[Tensor]]: ...
    @overload
    def embed(
        self,
        texts: Iterable[Sentence],
        *,
        pool: NoPool = ...,
        as_tensor: Literal[True],
        **options: Unpack[EmbedOptions],
    ) -> list[Tensor]: ...
    @overload
    def embed(
        self, texts: Texts, *, pool: Pooled, as_tensor: Literal[True], **options: Unpack[EmbedOptions]
    ) -> Tensor: ...
    def embed(
        self,
        texts: Texts,
        *,
        mix: How | All = "mean",
        pool: Pool = "none",
        dtype: DType = "float32",
        normalize: bool = False,
        as_tensor: bool = False,
        batch_tokens: int | None = None,
        progress: bool = False,
    ) -> Any:
        """Vectors (tokens, width) of a text, of many texts, or of sentences that are lists of tokens.

        A string is raw text: it is split, and its tokens are returned with the vectors. Each of its sentences is
        embedded separately. A list of tokens is used as it is, and only its vectors are returned. Several texts give
        a list in the same order. Texts may be a list, an iterator, an array, or a column of a table.

        mix: a mix of `bilmo.Mix` that needs no training; "all" keeps the layers, (L+1, tokens, 2D).
        pool: "mean" or "max" over the tokens gives one vector per text, without its tokens: (width,) for one text, one
            array (texts, width) for several. A text without tokens gets zeros.
        dtype: "float16" takes half the space and keeps about three digits.
        normalize: vectors of length 1, so that their dot product is their cosine; zeros stay zeros.
        as_tensor: torch tensors on the device of the model instead of numpy arrays.
        batch_tokens: maximum number of tokens computed at once, in this call; it changes vectors only by rounding.
        progress: show a progress bar on a terminal or in a notebook.
        """
        check(mix, pool, dtype, batch_tokens)
        items = [texts] if isinstance(texts, str) else list(each_text(texts))
        rows = [self.sentences(item) for item in items]
        # Token vectors need not all be in memory if they are pooled; but a carried state belongs to the whole call.
        most = self._at_once(batch_tokens) if pool != "none" and self.start != "carry" else sys.maxsize
        tokens = sum(len(sentence) for row in rows for sentence in row)
        embed_rows = partial(
            self.embed_rows, mix=mix, pool=pool, dtype=dtype, normalize=normalize, batch_tokens=batch_tokens
        )
        vectors: list[Any] = []
        with advancing("embedding", tokens, show=progress) as advance:
            for _, some in gathered(zip(items, rows, strict=True), most):
                vectors += embed_rows(some, advance=advance)
        found: Any
        if pool != "none":
            found = np.stack(vectors) if vectors else np.empty((0, *self._pooled_shape(mix)), dtype=dtype)
            found = torch.from_numpy(found).to(self.device) if as_tensor else found
        else:
            vectors = [torch.from_numpy(one).to(self.device) for one in vectors] if as_tensor else vectors
            found = _with_tokens(items, rows, vectors)
        return found[0] if isinstance(texts, str) else found

    def _pooled_shape(self, mix: How | All) -> tuple[int, ...]:
        if mix == "all":
            return (self.config.layers + 1, self.config.vector_width)
        return (self._mix(mix).output_width,)

    @overload
    def embed_stream(  # type: ignore[overload-overlap]
        self, texts: Iterable[str], *, pool: NoPool = ..., **options: Unpack[StreamOptions]
    ) -> Iterator[Embedded[Floats]]: ...
    @overload
    def embed_stream(
        self, texts: Iterable[Sentence], *, pool: NoPool = ..., **options: Unpack[StreamOptions]
    ) -> Iterator[Floats]: ...
    @overload
    def embed_stream(
        self, texts: Iterable[str] | Iterable[Sentence], *, pool: Pooled, **options: Unpack[StreamOptions]
    ) -> Iterator[Floats]: ...
    def embed_stream(
        self,
        texts: Iterable[str] | Iterable[Sentence],
        *,
        mix: How | All = "mean",
        pool: Pool = "none",
        dtype: DType = "float32",
        normalize: bool = False,
        batch_tokens: int | None = None,
    ) -> Iterator[Any]:
        """Like `embed`, for any number of texts: only a few batches are in memory at a time.

        With start="carry", each text continues where the previous one ended.
        """
        check(mix, pool, dtype, batch_tokens)
        if isinstance(texts, str):
            raise TextError("a stream consists of many texts; found one string. Use embed for a single text.")
        embed_rows = partial(
            self.embed_rows, mix=mix, pool=pool, dtype=dtype, normalize=normalize, batch_tokens=batch_tokens
        )
        given = ((item, self.sentences(item)) for item in each_text(texts))
        return chain.from_iterable(
            embed_rows(rows) if pool != "none" else _with_tokens(items, rows, embed_rows(rows))
            for items, rows in gathered(given, self._at_once(batch_tokens))
        )

    @property
    def at_once(self) -> int:
        """Tokens of a stream that are embedded together; 0 means one text at a time, which a carried state requires."""
        return self._at_once(None)

    def _at_once(self, batch_tokens: int | None) -> int:
        return 0 if self.start == "carry" else STREAM_BATCHES * (batch_tokens or self.batch_tokens or BATCH_TOKENS)

    def sentences(self, item: str | Sentence) -> list[Sentence]:
        """The sentences of a text; a list of tokens is one sentence."""
        return list(self.split(item)) if isinstance(item, str) else listed([item])

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text begins and ends, so that `text[begin:end]` is the token.

        The tokens are those that `embed` gives for this text.
        """
        return offsets(text, chain.from_iterable(self.sentences(text)))

    def embed_rows(
        self,
        rows: Sequence[Sequence[Sentence]],
        *,
        mix: How | All = "mean",
        pool: Pool = "none",
        dtype: DType = "float32",
        normalize: bool = False,
        batch_tokens: int | None = None,
        advance: Callable[[float], None] | None = None,
    ) -> list[Floats]:
        """The vectors of texts that are already split into sentences, as `embed` gives them.

        With start="carry" all sentences of a text are read as one, and text k continues where text k of the last call
        ended.

        advance: called with the number of tokens of each batch when it is done.
        """
        check(mix, pool, dtype, batch_tokens)
        if self.start == "carry":
            rows = [[list(chain.from_iterable(row))] for row in rows]
        with self.device:
            made = None if mix == "all" else self._mix(mix)
        sentences = list(chain.from_iterable(rows))
        vectors = iter(self._runner.vectors(sentences, made, batch_tokens or self.batch_tokens, advance))
        return [joined([next(vectors) for _ in row], pool, dtype, normalize=normalize) for row in rows]

    def __contains__(self, word: object) -> bool:
        """Whether a word is in the vocabulary. A model that reads characters also has vectors for other words."""
        vocab = self.bundle.vocab
        return vocab is not None and isinstance(word, str) and word not in MARKS and word in vocab

    def __getitem__(self, word: str) -> Vectors:
        """The vector of a word without context, of length 1, by which `bilmo similar` compares words.

        The first half is layer 0, whitened, and reflects the spelling. The second half is the softmax row without what
        all rows have in common, and reflects the contexts in which the word occurs; it is 0 for a word that is not in
        the vocabulary. A model without a softmax has only the first half.
        """
        found: Vectors = self._words().vectors([word])[0]
        return found

    def similarity(self, a: str | Sentence, b: str | Sentence) -> float:
        """The cosine of two words or texts, each the mean vector of its words without context.

        Words that are not in the vocabulary are left out, unless a text has no others: then both are compared by
        spelling alone. To compare texts by their contextual vectors, use `embed` with `pool` and `normalize`.
        """
        space = self._words()
        texts = [list(chain.from_iterable(self.sentences(text))) for text in (a, b)]
        if not all(texts):
            raise TextError("a text without words cannot be compared; give two words or texts")
        known = [[word for word in text if word in self] or text for text in texts]
        spelled = space.by_spelling(chain.from_iterable(known))
        one, other = (unit(space.vectors(words, spelled=spelled).mean(axis=0)) for words in known)
        return float(one @ other)

    def most_similar(
        self,
        positive: str | Iterable[str] = (),
        negative: str | Iterable[str] = (),
        topn: int = 10,
        *,
        candidates: int = CANDIDATES,
    ) -> list[tuple[str, float]]:
        """The words nearest to the sum of the positive words minus the negative ones, and their cosines.

        `elmo.most_similar("seven")` gives what `bilmo similar MODEL seven` shows. If one of the words is not in the
        vocabulary, all are compared by spelling alone.

        candidates: compare with this many words from the start of the vocabulary.
        """
        added, taken = ([words] if isinstance(words, str) else list(words) for words in (positive, negative))
        if not added and not taken:
            raise TextError("there is no word to compare with; give at least one positive or negative word")
        space = self._words(candidates)
        given = [*added, *taken]
        spelled = space.by_spelling(given)
        signs = np.array([1] * len(added) + [-1] * len(taken), dtype=np.float32)
        vector = unit(signs @ space.vectors(given, spelled=spelled))
        return space.nearest(vector, topn, without=given, spelled=spelled)

    def doesnt_match(self, words: Iterable[str]) -> str:
        """The word that is farthest from the mean of all."""
        given = [words] if isinstance(words, str) else list(words)
        if len(given) < 2:
            raise TextError(f"there must be several words, of which one does not match; found {given!r}")
        space = self._words()
        vectors = space.vectors(given, spelled=space.by_spelling(given))
        return given[int(np.argmin(vectors @ vectors.mean(axis=0)))]

    def fill(self, text: str, topn: int = 10) -> Filled:
        """The words that the model expects in place of the word in square brackets.

        `elmo.fill("The cat sat on the [mat].")` gives the candidates with their probabilities, and the rank of "mat".
        The model does not see the word in brackets. See `bilmo.embed.fill`.
        """
        return fill(self, text, topn)

    def _words(self, candidates: int = CANDIDATES) -> WordSpace:
        """The words to compare with. Those of the last call are kept, because computing them takes time."""
        if self._space is None or self._space[0] != candidates:
            self._space = (candidates, WordSpace(self, candidates))
        return self._space[1]


def _with_tokens(
    items: Sequence[str | Sentence], rows: Sequence[Sequence[Sentence]], vectors: Sequence[Floats]
) -> list[Any]:
    """Vectors, with the tokens of those texts that were split here."""
    return [
        Embedded(list(chain.from_iterable(row)), found) if isinstance(item, str) else found
        for item, row, found in zip(items, rows, vectors, strict=True)
    ]
