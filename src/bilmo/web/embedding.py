"""Vectors: /embed, and the same in the shape of OpenAI's API.

Knows: FastAPI. Blind to: how texts of several requests go together.
"""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import Response

from bilmo.errors import ConfigError
from bilmo.web import encode
from bilmo.web.bodies import EmbedAnswer, EmbedBody, OpenAIAnswer, OpenAIBody, OpenAIModel, OpenAIModels
from bilmo.web.refused import Refused
from bilmo.web.texts import embedded, listed, numbers_in, split, with_tokens

router = APIRouter()
INLINE_BYTES = 1 << 17
"""Answers up to this size are written at once; larger ones in a thread, while other requests are answered."""


@router.post("/embed", response_model=EmbedAnswer | list[list[float]])
async def embed(body: EmbedBody, request: Request) -> Response:
    """Vectors of texts or of lists of tokens. With `inputs`, the vectors alone, as a list."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    alone = body.inputs is not None
    if alone and (body.text is not None or body.layers or body.pool == "none"):
        raise ConfigError(
            "inputs gives one pooled vector per text; it cannot be combined with text, layers or pool none"
        )
    given = listed(body.inputs if alone else body.text, body.tokens, state.limits)
    pool = body.pool or ("mean" if alone else "none")
    normalize = alone if body.normalize is None else body.normalize
    mix = "all" if body.layers else body.mix
    form = _form(body, request)
    rows = await split(elmo, given, state.limits)
    size = _check_size(request, numbers_in(elmo, rows, mix, pool), form)
    vectors = await embedded(state.worker, elmo, rows, mix=mix, pool=pool, normalize=normalize)

    def answer() -> Response:
        if alone:
            return Response(encode.vectors_alone(vectors), media_type=encode.JSON)
        found = with_tokens(elmo, given, rows, vectors)
        if form == encode.NPY:
            lengths = {} if pool != "none" else {"bilmo-tokens": ",".join(str(len(one.tokens)) for one in found)}
            return Response(encode.npy(vectors, pooled=pool != "none"), media_type=form, headers=lengths)
        if form == encode.ARROW:
            return Response(encode.arrow(found, pooled=pool != "none"), media_type=form)
        content = encode.embed_answer(name, found, in_base64=form == encode.BASE64)
        return Response(content, media_type=encode.JSON)

    return answer() if size <= INLINE_BYTES else await asyncio.to_thread(answer)


def _form(body: EmbedBody, request: Request) -> str:
    """How the answer is written."""
    accepted = request.headers.get("accept", "")
    if body.inputs is None and encode.NPY in accepted:
        return encode.NPY
    if body.inputs is None and encode.ARROW in accepted:
        return encode.ARROW
    return encode.BASE64 if body.inputs is None and body.encoding == "base64" else encode.JSON


def _check_size(request: Request, numbers: int, form: str) -> int:
    """Refuse an answer that is too large before it is computed; returns its bytes, and counts them as memory."""
    size, most = int(numbers * encode.BYTES[form]), request.app.state.limits.answer
    if size > most:
        raise Refused(
            413,
            f"the vectors would take {size:,} bytes; an answer may have {most:,}. Send fewer texts, or use pool, "
            "encoding base64 or Accept: application/x-npy",
        )
    request.state.hold(size + 4 * numbers)
    return size


@router.post("/v1/embeddings", response_model=OpenAIAnswer)
async def embeddings(body: OpenAIBody, request: Request) -> Response:
    """One vector of length 1 per text: the mean over its tokens."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    width = elmo.config.vector_width
    if body.dimensions not in (None, width):
        raise ConfigError(f"dimensions is {body.dimensions}; the vectors of {name} have {width}")
    rows = await split(elmo, listed(body.input, None, state.limits), state.limits)
    _check_size(request, numbers_in(elmo, rows, "mean", "mean"), encode.JSON)
    vectors = await embedded(state.worker, elmo, rows, mix="mean", pool="mean", normalize=True)
    tokens = sum(len(sentence) for row in rows for sentence in row)
    answer = encode.openai_answer(name, vectors, tokens, in_base64=body.encoding_format == "base64")
    return Response(answer, media_type=encode.JSON)


@router.get("/v1/models")
async def models(request: Request) -> OpenAIModels:
    """The models by name."""
    return OpenAIModels(data=[OpenAIModel(id=name) for name in request.app.state.served.models])


@router.get("/v1/models/{name}")
async def model(name: str, request: Request) -> OpenAIModel:
    """One model."""
    return OpenAIModel(id=request.app.state.served.model(name)[0])
