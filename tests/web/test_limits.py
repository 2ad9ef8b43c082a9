"""Limits, the token and the shared batches, with a server inside this process."""

import asyncio
import logging
import threading
import time
from contextlib import asynccontextmanager

import httpx
import numpy as np
import pytest

import bilmo
from bilmo.sense.index import Index
from bilmo.web.app import application
from bilmo.web.limits import Limits
from bilmo.web.served import Served
from bilmo.web.worker import Texts, Worker

from task_data import made

ONE = {"tokens": ["a", "b"]}


class Held(bilmo.Embedder):
    """A model that waits before it computes, and counts its calls."""

    def __init__(self) -> None:
        super().__init__(made(0))
        self.calls, self.free = [], threading.Event()

    def embed_rows(self, rows, **options):
        self.calls.append(len(rows))
        assert self.free.wait(30)
        if any("bad" in sentence for row in rows for sentence in row):
            raise ValueError("secret text")
        return super().embed_rows(rows, **options)


@asynccontextmanager
async def client_of(elmo, *, token=None, hosts=None, indexes=None, **limits):
    """A client of an application that runs in this event loop."""
    app = application(Served({"tiny": elmo}, indexes=indexes or {}), limits=Limits(**limits), hosts=hosts, token=token)
    messages, done = asyncio.Queue(), asyncio.Queue()
    life = asyncio.ensure_future(app({"type": "lifespan", "state": {}}, messages.get, done.put))
    await messages.put({"type": "lifespan.startup"})
    assert (await done.get())["type"] == "lifespan.startup.complete"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        yield client
    elmo.free.set()
    await messages.put({"type": "lifespan.shutdown"})
    await life


def test_requests_that_wait_are_computed_together_and_too_many_are_refused():
    elmo = Held()

    async def scenario():
        async with client_of(elmo, queue=4) as client:
            first = asyncio.create_task(client.post("/embed", json=ONE))
            while not elmo.calls:
                await asyncio.sleep(0.01)
            more = [asyncio.create_task(client.post("/embed", json={"tokens": [["c"], ["d", "e"]]})) for _ in range(3)]
            await asyncio.sleep(0.1)
            refused = await client.post("/embed", json=ONE)
            not_ready = await client.get("/ready")
            elmo.free.set()
            return refused, not_ready, [(await one).json()["results"] for one in (first, *more)]

    refused, not_ready, found = asyncio.run(scenario())
    assert (refused.status_code, not_ready.status_code) == (429, 503)
    assert int(refused.headers["retry-after"]) >= 1
    assert elmo.calls == [1, 6]
    plain = bilmo.Embedder(made(0))
    np.testing.assert_allclose(found[0][0]["vectors"], plain.embed([["a", "b"]])[0], atol=1e-5)
    for results in found[1:]:
        for one, wanted in zip(results, plain.embed([["c"], ["d", "e"]]), strict=True):
            np.testing.assert_allclose(one["vectors"], wanted, atol=1e-5)


def test_time_is_limited_and_what_nobody_waits_for_is_not_computed():
    elmo = Held()

    async def scenario():
        async with client_of(elmo, seconds=0.3) as client:
            answers = await asyncio.gather(*(client.post("/embed", json=ONE) for _ in range(1)))
            late = asyncio.gather(*(client.post("/embed", json={"tokens": ["c"]}) for _ in range(5)))
            answers += await late
            elmo.free.set()
            answers.append(await client.post("/embed", json=ONE))
            return answers

    *late, last = asyncio.run(scenario())
    assert [one.status_code for one in late] == [504] * 6
    assert last.status_code == 200
    assert elmo.calls == [1, 1]  # the five were dropped


def test_a_request_that_fails_does_not_harm_the_others_and_no_text_is_logged(caplog):
    elmo = Held()
    elmo.free.set()

    async def scenario():
        async with client_of(elmo) as client:
            bodies = [{"tokens": ["bad"]}, *[{"tokens": ["good"]}] * 5]
            return await asyncio.gather(*(client.post("/embed", json=body) for body in bodies))

    with caplog.at_level(logging.DEBUG):
        bad, *good = asyncio.run(scenario())
    assert (bad.status_code, bad.json()["error"]["type"]) == (500, "failed")
    assert {one.status_code for one in good} == {200}
    assert "a request failed: ValueError" in caplog.text
    assert not {"secret", "bad", "good"} & set(caplog.text.split()) and "secret text" not in bad.text + caplog.text


