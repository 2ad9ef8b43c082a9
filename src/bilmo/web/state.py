"""What the server has and how it is: /health, /ready, /info.

Knows: FastAPI. Blind to: vectors.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request

from bilmo import __version__
from bilmo.embed.embedder import Embedder

router = APIRouter()


@router.get("/health")
async def health() -> dict[str, str]:
    """The process runs."""
    return {"status": "ok", "version": __version__}


@router.get("/ready")
async def ready() -> dict[str, bool]:
    """The server accepts work."""
    return {"ready": True}


@router.get("/info")
async def info(request: Request) -> dict[str, Any]:
    """Models, tasks and limits."""
    state = request.app.state
    return {
        "version": __version__,
        "models": [{"name": name, **_model_facts(elmo)} for name, elmo in state.served.models.items()],
        "tasks": [],
        "index": None,
        "limits": asdict(state.limits),
        "token": state.token,
    }


def _model_facts(elmo: Embedder) -> dict[str, Any]:
    vocab = elmo.bundle.vocab
    return {
        "lang": elmo.bundle.lang,
        "layers": elmo.config.layers + 1,
        "width": elmo.config.vector_width,
        "directions": list(elmo.config.directions),
        "words": None if vocab is None else len(vocab),
        "softmax": elmo.bundle.softmax() is not None,
        "characters": elmo.config.words.chars is not None,
    }
