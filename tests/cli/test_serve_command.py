"""`bilmo serve` refuses what it cannot do, with one line, and stops in the normal way."""

import signal
import socket
import time

import httpx
import pytest

from program import program, started

TOKEN = "a-token-of-some-length"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: "),
        (["en", "en"], "two models are called 'en'"),
        (["=en"], "is not a model"),
        (["en", "--task", "nowhere"], "is not the folder of a saved task"),
        (["en", "--index", "nowhere"], "there is no such index"),
        (["en", "--index", "."], "is not an index"),
        (["zh", "--index", "uses"], "was made with another model (en) than zh; serve that model too"),
        (["en", "--index", "uses", "--index", "uses"], "model en has an index already"),
        (["en", "--host", "0.0.0.0"], "a token is required"),
        (["en", "--token-file", "nowhere"], "No such file"),
        (["en", "--token-file", "short.txt"], "at least 16 ASCII characters"),
        (["en", "--host", "192.0.2.1", "--token-file", "token.txt"], "cannot be used"),
    ],
    ids=str,
)
def test_mistakes_get_one_line(tmp_path, arguments, message):
    if "uses" in arguments:
        (tmp_path / "text.txt").write_text("He sat on the bank.\n")
        assert program(tmp_path, "index", "en", "text.txt", "-o", "uses", "-q").code == 0
    (tmp_path / "short.txt").write_text("abc\n")
    (tmp_path / "token.txt").write_text(TOKEN)
    done = program(tmp_path, "serve", *arguments, "--port", 0, "-q")
    assert done.code == 1 and done.out == ""
    assert message in done.err and done.err.count("\n") == 1


def test_a_port_in_use_gets_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = program(tmp_path, "serve", "en", "--port", other.getsockname()[1], "-q")
    assert done.code == 1 and "cannot be used (Address already in use)" in done.err and done.err.count("\n") == 1


def test_other_machines_are_let_in_with_a_token_and_ctrl_c_stops(tmp_path):
    (tmp_path / "token.txt").write_text(f"{TOKEN}\n")
    process = started(tmp_path, "serve", "own=en", "--host", "0.0.0.0", "--token-file", "token.txt", "--port", 0)
    line = process.stderr.readline()
    port = int(line.rpartition(":")[2])
    url = f"http://127.0.0.1:{port}/v1/models"
    for _ in range(200):
        try:
            refused = httpx.get(url, headers={"Host": "any.name.example"})
            break
        except httpx.ConnectError:
            time.sleep(0.1)
    found = httpx.get(url, headers={"Authorization": f"Bearer {TOKEN}"})
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (refused.status_code, found.json()["data"][0]["id"]) == (401, "own")
    assert (process.returncode, out, err) == (0, "", "")
