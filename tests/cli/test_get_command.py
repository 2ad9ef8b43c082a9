"""`bilmo get` and `bilmo models --all`, against a local server: resumed, verified, never half installed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

import bilmo
from bilmo.errors import BilmoError
from bilmo.store import download as downloads
from bilmo.store import model_folder, published
from bilmo.store.installed import installed
from file_server import serving
from program import SignalAfter, program, started

from old_models import SENTENCES, write_checkpoint, write_hdf5, write_manylangs, zipped

SMALL = published.published()["elmo-small"]
WEIGHTS = next(name for name in SMALL.urls() if name.endswith(".hdf5"))
LANGUAGES = 44


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A mirror that has a tiny model under the name `elmo-small`."""
    monkeypatch.setattr(downloads, "WAIT", 0.0)
    monkeypatch.setattr(downloads, "CHUNK", 4096)
    write_hdf5(tmp_path / "old")
    with serving() as found:
        offer(found, "elmo-small", tmp_path / "old")
        monkeypatch.setenv("BILMO_MIRROR", found.address + "/")
        yield found


def offer(server, name, folder):
    """Put the files of a folder into the server, under the names that the list of published models has."""
    for file in published.published()[name].urls():
        (source,) = [path for path in folder.iterdir() if path.suffix == Path(file).suffix]
        server.files[f"/{name}/{file}"] = source.read_bytes()


def models_folder():
    return Path(os.environ["BILMO_MODELS"])


def nothing_is_installed():
    return all(path.name == ".downloads" for path in models_folder().iterdir())


def left_over():
    """Files of downloads, apart from locks."""
    return [path for path in models_folder().glob(".downloads/**/*") if path.suffix != ".lock"]


def test_a_published_model_is_installed_and_found_by_its_name(server, tmp_path):
    done = program(tmp_path, "get", "elmo-small")
    assert done.code == 0, done.err
    assert done.out == f"elmo-small: installed in {models_folder() / 'elmo-small'}\n"
    assert f"note: downloading {server.address}/elmo-small/{WEIGHTS}\n" in done.err
    assert "no checksum is known for" in done.err
    for sentence, vectors in zip(SENTENCES, bilmo.load("elmo-small").layers(SENTENCES), strict=True):
        np.testing.assert_allclose(vectors, bilmo.load(tmp_path / "old").layers([sentence])[0], atol=1e-5)
    assert program(tmp_path, "embed", "elmo-small", "The cat sat .", "-o", "v.npz").code == 0
    assert "elmo-small" in program(tmp_path, "models").out and left_over() == []
    requests = len(server.asked)
    assert program(tmp_path, "get", "elmo-small").code == 0 and len(server.asked) == requests


def test_the_card_says_where_a_model_comes_from(server, tmp_path):
    folder = bilmo.get("elmo-small")
    card = (folder / "README.md").read_text(encoding="utf-8")
    digest = hashlib.sha256((tmp_path / "old" / "weights.hdf5").read_bytes()).hexdigest()
    assert f"| file {WEIGHTS} | {server.address}/elmo-small/{WEIGHTS}, SHA-256 {digest} |" in card
    assert "| licence | the authors impose no restriction |" in card and "| lang | en |" in card
    (row,) = [row for row in program(tmp_path, "models").out.splitlines() if row.startswith("elmo-small")]
    assert "1 Billion Word Benchmark" in row


def test_other_layouts_are_installed_too(server, tmp_path):
    write_manylangs(tmp_path / "many")
    server.files["/manylangs-ar/136.zip"] = zipped(tmp_path / "many", tmp_path / "136.zip").read_bytes()
    write_checkpoint(tmp_path / "checkpoint")
    offered = {".index": "*.index", ".json": "options.json", ".txt": "vocab.txt"}
    for file in published.published()["elmo-original-softmax"].urls():
        (source,) = (tmp_path / "checkpoint").glob(offered.get(Path(file).suffix, "*.data-*"))
        server.files[f"/elmo-original-softmax/{file}"] = source.read_bytes()
    for name in ("manylangs-ar", "elmo-original-softmax"):
        assert program(tmp_path, "get", name).code == 0
    assert bilmo.load("elmo-original-softmax").log_probs([["the", "cat"]])[0].shape == (2, 3)
    assert bilmo.load("manylangs-ar").layers([["the"]])


def test_connections_that_are_cut_are_resumed_and_leave_nothing(server, tmp_path):
    server.cuts = [5, 10_000, 0, 7_000]
    assert program(tmp_path, "get", "elmo-small").code == 0
    assert len(server.asked) == 5 and any(asked.startswith("bytes=") for _, asked in server.asked)
    assert left_over() == []


def test_a_download_that_was_given_up_installs_nothing_and_is_resumed(server, tmp_path):
    server.cuts = [10**6, 10_000, *[0] * downloads.ATTEMPTS]
    done = program(tmp_path, "get", "elmo-small")
    assert done.code == 1 and "10,000 bytes are kept; the same command resumes the download" in done.err
    assert "elmo-small" not in installed() and nothing_is_installed()
    with pytest.raises(BilmoError, match=r"`bilmo get elmo-small` installs the published model"):
        bilmo.load("elmo-small")
    server.cuts, server.asked = [], []
    assert program(tmp_path, "get", "elmo-small").code == 0
    assert server.asked == [(f"/elmo-small/{WEIGHTS}", "bytes=10000-")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_is_stopped_leaves_nothing_installed_and_the_next_one_resumes(server, tmp_path, number):
    large = server.files[f"/elmo-small/{WEIGHTS}"] + bytes(3 << 20)
    server.files[f"/elmo-small/{WEIGHTS}"] = large  # HDF5 ignores what follows
    after = SignalAfter("bilmo.store.download", "_size", 8, number)
    process = started(tmp_path, "get", "elmo-small", after=after)
    said = process.communicate()
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL), said
    assert nothing_is_installed()
    server.asked = []
    assert program(tmp_path, "get", "elmo-small").code == 0
    assert len(server.asked) == 1 and server.asked[0][1].startswith("bytes=")


