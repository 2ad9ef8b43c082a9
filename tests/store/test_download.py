"""Downloads from a server whose connections are cut: resumed, verified, never half there."""

from __future__ import annotations

import errno
import hashlib
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilmo.errors import BilmoError, DamagedFile, OutputError
from bilmo.store import download as downloads
from bilmo.store.download import PART, STATE, check_sha256, download
from file_server import serving

CONTENT = random.Random(0).randbytes(100_000)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(downloads, "WAIT", 0.0)
    monkeypatch.setattr(downloads, "CHUNK", 4096)


@pytest.fixture
def server():
    with serving() as found:
        found.files["/file"] = CONTENT
        yield found


def get(server, target, path="/file"):
    return list(download(server.address + path, target))


def test_a_file_is_downloaded_once(server, tmp_path):
    events = get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert events[0].bytes == 0 and events[-1].bytes == events[-1].total == len(CONTENT)
    assert get(server, tmp_path / "file") == [] and len(server.asked) == 1


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, 40_000), max_size=8), ranges=st.booleans())
def test_a_connection_that_is_cut_is_made_again_and_continues(tmp_path_factory, cuts, ranges):
    target = tmp_path_factory.mktemp("cut") / "file"
    with serving() as server:
        server.files["/file"], server.cuts, server.ranges = CONTENT, list(cuts), ranges
        try:
            get(server, target)
        except BilmoError:  # without Range, every attempt starts again
            assert not ranges and not target.exists()
            return
        assert target.read_bytes() == CONTENT
        if ranges:
            sent = sum(cuts[: len(server.asked) - 1])
            assert server.asked[-1] == ("/file", f"bytes={sent}-" if sent else "")


def test_a_download_that_was_given_up_is_resumed_later(server, tmp_path):
    server.cuts = [30_000, *[0] * downloads.ATTEMPTS]
    with pytest.raises(BilmoError, match=r"30,000 bytes are kept; the same command resumes the download"):
        get(server, tmp_path / "file")
    assert not (tmp_path / "file").exists() and (tmp_path / f"file{PART}").stat().st_size == 30_000
    server.cuts, server.asked = [], []
    events = get(server, tmp_path / "file")
    assert server.asked == [("/file", "bytes=30000-")] and events[0].bytes == 30_000
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_reader_that_stops_leaves_a_part_that_is_resumed(server, tmp_path):
    for event in download(server.address + "/file", tmp_path / "file"):
        if event.bytes > 20_000:
            break
    assert not (tmp_path / "file").exists()
    get(server, tmp_path / "file")
    assert server.asked[1][1].startswith("bytes=2") and (tmp_path / "file").read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_starts_again(server, tmp_path):
    server.cuts = [30_000, *[0] * downloads.ATTEMPTS]
    with pytest.raises(BilmoError):
        get(server, tmp_path / "file")
    server.files["/file"] = new = bytes(reversed(CONTENT))
    get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == new


def test_a_part_of_another_address_or_without_a_tag_starts_again(server, tmp_path):
    server.files["/other"] = other = CONTENT[:50_000]
    server.cuts = [30_000, *[0] * downloads.ATTEMPTS]
    with pytest.raises(BilmoError):
        get(server, tmp_path / "file")
    get(server, tmp_path / "file", "/other")
    assert (tmp_path / "file").read_bytes() == other
    server.tags, server.cuts = False, [30_000, 20_000]
    get(server, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == CONTENT and server.asked[-1] == ("/file", "")


@pytest.mark.parametrize("damage", ["longer", "not JSON", "complete"])
def test_a_damaged_part_does_not_matter(server, tmp_path, damage):
    server.cuts = [30_000, *[0] * downloads.ATTEMPTS]
    with pytest.raises(BilmoError):
        get(server, tmp_path / "file")
    part, state = tmp_path / f"file{PART}", tmp_path / f"file{STATE}"
    if damage == "longer":
        part.write_bytes(CONTENT + b"more")
    elif damage == "complete":  # killed before it was renamed
        part.write_bytes(CONTENT)
    else:
        state.write_text("{", encoding="utf-8")
    server.cuts = []
    get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_server_that_does_not_say_the_length_is_read_to_the_end(server, tmp_path):
    server.lengths = False
    assert get(server, tmp_path / "file")[-1].total is None
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(server, tmp_path):
    server.cuts = [-503, -429]
    get(server, tmp_path / "file")
    assert len(server.asked) == 3
    with pytest.raises(BilmoError, match=r"/gone: the server answered 404 .* use --mirror or BILMO_MIRROR"):
        get(server, tmp_path / "gone", "/gone")
    assert len(server.asked) == 4 and not (tmp_path / "gone").exists()


def test_no_server_is_an_error_without_a_file(tmp_path):
    with pytest.raises(BilmoError, match=r"http://127\.0\.0\.1:9/file: cannot be downloaded \(.*refused"):
        list(download("http://127.0.0.1:9/file", tmp_path / "file"))
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_too_small_is_noticed_at_the_start(server, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(OutputError, match="0 MB are to be downloaded, but only 0 MB are free"):
        get(server, tmp_path / "file")
    assert not (tmp_path / "file").exists() and not (tmp_path / f"file{PART}").exists()


def test_a_disk_that_becomes_full_keeps_the_part(server, tmp_path, monkeypatch):
    plain = Path.open

    def full(path, mode="r", *rest, **named):
        if mode == "ab" and path.stat().st_size > 50_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(path, mode, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        with pytest.raises(OutputError, match=r"the disk is full.*What was downloaded is kept"):
            get(server, tmp_path / "file")
    assert len(server.asked) == 1 and not (tmp_path / "file").exists()
    get(server, tmp_path / "file")
    assert server.asked[1][1].startswith("bytes=5") and (tmp_path / "file").read_bytes() == CONTENT


def test_a_checksum_is_checked_and_a_wrong_file_is_removed(tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    right = hashlib.sha256(CONTENT).hexdigest()
    assert check_sha256(tmp_path / "file", right) == check_sha256(tmp_path / "file", "") == right
    with pytest.raises(DamagedFile, match=f"the SHA-256 of the downloaded file is {right}, but 00 was published"):
        check_sha256(tmp_path / "file", "00")
    assert not (tmp_path / "file").exists()
