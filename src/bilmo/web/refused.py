"""Errors that a request can cause, each with its status code, and the one form in which all errors are answered.

Knows: errors. Blind to: the web framework.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from bilmo.errors import BilmoError, MissingExtra

TYPES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    413: "too_large",
    415: "wrong_type",
    422: "invalid",
    429: "busy",
    500: "failed",
    501: "not_installed",
    503: "unavailable",
    504: "timeout",
}
"""The name of each status code in the JSON of an error."""


class Refused(Exception):  # noqa: N818
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


def error(status: int, message: str, param: str | None = None) -> dict[str, Any]:
    """The JSON of an error, in the shape of OpenAI's API, which its clients show."""
    kind = TYPES.get(status) or HTTPStatus(status).name.lower()
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


def status_of(problem: BilmoError) -> int:
    """The status code for an error of bilmo."""
    return 501 if isinstance(problem, MissingExtra) else 422
