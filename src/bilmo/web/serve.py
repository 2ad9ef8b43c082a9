"""Run the server on a socket, until it is stopped.

Knows: uvicorn. Blind to: routes, the command line.
"""

from __future__ import annotations

import logging
import math
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from bilmo.errors import ConfigError
from bilmo.web.app import application
from bilmo.web.guard import LOOPBACK
from bilmo.web.limits import Limits
from bilmo.web.protocol import protocol
from bilmo.web.served import Served

KEEP_ALIVE = 15
"""Seconds that a connection may wait for its next request."""
LEAST_TOKEN = 16
"""Characters of a token; a shorter one could be guessed."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that is bound to an address; an error says what to do if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except (OSError, OverflowError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{host}:{port}: cannot be used ({reason}). Choose another --port or --host") from None
    return sock


def read_token(path: Path) -> str:
    """The token in a file."""
    token = path.read_text(encoding="utf-8", errors="replace").strip()
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{path}: does not hold a token; it needs one line of at least {LEAST_TOKEN} ASCII characters without "
            "spaces. Create one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


def hosts(host: str, more: list[str]) -> list[str] | None:
    """The names that a Host header may have; None for any, if others than this machine may ask and need a token."""
    if host in LOOPBACK:
        return [*LOOPBACK, *(name.lower() for name in more)]
    return [host, *(name.lower() for name in more)] if more else None


def check_host(host: str, token: str | None) -> None:
    """Refuse to serve other machines without a token."""
    if host not in LOOPBACK and token is None:
        raise ConfigError(
            f"--host {host} allows requests from other machines, so a token is required: --token-file FILE. Without "
            "--host, only programs on this machine can reach the server"
        )


def run(served: Served, sock: socket.socket, *, limits: Limits, hosts: list[str] | None, token: str | None) -> None:
    """Serve until SIGTERM or Ctrl-C; requests in progress are finished."""
    app = application(served, limits=limits, hosts=hosts, token=token)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # its messages are about single connections
    logging.getLogger("bilmo").setLevel(logging.WARNING)  # notes on words would bring text of requests into the log
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=protocol(limits.send_seconds),
        ws="none",
        lifespan="on",
        limit_concurrency=limits.connections,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=math.ceil(limits.seconds + limits.send_seconds),  # all that a request may take
    )
    _Server(config).run(sockets=[sock])


class _Server(uvicorn.Server):
    """A server that a signal stops in the normal way: uvicorn's own would end the process by that signal."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and Ctrl-C; a second Ctrl-C does not wait for requests."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
