"""A server under load and abuse: `python tests/web/abuse.py --minutes 5`.

Clients ask properly, send slowly, cut their connections, take answers slowly, and send what is too large or is not HTTP
at all. Every proper answer is compared with `elmo.embed`, and every other answer must be the error that was asked for.
The memory of the server must stay flat. At the end the server is stopped under load, and must answer every request that
it has accepted. `make test` runs a short version.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import bilmo
from program import started

WORDS = "the old man sat on a bank of river and he said that it was good , but she did not know 银行 ß🙂 .".split()
CLIENTS = 24
GROWTH = 64
"""Megabytes by which the memory may grow after the warm-up."""


@dataclass
class Record:
    """What happened."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    """Megabytes, once per second."""
    slowest_health: float = 0.0


class Abuse:
    """Clients of one server."""

    def __init__(self, port: int, seed: int) -> None:
        self.port, self.draw, self.record = port, random.Random(seed), Record()
        elmo = bilmo.load("en")
        self.texts = [" ".join(self.draw.choices(WORDS, k=self.draw.randrange(1, 40))) for _ in range(60)]
        self.vectors = [found.vectors for found in elmo.embed(self.texts)]
        self.layers = [found.vectors for found in elmo.embed(self.texts, mix="all")]
        self.until = 0.0

    async def run(self, seconds: float, pid: int) -> None:
        """All clients, for some time."""
        self.until = time.monotonic() + seconds
        kinds = (*[self.proper] * 3, self.senses, self.malformed, self.too_large, self.cut, self.garbage)
        slow = (self.slow_header, self.slow_body, self.slow_reader)
        clients = [self.client(kinds) for _ in range(CLIENTS)] + [self.client([kind]) for kind in slow]
        await asyncio.gather(self.watch(pid), *clients)

    async def client(self, kinds) -> None:
        while time.monotonic() < self.until:
            kind = self.draw.choice(kinds)
            try:
                await kind()
                self.record.counts[kind.__name__] += 1
            except Exception as problem:
                self.record.wrong.append(f"{kind.__name__}: {problem!r}")

    async def watch(self, pid: int) -> None:
        """Memory and health, once per second."""
        while time.monotonic() < self.until:
            begin = time.monotonic()
            status, _, _ = await self.ask("/health", None)
            self.record.slowest_health = max(self.record.slowest_health, time.monotonic() - begin)
            if status != 200:
                self.record.wrong.append(f"health: {status}")
            text = Path(f"/proc/{pid}/status").read_text()
            self.record.memory.append(int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024)
            await asyncio.sleep(1)

    # One request each

    async def proper(self) -> None:
        """Texts of any number, in any form."""
        chosen = self.draw.sample(range(len(self.texts)), self.draw.randrange(1, 6))
        layers, pool = self.draw.random() < 0.2, self.draw.random() < 0.5
        body = {"text": [self.texts[k] for k in chosen], "layers": layers, "encoding": "base64"}
        status, _, found = await self.ask("/embed", body | ({"pool": "mean"} if pool else {}))
        if status == 429:
            return
        assert status == 200, (status, found)
        for k, one in zip(chosen, json.loads(found)["results"], strict=True):
            got = np.frombuffer(base64.b64decode(one["vectors"]), dtype="<f4").reshape(one["shape"])
            wanted = (self.layers if layers else self.vectors)[k]
            wanted = wanted.mean(axis=-2) if pool else wanted
            assert np.abs(got - wanted).max() < 1e-5, "another vector"

    async def senses(self) -> None:
        """The uses of a word, in groups."""
        chosen = self.draw.sample(self.texts, self.draw.randrange(1, 30))
        status, _, found = await self.ask("/senses", {"word": "bank", "among": chosen})
        assert status in (200, 429), (status, found)
        if status == 200:
            assert json.loads(found)["uses"] == sum(text.split().count("bank") for text in chosen)

    async def malformed(self) -> None:
        """Bodies that are no request."""
        bodies = [
            (b"{", 422),
            (b"[" * 50_000, 400),
            (self.draw.randbytes(200), None),
            (b'{"text": 5}', 422),
            (b'{"text": "a", "mix": [99]}', 422),
            (b'{"text": "a", "mix": 1e999}', 422),
            (b'{"text": ["a", null]}', 422),
            (b'{"text": "a", "model": "' + b"x" * 5000 + b'"}', 404),
            (b'{"text": "\\ud800 a"}', None),
        ]
        body, wanted = self.draw.choice(bodies)
        status, _, found = await self.ask("/embed", body)
        assert status == wanted or (wanted is None and status in (200, 400, 422)), (body[:40], status)
        assert status == 200 or json.loads(found)["error"]["code"] == status

    async def too_large(self) -> None:
        """More than the limits."""
        body = self.draw.choice(
            [
                {"text": "a " * 600_000},
                {"text": ["a"] * 2000},
                {"text": "a " * 5000},
                {"tokens": ["a" * 400_000]},
                {"text": [" ".join(WORDS) * 3] * 1000, "layers": True},
            ]
        )
        status, _, _ = await self.ask("/embed", body)
        assert status == 413, status

    async def cut(self) -> None:
        """The connection is closed somewhere, also while the server computes."""
        request = _request("/embed", json.dumps({"text": self.texts * 5}).encode())
        end = self.draw.choice([self.draw.randrange(len(request)), len(request)])
        reader, writer = await self.connect()
        writer.write(request[:end])
        await writer.drain()
        await asyncio.sleep(self.draw.random() * 0.1)
        if self.draw.random() < 0.5:
            writer.transport.abort()
        writer.close()
        del reader

    async def garbage(self) -> None:
        """Not HTTP, or not HTTP for this server."""
        lines = [
            self.draw.randbytes(300) + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
            b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
            b"POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
            b"GET /health HTTP/1.1\r\n" + b"X-A: b\r\n" * 20_000 + b"\r\n",
        ]
        reader, writer = await self.connect()
        with suppress(ConnectionError):
            writer.write(self.draw.choice(lines))
            await writer.drain()
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(2000), 2)
        writer.close()

    async def slow_header(self) -> None:
        """A header that never ends: the connection is cut."""
        await self._dripped(b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 200, b"")

    async def slow_body(self) -> None:
        """A body that comes byte by byte: status 408."""
        await self._dripped(_request("/embed", b"x" * 500), b" 408 ")

    async def _dripped(self, data: bytes, wanted: bytes) -> None:
        reader, writer = await self.connect()
        answer = asyncio.create_task(reader.read())
        begin = time.monotonic()
        head, _, rest = data.partition(b"\r\n\r\n")
        writer.write(head + (b"\r\n\r\n" if rest else b"")[: 4 if wanted else 0])
        while not answer.done() and time.monotonic() < min(begin + 20, self.until):
            with suppress(ConnectionError):
                writer.write(b"X" if wanted else b"X: y\r\n")
            await asyncio.sleep(0.2)
        if answer.done():
            with suppress(ConnectionError):
                assert wanted in answer.result(), answer.result()[:80]
        else:
            answer.cancel()
            assert time.monotonic() < begin + 20, "not cut"
        writer.close()

    async def slow_reader(self) -> None:
        """An answer that is hardly taken: the connection is cut."""
        reader, writer = await self.connect(limit=1 << 12)
        writer.write(_request("/embed", json.dumps({"text": self.texts * 2, "layers": True}).encode()))
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while time.monotonic() < self.until and await reader.read(512):
                await asyncio.sleep(0.2)
        writer.transport.abort()

    # HTTP

    async def connect(self, limit: int = 1 << 16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the server."""
        return await asyncio.open_connection("127.0.0.1", self.port, limit=limit)

    async def ask(self, path: str, body: object) -> tuple[int, bytes, bytes]:
        """Status, header and body of an answer."""
        reader, writer = await self.connect(limit=1 << 24)
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            writer.write(_request(path, data))
            return await _answer(reader)
        finally:
            writer.close()

    async def stop_under_load(self, process) -> None:
        """SIGTERM while requests are being computed: all of them are answered, then the process ends."""
        asked = [asyncio.create_task(self.ask("/embed", {"text": self.texts, "pool": "mean"})) for _ in range(8)]
        await asyncio.sleep(0.3)  # every request has arrived
        waiting = sum(not task.done() for task in asked)
        process.send_signal(signal.SIGTERM)
        found = await asyncio.gather(*asked, return_exceptions=True)
        lost = [one for one in found if isinstance(one, BaseException) or one[0] != 200]
        if lost or not waiting:
            self.record.wrong.append(f"stop under load: {waiting} waiting, lost {lost}")
        self.record.counts["answered while stopping"] = waiting


