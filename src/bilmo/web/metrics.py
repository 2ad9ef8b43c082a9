"""Counts and times for Prometheus. They hold no text, and their labels are routes, not addresses.

Knows: prometheus_client. Blind to: HTTP, what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from bilmo.web.worker import Observer

CONTENT_TYPE = CONTENT_TYPE_LATEST
GONE = 499
"""The status of requests whose client closed the connection, as nginx counts them."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384)
JOBS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics(Observer):
    """The metrics of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        more: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter("bilmo_requests", "Requests by route and status.", ["route", "status"], **more)
        self._seconds = Histogram("bilmo_request_seconds", "Time of a request.", ["route"], buckets=SECONDS, **more)
        self._batch_jobs = Histogram("bilmo_batch_requests", "Requests computed together.", buckets=JOBS, **more)
        self._batch_tokens = Histogram("bilmo_batch_tokens", "Tokens embedded together.", buckets=TOKENS, **more)
        self._computing = Counter("bilmo_computing_seconds", "Time in which the network computed.", **more)
        self._waiting = Gauge("bilmo_waiting_requests", "Requests that wait or are being computed.", **more)

    def watch(self, waiting: Callable[[], int]) -> None:
        """Show a number of waiting requests, asked for when the metrics are read."""
        self._waiting.set_function(waiting)

    def batch(self, jobs: int, tokens: int, seconds: float) -> None:
        """Count the requests and tokens of a batch."""
        self._batch_jobs.observe(jobs)
        if tokens:
            self._batch_tokens.observe(tokens)
        self._computing.inc(seconds)

    def request(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Count a request."""
        route = getattr(scope.get("route"), "path", "other")
        self._requests.labels(route, str(status or GONE)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)
