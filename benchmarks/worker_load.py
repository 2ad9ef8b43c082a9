"""Clients of a server: `python worker_load.py PORT PATH CLIENTS < requests.jsonl`. Prints a JSON object.

Each line of the input is the body of one request. Each client has one connection, and sends its next request when the
last one is answered. Only the requests after the warm-up (`--warm-up N`) are timed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator


async def client(port: int, path: str, bodies: Iterator[bytes], seconds: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    for body in bodies:
        begin = time.perf_counter()
        writer.write(f"{head}{len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:-2])
        await reader.readexactly(int(fields[b"content-length"]))
        if answer.split()[1] != b"200":
            raise RuntimeError(answer.decode())
        seconds.append(time.perf_counter() - begin)
    writer.close()


async def load(port: int, path: str, clients: int, bodies: list[bytes]) -> tuple[float, list[float]]:
    seconds: list[float] = []
    rest = iter(bodies)
    begin = time.perf_counter()
    await asyncio.gather(*(client(port, path, rest, seconds) for _ in range(clients)))
    return time.perf_counter() - begin, seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("clients", type=int)
    parser.add_argument("--warm-up", type=int, default=0)
    given = parser.parse_args()
    bodies = [line.strip() for line in sys.stdin.buffer]
    asyncio.run(load(given.port, given.path, given.clients, bodies[: given.warm_up]))
    whole, seconds = asyncio.run(load(given.port, given.path, given.clients, bodies[given.warm_up :]))
    json.dump({"seconds": whole, "each": seconds, "cpu": time.process_time()}, sys.stdout)


if __name__ == "__main__":
    main()