def _request(path: str, body: bytes | None) -> bytes:
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + (body or b"")


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head)[1])
    return int(head.split()[1]), head, await reader.readexactly(length)


def abuse(seconds: float, seed: int = 1) -> Record:
    """Start a server, let the clients loose, stop it."""
    with tempfile.TemporaryDirectory() as folder:
        process = started(Path(folder), "serve", "en", "--port", 0)
        try:
            port = int(re.search(r":(\d+)\s*$", process.stderr.readline())[1])
            clients = Abuse(port, seed)

            async def all_of_it() -> None:
                await clients.run(seconds, process.pid)
                await clients.stop_under_load(process)

            asyncio.run(all_of_it())
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    record = clients.record
    if (process.returncode, out, err) != (0, "", ""):
        record.wrong.append(f"the process ended with {process.returncode}: {out}{err}")
    return record


def growth(record: Record) -> float:
    """Megabytes by which the memory grew after the first fifth of the time."""
    warm = record.memory[: max(1, len(record.memory) // 5)]
    return max(record.memory) - max(warm)


def main() -> None:
    """Run it and say what happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    record = abuse(60 * given.minutes, given.seed)
    for name, count in sorted(record.counts.items()):
        print(f"{name:24} {count:8,}")
    print(
        f"memory: {record.memory[0]:.0f} MB at the start, highest {max(record.memory):.0f} MB, grew by "
        f"{growth(record):.0f} MB after the warm-up; slowest /health {record.slowest_health:.2f} s"
    )
    parts = np.array_split(record.memory, 5)
    print("highest memory in each fifth of the time:", *(f"{max(part):.0f} MB" for part in parts if len(part)))
    for line in sorted(set(record.wrong)):
        print("WRONG:", line)
    sys.exit(1 if record.wrong or growth(record) > GROWTH else 0)


if __name__ == "__main__":
    main()
