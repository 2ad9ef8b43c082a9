"""The state of the server: /health, /ready, /info.

Knows: FastAPI. Blind to: vectors.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from bilmo import __version__
from bilmo.tasks.core.spec import AnyEstimator
from bilmo.web.metrics import CONTENT_TYPE
from bilmo.web.refused import Refused
from bilmo.web.served import Served

router = APIRouter()


@router.get("/health")
async def health() -> dict[str, str]:
    """The process runs."""
    return {"status": "ok", "version": __version__}


@router.get("/ready")
async def ready(request: Request) -> dict[str, bool]:
    """The server accepts work: not while it stops, nor while the queue is full."""
    state = request.app.state
    if not state.worker.accepts:
        raise Refused(503, "the server is stopping, or too many requests are waiting")
    return {"ready": True}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counts and times for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE)


@router.get("/info")
async def info(request: Request) -> dict[str, Any]:
    """Models, tasks and limits."""
    state = request.app.state
    return {
        "version": __version__,
        "models": [{"name": name, **_model_facts(name, state.served)} for name in state.served.models],
        "tasks": [{"name": name, **_task_facts(one, state.served)} for name, one in state.served.tasks.items()],
        "limits": asdict(state.limits),
        "token": state.token,
    }


def _task_facts(estimator: AnyEstimator, served: Served) -> dict[str, Any]:
    shared = (name for name, elmo in served.models.items() if elmo is estimator.elmo)
    return {
        "kind": estimator.task.name,
        "summary": estimator.task.summary,
        "model": next(shared, None),
        "labels": sorted(estimator.prepared_.known()),
        "mixes": [{"where": mix.where, "weights": mix.shares, "gamma": mix.scale} for mix in estimator.mixes_],
    }


def _model_facts(name: str, served: Served) -> dict[str, Any]:
    elmo, index = served.models[name], served.indexes.get(name)
    vocab = elmo.bundle.vocab
    return {
        "lang": elmo.bundle.lang,
        "layers": elmo.config.layers + 1,
        "width": elmo.config.vector_width,
        "directions": list(elmo.config.directions),
        "words": None if vocab is None else len(vocab),
        "softmax": elmo.bundle.softmax() is not None,
        "characters": elmo.config.words.chars is not None,
        "index": None if index is None else {"uses": len(index)},
    }
