"""Vectors: /embed, and the same in the shape of OpenAI's API.

Knows: FastAPI. Blind to: how texts of several requests go together.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from bilmo.errors import ConfigError
from bilmo.web import encode
from bilmo.web.bodies import EmbedAnswer, EmbedBody, OpenAIAnswer, OpenAIBody, OpenAIModel, OpenAIModels
from bilmo.web.texts import embedded, listed, split, with_tokens

router = APIRouter()


@router.post("/embed", response_model=EmbedAnswer | list[list[float]])
async def embed(body: EmbedBody, request: Request) -> Response:
    """Vectors of texts or of lists of tokens. With `inputs`, the vectors alone, as a list."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    alone = body.inputs is not None
    text = body.inputs if body.text is None else body.text
    if alone and (body.text is not None or body.layers or body.pool == "none"):
        raise ConfigError("inputs gives one vector per text; it goes neither with text, layers nor pool none")
    given = listed(text, body.tokens, state.limits)
    pool = body.pool or ("mean" if alone else "none")
    normalize = alone if body.normalize is None else body.normalize
    mix = "all" if body.layers else body.mix
    found = await with_tokens(state.worker, elmo, given, state.limits, mix=mix, pool=pool, normalize=normalize)
    if alone:
        return Response(encode.vectors_alone(found), media_type=encode.JSON)
    accepted = request.headers.get("accept", "")
    pooled = pool != "none"
    if encode.NPY in accepted:
        lengths = {} if pooled else {"bilmo-tokens": ",".join(str(len(one.tokens)) for one in found)}
        return Response(encode.npy(found, pooled=pooled), media_type=encode.NPY, headers=lengths)
    if encode.ARROW in accepted:
        return Response(encode.arrow(found, pooled=pooled), media_type=encode.ARROW)
    answer = encode.embed_answer(name, found, in_base64=body.encoding == "base64")
    return Response(answer, media_type=encode.JSON)


@router.post("/v1/embeddings", response_model=OpenAIAnswer)
async def embeddings(body: OpenAIBody, request: Request) -> Response:
    """One vector of length 1 per text: the mean over its tokens."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    width = elmo.config.vector_width
    if body.dimensions not in (None, width):
        raise ConfigError(f"dimensions is {body.dimensions}; the vectors of {name} have {width}")
    rows = await split(elmo, listed(body.input, None, state.limits), state.limits)
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
