"""Routes about words: /words, /similar, /senses, /fill, /probability.

Knows: FastAPI. Blind to: how texts of several requests go together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response

from bilmo.embed.embedder import Embedder
from bilmo.embed.fill import fill_at
from bilmo.embed.probability import ScoredSentence, scored
from bilmo.embed.texts import Floats, token_count
from bilmo.embed.word_space import unit
from bilmo.errors import TextError, VocabError
from bilmo.ids.batch import Sentence
from bilmo.ids.chars import ByteChars, Chars
from bilmo.sense.index import Index
from bilmo.sense.places import Place, in_text
from bilmo.sense.senses import Senses, Use, one_word
from bilmo.text.brackets import marked
from bilmo.web import encode
from bilmo.web.bodies import Answer, FillBody, PlaceBody, SensesBody, SimilarBody, TextBody, WordsAnswer, WordsBody
from bilmo.web.limits import Limits
from bilmo.web.refused import Refused
from bilmo.web.served import Served
from bilmo.web.texts import Given, embedded, listed, numbers_in, split

router = APIRouter()


@router.post("/words", response_model=WordsAnswer)
async def words(body: WordsBody, request: Request) -> Response:
    """What the network reads of each word: its characters and its number in the vocabulary."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    _check_words(body.words, state.limits)
    chars = elmo.bundle.indexer().chars
    return _answer(request, {"model": name, "results": [_facts(elmo, chars, word) for word in body.words]})


def _facts(elmo: Embedder, chars: Chars | None, word: str) -> dict[str, Any]:
    vocab, known = elmo.bundle.vocab, word in elmo
    ids = None if chars is None else chars.ids(word)
    return {
        "word": word,
        "known": known,
        "id": vocab.ids([word])[0] if known and vocab is not None else None,
        "characters": None if chars is None or ids is None else [_shown(chars, id) for id in ids],
        "character_ids": ids,
    }


def _shown(chars: Chars, id: int) -> str:
    """A character, a byte of one in hexadecimal digits, or the begin or end mark of a word."""
    if not isinstance(chars, ByteChars):
        return chars.entries[id]
    marks = {chars.word_begin: "<bow>", chars.word_end: "<eow>"}
    return marks.get(id) or (chr(id) if 32 <= id < 127 else f"{id:02x}")


@router.post("/similar", response_model=Answer)
async def similar(body: SimilarBody, request: Request) -> Response:
    """Words similar to words; or, for a word in its sentence, its most similar uses in other texts or in an index."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    if body.words is not None:
        if body.text is not None or body.tokens is not None or body.among is not None:
            raise TextError(
                "words cannot be combined with text or tokens; to search uses in sentences, leave out words"
            )
        _check_words(body.words, state.limits)
        if elmo.bundle.vocab is None:
            raise VocabError(f"{name} has no vocabulary to search for neighbours; give a sentence and among")
        found = await state.worker.steps(_neighbours(elmo, body.words, body.n))
        return _answer(request, {"model": name, "results": found})
    sentence, position = _place(elmo, body, state.limits)
    answer = {"model": name, "tokens": sentence, "position": position}
    if body.among is None:
        index = _index(state.served, name, body)
        uses = await state.worker.call(
            lambda: index.search_at(elmo, sentence, position, body.n, same_word=body.same_word)
        )
        return _answer(request, answer | {"uses": [asdict(use) for use in uses]})
    rows: list[list[Sentence]] = [[sentence], *await _rows(elmo, body.among, state.limits)]
    request.state.hold(4 * numbers_in(elmo, rows, body.mix, "none"))
    vectors = await embedded(state.worker, elmo, rows, mix=body.mix)
    texts = [(k, [t for s in row for t in s]) for k, row in enumerate(rows[1:])]
    word = sentence[position] if body.same_word else None
    near = await asyncio.to_thread(_nearest, vectors[0][position], vectors[1:], texts, word, body.n)
    return _answer(request, answer | {"uses": near})


@router.post("/senses", response_model=Answer)
async def senses(body: SensesBody, request: Request) -> Response:
    """The uses of a word in texts or in an index, in groups of similar contexts."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    word, most = one_word(body.word), state.limits.uses
    if body.among is None:
        index = _index(state.served, name, body)
        found = await state.worker.call(lambda: Senses.in_index(word, index, most))
    else:
        rows = await _rows(elmo, body.among, state.limits)
        request.state.hold(4 * numbers_in(elmo, rows, body.mix, "none"))
        vectors = await embedded(state.worker, elmo, rows, mix=body.mix)
        given: Iterable[tuple[Given, list[Sentence]]] = zip(body.among, rows, strict=True)
        places = [place for number, (text, row) in enumerate(given) for place in _places(text, row, number)]
        found = await state.worker.call(lambda: Senses.among(word, places, vectors, most))
    groups = [
        {
            "number_of_uses": len(sense.uses),
            "typical_words": sense.typical_words,
            "uses": [_use(use, given=body.among is not None) for use in sense.uses[: body.n]],
        }
        for sense in found.senses
    ]
    answer = {"model": name, "word": word, "uses": found.total, "silhouettes": found.silhouettes, "senses": groups}
    return _answer(request, answer)


