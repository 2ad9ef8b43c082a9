"""A local HTTP server whose connections can be cut, for tests of downloads."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """What the server has, and how it behaves."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """Contents by path."""
    cuts: list[int] = field(default_factory=list)
    """Bytes after which the connection is cut, for the next requests; a negative number answers with that code."""
    ranges: bool = True
    """Whether it understands Range."""
    tags: bool = True
    """Whether it sends an ETag."""
    lengths: bool = True
    """Whether it says how long a file is."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path and Range of every request so far."""


@contextmanager
def serving() -> Iterator[FileServer]:
    """A server for files that a test puts into it."""
    state = FileServer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            asked = self.headers.get("Range") or ""
            state.asked.append((self.path, asked))
            cut = state.cuts.pop(0) if state.cuts else None
            if cut is not None and cut < 0:
                self.send_error(-cut)
                return
            if self.path not in state.files:
                self.send_error(404)
                return
            content = state.files[self.path]
            tag = f'"{hashlib.md5(content).hexdigest()}"'
            start = 0
            if state.ranges and asked and self.headers.get("If-Range") in (None, tag):
                found = re.fullmatch(r"bytes=(\d+)-", asked)
                assert found
                start = int(found[1])
                if start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            if state.lengths:
                self.send_header("Content-Length", str(len(content) - start))
            if state.tags:
                self.send_header("ETag", tag)
            self.end_headers()
            rest = content[start:]
            self.wfile.write(rest if cut is None else rest[:cut])
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
