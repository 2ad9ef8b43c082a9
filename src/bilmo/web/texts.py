"""The texts of a request: split into sentences, counted against the limits, embedded together with other requests.

Knows: Embedder, the worker. Blind to: HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import chain

from bilmo.embed.embedder import Embedder
from bilmo.embed.options import All, Pool
from bilmo.embed.texts import Floats, joined, token_count
from bilmo.errors import ConfigError
from bilmo.ids.batch import Sentence
from bilmo.net.mix import How
from bilmo.web.encode import Found
from bilmo.web.limits import Limits
from bilmo.web.refused import Refused
from bilmo.web.worker import Worker

INLINE = 4096
"""Up to this many characters are split at once; more are split in a thread, while other requests are answered."""
Given = str | list[str]
"""A text, or a sentence that is a list of tokens."""


def listed(text: str | list[str] | None, tokens: list[str] | list[list[str]] | None, limits: Limits) -> list[Given]:
    """The texts of a request that has either `text` or `tokens`; refuses more than the limit."""
    if (text is None) == (tokens is None):
        raise Refused(422, "give either text or tokens")
    found: list[Given]
    if tokens is not None:
        one = not tokens or isinstance(tokens[0], str)
        found = [tokens] if one else list(tokens)  # type: ignore[list-item]
    else:
        found = [text] if isinstance(text, str) else list(text or [])
    if len(found) > limits.texts:
        raise Refused(413, f"there are {len(found):,} texts; a request may have {limits.texts:,}")
    return found


async def split(elmo: Embedder, given: Sequence[Given], limits: Limits) -> list[list[Sentence]]:
    """The sentences of each text."""

    def all_rows() -> list[list[Sentence]]:
        return [elmo.sentences(one) for one in given]

    characters = sum(len(one) for one in given if isinstance(one, str))
    rows = all_rows() if characters <= INLINE else await asyncio.to_thread(all_rows)
    for number, row in enumerate(rows):
        if (count := token_count(row)) > limits.tokens:
            raise Refused(413, f"text {number} has {count:,} tokens; a text may have {limits.tokens:,}")
    return rows


async def embedded(
    worker: Worker,
    elmo: Embedder,
    rows: Sequence[list[Sentence]],
    *,
    mix: How | All,
    pool: Pool = "none",
    normalize: bool = False,
) -> list[Floats]:
    """One array per text, from a batch with the texts of other requests that use the same model and mix."""
    mix = tuple(mix) if isinstance(mix, list) else mix
    _check(elmo, mix)
    return await worker.texts(
        (id(elmo), mix),
        partial(_vectors, elmo, mix),
        [(row, pool, normalize) for row in rows],
        [token_count(row) for row in rows],
    )


def _vectors(elmo: Embedder, mix: How | All, texts: Sequence[tuple[list[Sentence], Pool, bool]]) -> list[Floats]:
    """The vectors of texts that are pooled in different ways."""
    vectors = elmo.embed_rows([row for row, _, _ in texts], mix=mix)
    return [
        joined([one], pool, "float32", normalize=normalize)
        for one, (_, pool, normalize) in zip(vectors, texts, strict=True)
    ]


def numbers_in(elmo: Embedder, rows: Sequence[list[Sentence]], mix: How | All, pool: Pool) -> int:
    """How many numbers the vectors of some texts have."""
    per_token = {"all": elmo.config.layers + 1, "concat": elmo.config.layers}
    many = len(rows) if pool != "none" else sum(len(sentence) for row in rows for sentence in row)
    return many * elmo.config.vector_width * (per_token.get(mix, 1) if isinstance(mix, str) else 1)


def _check(elmo: Embedder, mix: How | All) -> None:
    """Refuse layers that the model does not have, before the request waits."""
    numbers = [mix] if isinstance(mix, int) else [] if isinstance(mix, str) else list(mix)
    most = elmo.config.layers
    if any(not 0 <= number <= most for number in numbers):
        raise ConfigError(f"layers are numbered 0 (the word) to {most}; found {mix!r}")


def with_tokens(
    elmo: Embedder, given: Sequence[Given], rows: Sequence[list[Sentence]], vectors: Sequence[Floats]
) -> list[Found]:
    """Each text with its tokens, their places and its vectors."""
    return [
        Found(
            list(chain.from_iterable(row)),
            [len(sentence) for sentence in row],
            elmo.offsets(one) if isinstance(one, str) else None,
            values,
        )
        for one, row, values in zip(given, rows, vectors, strict=True)
    ]
