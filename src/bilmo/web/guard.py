"""The checks before every route: host, origin, token, type and size of the body, time.

Knows: ASGI. Blind to: routes, the web framework.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from bilmo.web.limits import Limits
from bilmo.web.refused import Refused, error

LOG = logging.getLogger("bilmo.web")
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SECURITY = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
"""Headers of every answer. The page may load nothing from elsewhere, and no other page may contain it."""
DISCARD, DISCARD_SECONDS = 1 << 24, 2.0
"""How much of the body of a refused request is read and thrown away, and for how long."""
FAILED = "the server failed; its log says where"
PIECE = 1 << 18
"""Bytes of an answer that are handed to the connection at a time."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Guard:
    """Checks a request, reads its body, and ends it when its time is over or its client has disconnected."""

    def __init__(
        self,
        app: App,
        *,
        limits: Limits,
        hosts: Collection[str] | None,
        token: str | None,
        open_paths: Collection[str],
        observe: Callable[[Scope, int, float], None],
    ) -> None:
        """Guard an application.

        hosts: names that a Host header may have; None for any.
        token: what a client must send as `Authorization: Bearer TOKEN`, except for `open_paths`.
        observe: called after each request with its scope, the status and the seconds.
        """
        self._app, self._limits, self._hosts, self._observe = app, limits, hosts, observe
        self._token = None if token is None else token.encode()
        self._open = frozenset(open_paths)
        self._held = 0
        """Bytes of all requests and answers in progress."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the start and the end of the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status, whole = time.perf_counter(), 0, False

        async def sent(message: Message) -> None:
            nonlocal status, whole
            if message["type"] == "http.response.start":
                status = message["status"]
                names = {name for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in SECURITY.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in names)]
            rest = message.get("body", b"")
            while len(rest) > PIECE:  # the next piece waits until the client has taken the last one
                await send({"type": "http.response.body", "body": rest[:PIECE], "more_body": True})
                rest = rest[PIECE:]
                await asyncio.sleep(0)  # the connection may notice that the client has disconnected
            await send({**message, "body": rest} if "body" in message else message)
            whole = message["type"] == "http.response.body" and not message.get("more_body", False)

        held, read = 0, False

        def hold(size: int) -> None:
            nonlocal held
            if self._held + size > self._limits.memory:
                raise Refused(
                    503, "the requests in progress are too large together; try again later", {"Retry-After": "1"}
                )
            self._held += size
            held += size

        try:
            self._check(scope)
            body = b""
            if scope["method"] in ("POST", "PUT", "PATCH"):
                body = await self._body(scope, receive, hold)
            read = True
            scope.setdefault("state", {})["hold"] = hold
            await self._answered(scope, body, receive, sent, lambda: status > 0)
        except Refused as refused:
            closing = {} if read or await _discarded(scope, receive) else {"connection": "close"}
            await _answer(sent, refused.status, refused.message, refused.headers | closing)
        except Exception as problem:
            place = traceback.extract_tb(problem.__traceback__)[-1]
            LOG.error("a request failed: %s in %s, line %d", type(problem).__name__, place.filename, place.lineno)
            if not status:
                await _answer(sent, 500, FAILED, {})
            elif not whole:
                raise ConnectionAbortedError from None  # an answer that is cut off must not look complete
        finally:
            self._held -= held
            self._observe(scope, status, time.perf_counter() - begin)

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        name = _name_of(host)
        if name is None or (self._hosts is not None and name not in self._hosts):
            raise Refused(400, f"the Host header is {host!r}, which is not a name of this server (see --allow-host)")
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin.decode("latin-1")).netloc != host:
            raise Refused(403, "the request comes from a page of another site")
        if self._token is not None and scope["path"] not in self._open:
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
                message = "the token is missing or wrong; send the header Authorization: Bearer TOKEN"
                raise Refused(401, message, {"www-authenticate": "Bearer"})

    async def _body(self, scope: Scope, receive: Receive, hold: Callable[[int], None]) -> bytes:
        """The whole body. A body that is too large is refused before it is read, if it says its size."""
        headers = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise Refused(415, "the body must be JSON, with the header Content-Type: application/json")
        length = headers.get(b"content-length", b"0")
        if int(length) > self._limits.body:
            raise self._too_large()
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self._limits.send_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the client has disconnected")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    hold(len(parts[-1]))
                    more = message.get("more_body", False)
                    if size > self._limits.body:
                        raise self._too_large()
        except TimeoutError:
            raise Refused(408, f"the body did not arrive within {self._limits.send_seconds:g} s") from None
        return b"".join(parts)

    def _too_large(self) -> Refused:
        return Refused(413, f"the body has more than {self._limits.body:,} bytes")

    async def _answered(
        self, scope: Scope, body: bytes, receive: Receive, send: Send, started: Callable[[], bool]
    ) -> None:
        """Run the route until it has answered, its time is over or the client has disconnected."""
        given = False

        async def whole_body() -> Message:
            nonlocal given
            if given:
                return await asyncio.Future()  # the route is cancelled when the client goes away
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        route = asyncio.ensure_future(self._app(scope, whole_body, send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({route, gone}, timeout=self._limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if not route.done() and not gone.done() and not started():
                raise Refused(504, f"the answer took more than {self._limits.seconds:g} s")
            await asyncio.wait({route, gone}, return_when=asyncio.FIRST_COMPLETED)
            if route.done():
                route.result()
        finally:
            for task in (route, gone):
                task.cancel()
            await asyncio.wait({route, gone})


async def _discarded(scope: Scope, receive: Receive) -> bool:
    """Whether the body of a refused request could be read to its end.

    A connection that is closed with unread bytes is reset, and then the client may not see the answer. A client that
    sends far too much, or waits for permission to send, gets the answer at once.
    """
    if dict(scope["headers"]).get(b"expect"):
        return False
    left = DISCARD
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return True
    return False


async def _gone(receive: Receive) -> None:
    """Wait until the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(send: Send, status: int, message: str, headers: dict[str, str]) -> None:
    """Answer with an error."""
    body = json.dumps(error(status, message)).encode()
    first = {"content-type": "application/json", "content-length": str(len(body))} | headers
    pairs = [(name.lower().encode(), value.encode()) for name, value in first.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _name_of(host: str) -> str | None:
    """The name in a Host header, without the port; None if it is not valid."""
    try:
        found = urlsplit(f"//{host}")
        found.port  # noqa: B018  raises an error if it is not a number
    except ValueError:
        return None
    return found.hostname if found.netloc == host and "@" not in host else None
