"""Vectors: /embed.

Knows: FastAPI. Blind to: how texts of several requests go together.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from bilmo.web import encode
from bilmo.web.bodies import EmbedAnswer, EmbedBody
from bilmo.web.texts import listed, with_tokens

router = APIRouter()


@router.post("/embed", response_model=EmbedAnswer)
async def embed(body: EmbedBody, request: Request) -> Response:
    """Vectors of texts or of lists of tokens."""
    state = request.app.state
    name, elmo = state.served.model(body.model)
    tei = body.inputs is not None
    text = body.inputs if body.text is None else body.text
    given = listed(text, body.tokens, state.limits)
    pool = body.pool or ("mean" if tei else "none")
    normalize = tei if body.normalize is None else body.normalize
    mix = "all" if body.layers else body.mix
    found = await with_tokens(state.worker, elmo, given, state.limits, mix=mix, pool=pool, normalize=normalize)
    if tei:
        return Response(encode.numbers_of(found), media_type=encode.JSON)
    accepted = request.headers.get("accept", "")
    pooled = pool != "none"
    if encode.NPY in accepted and found:
        lengths = {} if pooled else {"bilmo-tokens": ",".join(str(len(one.tokens)) for one in found)}
        return Response(encode.npy(found, pooled=pooled), media_type=encode.NPY, headers=lengths)
    if encode.ARROW in accepted and found:
        return Response(encode.arrow(found, pooled=pooled), media_type=encode.ARROW)
    answer = encode.embed_answer(name, found, in_base64=body.encoding == "base64")
    return Response(answer, media_type=encode.JSON)
