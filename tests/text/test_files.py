"""Lines of plain and compressed text files, and files that cannot be read."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.errors import BilmoError, DamagedFile, MissingExtra, TextError
from bilmo.text.files import all_lines, files, lines, text_lines

from old_models import cuts, flips, little_memory

PACKING = {"plain": bytes, "gz": gzip.compress, "xz": lzma.compress}


def zstd():
    return pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def packed(kind: str, data: bytes) -> bytes:
    return zstd().compress(data) if kind == "zst" else PACKING[kind](data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "text"


@pytest.mark.parametrize("ending", ["", ".txt", ".gz", ".zst"])
@pytest.mark.parametrize("kind", [*PACKING, "zst"])
def test_compression_is_detected_by_content(tmp_path, kind, ending):
    path = tmp_path / f"text{ending}"
    path.write_bytes(packed(kind, "one\ntwo 漢字\n\nfour\n".encode()))
    assert list(lines(path)) == ["one", "two 漢字", "", "four"]


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_files_packed_one_after_the_other_are_one(path, kind):
    path.write_bytes(packed(kind, b"one\ntw") + packed(kind, b"o\n"))
    assert list(lines(path)) == ["one", "two"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\r\r\n", ["a\r"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa\n", ["\ufeffa"]),
        (b"\xef\xbb\xbf", [""]),
        (b"\x1f", ["\x1f"]),
        (b" a \n", [" a "]),
        (b"a\x00b\n", ["a\0b"]),
    ],
    ids=repr,
)
def test_how_lines_end(path, data, expected):
    path.write_bytes(data)
    assert list(lines(path)) == expected


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\x1c", "\x1d", "\x1e"], ids=repr)
def test_only_a_line_feed_ends_a_line(path, mark):
    path.write_text(f"a{mark}b\nc\n", encoding="utf-8")
    assert list(lines(path)) == [f"a{mark}b", "c"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"))))
def test_reading_gives_back_what_was_written(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "any text"
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8", newline="\n")
    assert list(lines(path)) == rows


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("é\r\nb".encode()), encoding="ascii"))
    assert list(lines(Path("-"))) == ["é", "b"]
    assert not sys.stdin.buffer.closed


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(TextError, match="-: standard input is closed; pipe text into bilmo, or name a file"):
        list(lines(Path("-")))


@pytest.mark.parametrize("kind", [*PACKING, "zst"])
def test_bytes_that_are_not_utf8_are_reported_with_file_and_line(path, kind):
    path.write_bytes(packed(kind, b"fine\nna\xefve\n"))
    reading = lines(path)
    assert next(reading) == "fine"
    with pytest.raises(TextError) as caught:
        next(reading)
    assert str(caught.value).startswith(f"{path}, line 2: byte 3 (0xef) is not UTF-8")
    assert "iconv" in str(caught.value)


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_every_cut_of_a_packed_file_is_noticed(path, kind):
    good = packed(kind, b"some words in a line\n" * 50)
    for length in range(8, len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(
            DamagedFile, match=r"decompression failed after line .* truncated or damaged; download it again"
        ):
            list(lines(path))


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_flips_of_a_packed_file_are_read_or_refused(path, kind):
    good = packed(kind, "some words in a line 漢字\n".encode() * 50)
    for bit in range(8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        try:
            list(lines(path))
        except BilmoError as error:
            assert str(path) in str(error)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(TextError, match=r"nowhere: there is no such file"):
        list(lines(tmp_path / "nowhere"))
    with pytest.raises(TextError, match="is a folder; name a file in it"):
        list(lines(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(TextError, match="cannot be read"):
        list(lines(tmp_path / "file" / "inside"))


def test_without_its_package_zstandard_is_refused_with_advice(path, monkeypatch):
    path.write_bytes(b"\x28\xb5\x2f\xfd rest")
    for name in ("backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"Reading .*text needs the package .*pip install 'bilmo\[zst\]'"):
        list(lines(path))


@pytest.mark.parametrize("kind", [*PACKING, "zst"])
def test_a_file_is_closed_when_reading_stops_early(path, kind, monkeypatch):
    path.write_bytes(packed(kind, b"a\nb\n"))
    opened = []
    usual = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *a: opened.append(usual(self, *a)) or opened[-1])
    reading = lines(path)
    assert next(reading) == "a"
    reading.close()
    assert opened[0].closed


# Many files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Text in two folders, compressed and plain, and hidden files."""
    (tmp_path / "text" / "deep").mkdir(parents=True)
    (tmp_path / "text" / ".git").mkdir()
    (tmp_path / "text" / "b.txt").write_text("b1\nb2")
    (tmp_path / "text" / "a.gz").write_bytes(gzip.compress(b"a1\n"))
    (tmp_path / "text" / "deep" / "c.txt").write_text("c1\n")
    (tmp_path / "text" / ".DS_Store").write_bytes(b"\xff")
    (tmp_path / "text" / ".git" / "x").write_bytes(b"\xff")
    return tmp_path / "text"