def test_a_wrong_checksum_installs_nothing_and_removes_the_file(server, tmp_path, monkeypatch):
    listed = published.published() | {"elmo-small": replace(SMALL, sha256={WEIGHTS: "0" * 64})}
    monkeypatch.setattr(published, "published", lambda: listed)
    done = program(tmp_path, "get", "elmo-small")
    assert done.code == 1 and f"but {'0' * 64} was published. The file was removed." in done.err
    assert nothing_is_installed() and WEIGHTS not in {path.name for path in left_over()}
    right = hashlib.sha256(server.files[f"/elmo-small/{WEIGHTS}"]).hexdigest()
    listed["elmo-small"] = replace(SMALL, sha256=dict.fromkeys(SMALL.urls(), "") | {WEIGHTS: right})
    done = program(tmp_path, "get", "elmo-small")
    assert done.code == 0 and "no checksum" not in done.err


def test_files_that_are_not_a_model_are_removed(server, tmp_path):
    server.files[f"/elmo-small/{WEIGHTS}"] = b"<html>moved</html>"
    done = program(tmp_path, "get", "elmo-small")
    assert done.code == 1 and "the downloaded files are not a model that bilmo can read, and were removed" in done.err
    assert nothing_is_installed() and left_over() == []


def test_a_full_disk_while_the_model_is_written_installs_nothing_and_keeps_the_download(server, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(model_folder, "_fill", full)
        done = program(tmp_path, "get", "elmo-small")
    assert done.code == 1 and "cannot be written (No space left on device)" in done.err
    assert nothing_is_installed()
    server.asked = []
    assert program(tmp_path, "get", "elmo-small").code == 0 and server.asked == []


def test_a_disk_that_is_too_small_is_noticed_at_the_start(server, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    done = program(tmp_path, "get", "elmo-small")
    assert done.code == 1 and "are free. Free some space" in done.err and nothing_is_installed()


def test_mistakes(server, tmp_path, monkeypatch):
    done = program(tmp_path, "get", "elmo-smal")
    assert done.code == 1 and "Did you mean elmo-small" in done.err and "bilmo models --all" in done.err
    done = program(tmp_path, "get", "elmo-medium")
    assert done.code == 1 and "the server answered 404" in done.err and "--mirror" in done.err
    done = program(tmp_path, "get", "elmo-small", "--mirror", "/some/folder")
    assert done.code == 1 and "must be an address that starts with https://" in done.err
    (tmp_path / "file").touch()
    monkeypatch.setenv("BILMO_MODELS", str(tmp_path / "file"))
    done = program(tmp_path, "get", "elmo-small")
    assert done.code == 1 and "Set BILMO_MODELS to another folder" in done.err


def test_the_mirror_may_be_an_option(server, tmp_path, monkeypatch):
    monkeypatch.delenv("BILMO_MIRROR")
    assert program(tmp_path, "get", "elmo-small", "--mirror", server.address).code == 0
    assert server.asked[0][0].startswith("/elmo-small/")


def test_two_processes_do_not_install_the_same_model(server, tmp_path):
    (models_folder() / ".downloads").mkdir()
    with FileLock(models_folder() / ".downloads" / "elmo-small.lock"):
        done = program(tmp_path, "get", "elmo-small")
    assert done.code == 1 and "another process is installing it" in done.err


# The list


def test_all_published_models_are_listed(tmp_path):
    done = program(tmp_path, "models", "--all")
    rows = {line.split()[0]: line for line in done.out.splitlines()}
    assert set(rows) == {"name", *published.published()}
    assert "13.6 M" in rows["elmo-small"] and "BSD-2-Clause" in rows["elmo-de"] and "MIT" in rows["manylangs-zh"]
    assert "- means unknown" in done.err


def test_the_list_is_available_as_json_and_in_python(tmp_path):
    found = json.loads(program(tmp_path, "models", "--all", "--json").out)
    assert {model["name"]: model["language"] for model in found}["manylangs-grc"] == "Ancient Greek"
    assert [model.name for model in bilmo.models(all=True)] == [model["name"] for model in found]


def test_the_list_has_everything_that_is_needed_and_nothing_invented():
    data = tomllib.loads(published.LIST.read_text(encoding="utf-8"))
    models = published.published()
    assert len(models) == sum(len(source["models"]) for source in data["source"])  # names are distinct
    assert sum(name.startswith("manylangs-") for name in models) == LANGUAGES
    for model in models.values():
        assert re.fullmatch(r"[a-z0-9.-]+", model.name) and model.language and model.publisher
        assert all(url.startswith(("https://", "http://vectors.nlpl.eu/")) for url in model.urls().values())
        assert len(model.urls()) == len(model.files) and model.lang in ("", "en", "zh")
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in model.sha256.values())