def _places(text: Given, sentences: list[Sentence], number: int) -> Iterator[Place]:
    """The sentences of a text; the line is the number of the text."""
    if isinstance(text, str):
        yield from in_text(text, sentences, number=number)
    elif text:
        yield Place(text, [True] * (len(text) - 1) + [False], "", number)


def _use(use: Use, *, given: bool) -> dict[str, Any]:
    place = {"among": use.line} if given else {"file": use.file, "line": use.line}
    return {**place, "text": use.text, "tokens": use.tokens, "position": use.position, "x": use.x, "y": use.y}


def _neighbours(elmo: Embedder, given: list[str], topn: int) -> Iterator[dict[str, Any]]:
    for word in given:
        near = elmo.most_similar(word, topn=topn)
        yield {"word": word, "similar": [{"word": other, "cosine": cosine} for other, cosine in near]}


def _nearest(
    here: Floats, vectors: list[Floats], texts: list[tuple[int, list[str]]], word: str | None, most: int
) -> list[dict[str, Any]]:
    """The tokens of some texts with the highest cosines; only those that are `word`, if it is given."""
    places = [(k, at) for k, tokens in texts for at in range(len(tokens)) if word is None or tokens[at] == word]
    if not places:
        return []
    cosines = unit(np.stack([vectors[k][at] for k, at in places])) @ unit(here)
    best = np.argsort(-cosines, kind="stable")[:most]
    return [
        {"among": k, "tokens": texts[k][1], "position": at, "word": texts[k][1][at], "cosine": float(cosines[number])}
        for number in best
        for k, at in [places[number]]
    ]


@router.post("/fill", response_model=Answer)
async def fill(body: FillBody, request: Request) -> Response:
    """The words that the model expects at a place."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    sentence, position = _place(elmo, body, state.limits)
    found = await state.worker.call(lambda: fill_at(elmo, sentence, position, body.n))
    return _answer(request, {"model": name} | asdict(found))


@router.post("/probability", response_model=Answer)
async def probability(body: TextBody, request: Request) -> Response:
    """Log-probabilities of the words and sentences of texts, in both directions."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    given = listed(body.text, body.tokens, state.limits)
    await split(elmo, given, state.limits)  # refuses what is too long before it waits
    results: list[dict[str, Any]] = [{"sentences": []} for _ in given]
    for one in await state.worker.steps(scored(elmo, given)):
        results[one.line - 1]["sentences"].append(_scores(one))
    return _answer(request, {"model": name, "results": results})


def _scores(one: ScoredSentence) -> dict[str, Any]:
    logs = {name: [round(float(value), 6) for value in row] for name, row in one.words.items()}
    return {"tokens": one.tokens, "unknown": one.unknown, "words": logs, "totals": one.totals}


def _place(elmo: Embedder, body: PlaceBody, limits: Limits) -> tuple[list[str], int]:
    """The sentence and the position of the word that a request is about."""
    if body.tokens is None:
        if body.text is None or body.position is not None:
            raise TextError("give a text with one word in square brackets, or tokens and position")
        sentence, position = marked(elmo.split, body.text)
    elif body.text is not None or body.position is None or body.position >= len(body.tokens):
        raise TextError(f"give tokens and position, a number below that of the tokens ({len(body.tokens)}), not text")
    else:
        sentence, position = body.tokens, body.position
    if (count := token_count([sentence])) > limits.tokens:
        raise Refused(413, f"the sentence has {count:,} tokens; a text may have {limits.tokens:,}")
    return sentence, position


async def _rows(elmo: Embedder, among: Sequence[Given], limits: Limits) -> list[list[Sentence]]:
    """The sentences of the texts that are searched."""
    if len(among) >= limits.texts:
        raise Refused(413, f"there are {len(among):,} texts; a request may have {limits.texts - 1:,}")
    return await split(elmo, among, limits)


def _index(served: Served, model: str, body: SimilarBody | SensesBody) -> Index:
    """The index of a model, for a request without texts."""
    index = served.index(model)
    if "mix" in body.model_fields_set:
        raise TextError("leave out mix: an index has its own, or give among, the texts to search")
    return index


def _check_words(given: list[str], limits: Limits) -> None:
    if len(given) > limits.texts:
        raise Refused(413, f"there are {len(given):,} words; a request may have {limits.texts:,}")
    if not all(word.strip() for word in given):
        raise TextError("a word is empty")


def _answer(request: Request, found: dict[str, Any]) -> Response:
    content = encode.as_json(found)
    request.state.hold(len(content))
    return Response(content, media_type=encode.JSON)
