"""The server as clients see it: a process of its own, asked over HTTP."""

import re
import signal

import httpx
import numpy as np
import pytest

import bilmo
from program import started


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    process = started(tmp_path_factory.mktemp("server"), "serve", "en", "--port", 0)
    line = process.stderr.readline()
    found = re.search(r"on (http://\S+)", line)
    assert found, line + process.stderr.read()
    with httpx.Client(base_url=found[1], timeout=60) as client:
        yield client
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


def test_vectors_are_those_of_embed(server):
    text = "He sat on the bank. It was late."
    answer = server.post("/embed", json={"text": [text, ""]}).json()
    tokens, vectors = bilmo.load("en").embed(text)
    first, second = answer["results"]
    assert (first["tokens"], first["sentences"], first["shape"]) == (tokens, [6, 4], list(vectors.shape))
    np.testing.assert_allclose(first["vectors"], vectors, atol=1e-5)
    assert second["tokens"] == [] and second["shape"] == [0, 256]
    assert [text[begin:end] for begin, end in first["offsets"]] == tokens


def test_the_page_and_the_state_are_served(server):
    assert server.get("/health").json()["status"] == "ok"
    assert server.get("/").headers["content-type"].startswith("text/html")
    assert [model["name"] for model in server.get("/info").json()["models"]] == ["en"]


def test_other_hosts_and_types_are_refused(server):
    assert server.get("/health", headers={"Host": "example.com"}).status_code == 400
    assert server.post("/embed", content="text=a", headers={"Content-Type": "text/plain"}).status_code == 415
    assert server.post("/embed", json={"text": "a"}, headers={"Origin": "https://example.com"}).status_code == 403