def test_memory_and_answers_are_limited():
    elmo = Held()
    elmo.free.set()

    async def scenario():
        async with client_of(elmo, memory=2000, answer=3000) as client:
            small, large, larger = {"tokens": ["a"]}, {"tokens": ["a"] * 10}, {"tokens": ["a"] * 100}
            found = [await client.post("/embed", json=body) for body in (small, large, larger, small)]
            return [one.status_code for one in found]

    assert asyncio.run(scenario()) == [200, 503, 413, 200]


def test_a_damaged_index_is_a_failure_of_the_server_and_its_path_is_only_logged(tmp_path, caplog):
    elmo = Held()
    elmo.free.set()
    (tmp_path / "text.txt").write_text("He sat on the bank.\n")
    index = Index.build(bilmo.Embedder(made(0), lang="en"), tmp_path / "text.txt", tmp_path / "uses")
    vectors = tmp_path / "uses" / "00000" / "vectors.bin"
    vectors.write_bytes(bytes(vectors.stat().st_size))

    async def scenario():
        async with client_of(elmo, indexes={"tiny": index}) as client:
            return [
                await client.post("/similar", json={"tokens": ["a", "bank"], "position": 1}),
                await client.post("/senses", json={"word": "bank"}),
                await client.post("/embed", json=ONE),
            ]

    *failed, good = asyncio.run(scenario())
    assert [(one.status_code, one.json()["error"]["type"]) for one in failed] == [(500, "failed")] * 2
    assert "vectors.bin: is damaged" in caplog.text and not any("vectors.bin" in one.text for one in failed)
    assert good.status_code == 200


def test_a_token_is_needed_for_all_but_the_page_and_health():
    elmo = Held()
    elmo.free.set()
    token = "t" * 20

    async def scenario():
        async with client_of(elmo, token=token) as client:
            paths = ("/", "/index.html", "/health", "/ready", "/info", "/metrics", "/openapi.json", "/v1/models")
            without = {path: (await client.get(path)).status_code for path in paths}
            wrong = [f"Bearer {token}x", f"Basic {token}", token, "Bearer", "Bearer é".encode()]
            refused = [await client.post("/embed", json=ONE, headers={"Authorization": one}) for one in wrong]
            refused.append(await client.post(f"/embed?token={token}", json=ONE))
            right = await client.post("/embed", json=ONE, headers={"Authorization": f"Bearer {token}"})
            return without, [one.status_code for one in refused], right.status_code

    without, refused, right = asyncio.run(scenario())
    assert {path for path, status in without.items() if status == 200} == {"/", "/index.html", "/health", "/ready"}
    assert {status for status in without.values() if status != 200} == {401}
    assert (refused, right) == ([401] * 6, 200)


@pytest.mark.parametrize(("first", "others", "begin"), [(100, 0, 100), (100, 1, 10)])
def test_a_large_request_leaves_room_for_others(monkeypatch, first, others, begin):
    monkeypatch.setattr("bilmo.web.worker.SHARE", 10)
    monkeypatch.setattr("bilmo.web.worker.BATCH_TOKENS", 100)
    seen = []

    async def scenario():
        worker = Worker(queue=10)

        def compute(pieces):
            seen.append(list(pieces))
            return pieces

        jobs = [worker.texts(0, compute, ["large"] * first, [1] * first)]
        jobs += [worker.texts(0, compute, ["small"], [1]) for _ in range(others)]
        found = await asyncio.gather(*jobs)
        await worker.close()
        return found

    found = asyncio.run(scenario())
    assert found[0] == ["large"] * first and all(one == ["small"] for one in found[1:])
    assert seen[0].count("large") == begin and (not others or "small" in seen[0])


def test_clients_that_come_back_at_once_share_their_batches(monkeypatch):
    monkeypatch.setattr("bilmo.web.worker.PAUSE", 10.0)  # so that a busy machine is not too slow
    monkeypatch.setattr("bilmo.web.worker.LONGEST_PAUSE", 2.0)
    seen = []

    def compute(pieces):
        seen.append(len(pieces))
        time.sleep(0.05)
        return pieces

    async def client(worker, late):
        await asyncio.sleep(late)
        for _ in range(4):
            await worker.texts(0, compute, ["text"], [1])

    async def scenario():
        worker = Worker(queue=6)  # finished jobs take no place
        await asyncio.gather(*(client(worker, 0.03 * (k > 2)) for k in range(6)))
        await worker.close()

    asyncio.run(scenario())
    assert seen.count(6) >= 3, seen  # all of them together, once both groups have met


def test_a_text_that_is_larger_than_a_batch_is_taken_alone():
    async def scenario():
        job = Texts(asyncio.get_running_loop(), 0, list, ["a", "b"], [5000, 1])
        return job.take(4096, first=False), job.take(4096, first=True), job.take(4096, first=False)

    assert asyncio.run(scenario()) == (([], 0), (["a"], 5000), (["b"], 1))
