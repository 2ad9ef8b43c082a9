"""The application: routes, errors and the guard in front of them.

Knows: FastAPI. Blind to: sockets, the command line.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from bilmo import __version__
from bilmo.errors import BilmoError, DamagedFile
from bilmo.web import asking, embedding, predicting, state
from bilmo.web.bodies import ErrorAnswer
from bilmo.web.guard import FAILED, LOG, Guard
from bilmo.web.limits import Limits
from bilmo.web.metrics import Metrics
from bilmo.web.refused import Refused, error, status_of
from bilmo.web.served import Served
from bilmo.web.worker import Worker

ERRORS: dict[int | str, dict[str, Any]] = {"default": {"model": ErrorAnswer, "description": "An error."}}
PAGE = Path(__file__).parent / "page"
"""The files of the page."""


def application(
    served: Served, *, limits: Limits | None = None, hosts: list[str] | None = None, token: str | None = None
) -> Guard:
    """The ASGI application.

    hosts: names that a Host header may have; None for any.
    token: what clients must send; None if they need none.
    """
    limits, metrics = limits or Limits(), Metrics()

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        # A few threads: each keeps memory of its own that it has used once.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2, "bilmo-answers"))
        app.state.worker = Worker(queue=limits.queue, observer=metrics)
        metrics.watch(lambda: app.state.worker.waiting)
        try:
            yield
        finally:
            await app.state.worker.close()

    app = FastAPI(title="bilmo", version=__version__, lifespan=running, docs_url=None, redoc_url=None, responses=ERRORS)
    app.state.served, app.state.limits, app.state.token = served, limits, token is not None
    app.state.metrics = metrics
    for router in (embedding.router, asking.router, predicting.router, state.router):
        app.include_router(router)
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(BilmoError, _users_error)
    app.add_exception_handler(DamagedFile, _damaged)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _failed)
    files = {f"/{file.relative_to(PAGE).as_posix()}" for file in PAGE.rglob("*") if file.is_file()}
    return Guard(
        app,
        limits=limits,
        hosts=hosts,
        token=token,
        open_paths={"/", "/health", "/ready", *files},
        observe=metrics.request,
    )


def _refused(_: Request, problem: Any) -> JSONResponse:
    return JSONResponse(error(problem.status, problem.message), problem.status, problem.headers)


def _users_error(_: Request, problem: Any) -> JSONResponse:
    status = status_of(problem)
    return JSONResponse(error(status, str(problem)), status)


def _damaged(_: Request, problem: Any) -> JSONResponse:
    """A file of an index; they are checked when they are read."""
    LOG.error("%s", problem)
    return JSONResponse(error(500, FAILED), 500)


def _http(_: Request, problem: Any) -> JSONResponse:
    return JSONResponse(error(problem.status_code, str(problem.detail)), problem.status_code, problem.headers)


def _failed(_: Request, problem: Any) -> JSONResponse:
    """The guard logs it."""
    return JSONResponse(error(500, FAILED), 500)


def _invalid(_: Request, problem: Any) -> JSONResponse:
    """The first thing that is wrong; the values of the request are not repeated."""
    first = problem.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    return JSONResponse(error(422, f"{place}: {first['msg']}" if place else first["msg"], place or None), 422)
