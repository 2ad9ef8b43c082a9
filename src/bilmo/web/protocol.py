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
                self._header_has_come()
            elif self._header is None:
                self._header = self.loop.call_later(seconds, self._cut)

        def on_response_complete(self) -> None:
            self._header_has_come()  # between requests, a client may wait longer
            super().on_response_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._wait_for_progress()

        def resume_writing(self) -> None:
            super().resume_writing()
            self._answer_is_taken()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._header_has_come()
            self._answer_is_taken()

        def _wait_for_progress(self) -> None:
            left = self.transport.get_write_buffer_size()

            def check() -> None:
                if self.transport.get_write_buffer_size() > left - PROGRESS:
                    self._cut()
                else:
                    self._wait_for_progress()

            self._answer_is_taken()
            self._taking = self.loop.call_later(seconds, check)

        def _header_has_come(self) -> None:
            if self._header is not None:
                self._header.cancel()
            self._header = None

        def _answer_is_taken(self) -> None:
            if self._taking is not None:
                self._taking.cancel()
            self._taking = None

        def _cut(self) -> None:
            self.transport.abort()

    return TimedProtocol