def test_a_folder_means_its_files_sorted_by_name(folder):
    assert list(all_lines([folder])) == ["a1", "b1", "b2", "c1"]
    assert list(all_lines([folder / "b.txt", folder])) == ["b1", "b2", "a1", "b1", "b2", "c1"]
    assert files([folder]) == [folder / "a.gz", folder / "b.txt", folder / "deep" / "c.txt"]


def with_permissions(work: Callable[[], str]) -> str:
    """What `work` returns in a process that is bound by permissions; for root, this is a fork with another user."""
    if os.geteuid() != 0:
        return work()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setuid(65534)
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and permissions")
@pytest.mark.parametrize(("name", "mode"), [("deep", 0o000), ("deep", 0o400), ("c.txt", 0o000)])
def test_a_subfolder_or_file_that_cannot_be_read_is_an_error(name, mode):
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        folder.chmod(0o755)
        (folder / "deep").mkdir()
        (folder / "deep" / "c.txt").write_text("c1\n")
        (folder / "a.txt").write_text("a1\n")
        closed = folder / "deep" if name == "deep" else folder / "deep" / name
        closed.chmod(mode)

        def work() -> str:
            try:
                return str(list(all_lines([folder])))
            except TextError as error:
                return str(error)

        said = with_permissions(work)
        closed.chmod(0o755)
    assert said.startswith(str(closed)) and "cannot be read (Permission denied)" in said


def test_a_hidden_folder_that_cannot_be_read_does_not_matter(folder, monkeypatch):
    usual = os.scandir

    def closed(path):
        if Path(path).name == ".git":
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert list(all_lines([folder])) == ["a1", "b1", "b2", "c1"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("kind", ["plain", "gz", "zip"])
def test_text_in_utf16_without_a_byte_order_mark_is_refused(path, encoding, kind):
    content = "a cat\nsat\n".encode(encoding)
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.txt", content)
    else:
        path.write_bytes(packed(kind, content))
    with pytest.raises(TextError, match=r"line 1: contains zero bytes, so it is not UTF-8 text.*iconv -f UTF-16LE"):
        list(all_lines([path]))


def test_text_has_no_zero_bytes_but_lists_of_words_may(path):
    path.write_bytes(b"fine\na\0b\n")
    assert list(lines(path)) == ["fine", "a\0b"]
    with pytest.raises(TextError, match="text, line 2: contains zero bytes"):
        list(text_lines(path))


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(TextError, match="the folder contains no files"):
        list(all_lines([tmp_path]))


def test_a_zip_means_the_files_in_it(folder, tmp_path):
    path = tmp_path / "text.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"b.txt": b"b1\n", "a/": b"", "a/x.txt": b"\xef\xbb\xbfx1", "__MACOSX/y": b"\xff"}.items():
            archive.writestr(name, content)
    assert list(all_lines([path])) == ["x1", "b1"]


def test_bytes_that_are_not_utf8_in_a_zip_are_reported_with_zip_file_and_line(tmp_path):
    path = tmp_path / "text.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", b"fine\n\xff\n")
    with pytest.raises(TextError, match=r"text\.zip: a\.txt, line 2: byte 1 \(0xff\)"):
        list(all_lines([path]))


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_cuts_and_flips_of_a_zip_of_text_are_read_or_refused(path, kind):
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("a.txt", b"some words in a line\n" * 50)
    good = path.read_bytes()
    for bad in (*cuts(good), *flips(good, 300), *flips(good, 300, seed=1)):
        path.write_bytes(bad)
        try:
            list(all_lines([path]))
        except BilmoError as error:
            assert str(path) in str(error)


@pytest.mark.parametrize("kind", ["plain", "gz", "zip"])
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(path, kind, monkeypatch):
    monkeypatch.setattr("bilmo.text.files.LONGEST_LINE", 1 << 20)
    size = 1 << 27
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.txt", "w") as file:
            for _ in range(size >> 20):
                file.write(b"a" * (1 << 20))
    else:
        path.write_bytes(packed(kind, b"a" * size))
    with (
        little_memory(),
        pytest.raises(TextError, match="line 1: has more than 1,048,576 bytes without a line end"),
    ):
        list(all_lines([path]))


def test_a_line_of_the_longest_length_is_read(path, monkeypatch):
    monkeypatch.setattr("bilmo.text.files.LONGEST_LINE", 10)
    path.write_bytes(b"123456789\n123456789\n1234567890")
    assert list(lines(path)) == ["123456789", "123456789", "1234567890"]
    path.write_bytes(b"1234567890\n")
    with pytest.raises(TextError, match="line 1: has more than 10 bytes"):
        list(lines(path))
