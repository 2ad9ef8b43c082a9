"""HTTP/1.1 of uvicorn, with limits on the time in which a client sends a request and takes an answer.

Knows: uvicorn. Blind to: routes.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

PROGRESS = 1 << 16
"""Bytes of an answer that a client must take within the time, unless it takes the rest."""


def protocol(seconds: float) -> type[H11Protocol]:
    """The protocol with a time limit. A connection that exceeds it is cut.

    Within `seconds`, a client must send the whole header of a request, counted from the first byte (or, for the first
    request, from the connection), and must take at least PROGRESS bytes of an answer.
    """

    class TimedProtocol(H11Protocol):
        _header: asyncio.TimerHandle | None = None
        _taking: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._header = self.loop.call_later(seconds, self._cut)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._header = _cancelled(self._header)
            elif self._header is None:
                self._header = self.loop.call_later(seconds, self._cut)

        def on_response_complete(self) -> None:
            self._header = _cancelled(self._header)  # a client that waits between requests is in no hurry
            super().on_response_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._wait_for_progress()

        def resume_writing(self) -> None:
            super().resume_writing()
            self._taking = _cancelled(self._taking)

        def connection_lost(self, exc: Exception | None) -> None:
            self._header, self._taking = _cancelled(self._header), _cancelled(self._taking)
            super().connection_lost(exc)
            self._taking = _cancelled(self._taking)

        def _wait_for_progress(self) -> None:
            left = self.transport.get_write_buffer_size()

            def check() -> None:
                if self.transport.get_write_buffer_size() > left - PROGRESS:
                    self._cut()
                else:
                    self._wait_for_progress()

            self._taking = _cancelled(self._taking)
            self._taking = self.loop.call_later(seconds, check)

        def _cut(self) -> None:
            self.transport.abort()

    return TimedProtocol


def _cancelled(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
