"""The limits of the server. Each has its own status code, which the guide lists.

Knows: nothing. Blind to: how they are enforced.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request, and all requests together, may use."""

    body: int = 1 << 20
    """Bytes of a request body."""
    texts: int = 1024
    """Texts in a request."""
    tokens: int = 4096
    """Tokens of one text."""
    uses: int = 500
    """Uses of a word that /senses groups; of more, it draws some."""
    queue: int = 256
    """Requests that wait for the network."""
    seconds: float = 60.0
    """Time until a request is answered, from the moment its body has arrived."""
    send_seconds: float = 10.0
    """Time in which a client must send a request, and in which it must take the next part of an answer."""
    connections: int = 512
    """Open connections."""
    answer: int = 1 << 26
    """Bytes of one answer, vectors counted as they are sent."""
    memory: int = 1 << 28
    """Bytes of all requests and answers in progress."""
