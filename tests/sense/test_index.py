"""Indexes: built, searched, resumed, extended, damaged."""

import os
import random
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.errors import BilmoError, ConfigError, DamagedFile, NotAModel, OutputError, TextError
from bilmo.sense import index_parts, index_run, nearest_uses
from bilmo.sense.index import Index, index_events, search_files
from bilmo.sense.segment import NewSegment
from bilmo.sense.space import Space

from task_data import made

ELMO = Embedder(made(0), lang="en")
WORDS = "The cat sat on the bank of a river and he saw Banks near it".split()


def lines(number, seed=0):
    draw = random.Random(seed)
    return [
        " ".join(draw.choices(WORDS, k=draw.randint(1, 9))) + draw.choice([".", "!", " . The end."]) if k % 7 else ""
        for k in range(number)
    ]


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(lines(60)) + "\n", encoding="utf-8")
    return tmp_path / "text.txt"


@pytest.fixture
def index(text, tmp_path):
    return Index.build(ELMO, text, tmp_path / "uses")


def shown(found):
    return [(round(use.cosine, 2), use.text, use.file, use.line) for use in found]


ASKED = "He sat on the [bank] of a river."


def test_search_finds_what_a_comparison_with_every_use_finds(index, text):
    space = Space.of_files(ELMO, [text])
    asked = space.vector(ELMO, "He sat on the bank of a river .".split(), 4)
    every = []
    for number, line in enumerate(text.read_text().split("\n"), start=1):
        for sentence in ELMO.split(line):
            for word, vector in zip(sentence, ELMO.embed([sentence])[0], strict=True):
                if word not in ".!":
                    every.append((float(space.whitening.apply(vector) @ asked), number, word))
    assert len(index) == len(every)
    every.sort(key=lambda one: -one[0])
    found = index.search(ELMO, ASKED, 20)
    assert np.allclose([use.cosine for use in found], [one[0] for one in every[:20]], atol=2e-3)
    for use in found:
        assert text.read_text().split("\n")[use.line - 1].find(use.text.replace("[", "").replace("]", "")) >= 0
        assert use.tokens[use.position] == use.word and f"[{use.word}]" in use.text and use.file == str(text)
    same = index.search(ELMO, ASKED, 10, same_word=True)
    assert {use.word for use in same} == {"bank"}
    wanted = [one[0] for one in every if one[2] == "bank"][:10]
    assert np.allclose([use.cosine for use in same], wanted, atol=2e-3)


@pytest.mark.parametrize("same_word", [False, True])
def test_a_text_without_an_index_gives_the_same(index, text, same_word):
    found = search_files(ELMO, [text], ASKED, 10, same_word=same_word)
    wanted = index.search(ELMO, ASKED, 10, same_word=same_word)
    assert np.allclose([use.cosine for use in found], [use.cosine for use in wanted], atol=2e-3)


def test_adding_texts_gives_the_same_answers_as_building_at_once(tmp_path, monkeypatch):
    for name, seed in (("a", 1), ("b", 2), ("c", 3)):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines(40, seed)), encoding="utf-8")
    parts = [tmp_path / f"{name}.txt" for name in "abc"]
    space = Space.of_files(ELMO, parts[:1])
    index = Index.build(ELMO, parts[0], tmp_path / "added")
    index.add(ELMO, parts[1])
    before = index.search(ELMO, ASKED, 5)
    index.add(ELMO, parts[2])
    monkeypatch.setattr(Space, "of_lines", lambda *_: space)  # the statistics are those of the first text
    whole = Index.build(ELMO, parts, tmp_path / "whole")
    assert len(index) == len(whole) and len(index.config.texts) == 3
    for same_word in (False, True):
        found, wanted = (one.search(ELMO, ASKED, 400, same_word=same_word) for one in (index, whole))
        assert np.allclose([use.cosine for use in found], [use.cosine for use in wanted], atol=2e-3)
        assert {(use.text, use.file, use.line) for use in found} == {(use.text, use.file, use.line) for use in wanted}
    assert len(before) == 5 and shown(Index.open(tmp_path / "added").search(ELMO, ASKED)) == shown(
        index.search(ELMO, ASKED)
    )


def test_the_same_text_is_not_added_twice(index, text):
    with pytest.raises(OutputError, match="already contains this text"):
        index.add(ELMO, text)
    assert not (text.parent / ".uses.index").exists()


def killed_at(point, text, output, add=None):
    """Build in a forked process that is killed when a file is written, synced or renamed for the n-th time."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    torch.set_num_threads(1)
    left = point

    def counted(plain):
        def call(*given, **named):
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(*given, **named)

        return call

    os.fsync = counted(os.fsync)
    Path.rename, Path.replace = counted(Path.rename), counted(Path.replace)
    Path.mkdir, Path.unlink = counted(Path.mkdir), counted(Path.unlink)
    NewSegment._write = counted(NewSegment._write)
    try:
        for _ in index_events(ELMO, text, output, add=bool(add)):
            pass
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)


def killed_and_resumed(tmp_path, points):
    """Kill the same build at several points, one after the other, then let it finish; the same for an addition."""
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("\n".join(lines(50, 5)), encoding="utf-8")
    second.write_text("\n".join(lines(30, 6)), encoding="utf-8")
    wanted = Index.build(ELMO, first, tmp_path / "wanted")
    one = wanted.search(ELMO, ASKED, 50)
    wanted.add(ELMO, second)
    both = wanted.search(ELMO, ASKED, 50)
    for point in points:
        output = tmp_path / f"killed{point}"
        codes = [killed_at(point, first, output) for _ in range(3)]
        assert set(codes) <= {0, -signal.SIGKILL} or not codes.count(1) or output.exists(), codes
        if not output.exists():
            assert killed_at(10**9, first, output) == 0
        index = Index.open(output)
        assert index.search(ELMO, ASKED, 50) == one
        killed_at(point, second, output, add=True)
        assert Index.open(output).search(ELMO, ASKED, 50) in (one, both)  # usable all the time
        if len(Index.open(output).config.texts) < 2:
            index.add(ELMO, second)
        assert Index.open(output).search(ELMO, ASKED, 50) == both
        if (tmp_path / f".{output.name}.index").exists():  # killed after the last step: the same command cleans up
            Index.open(output).add(ELMO, second)
        assert not (tmp_path / f".{output.name}.index").exists()
        assert {path.name for path in output.iterdir()} == {path.name for path in (tmp_path / "wanted").iterdir()}


def test_a_run_that_is_killed_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(index_parts, "PART_WORDS", 60)
    killed_and_resumed(tmp_path, [8, 27, 48, 70])


def test_a_run_continues_with_its_finished_parts(text, tmp_path, monkeypatch):
    monkeypatch.setattr(index_parts, "PART_WORDS", 60)
    events = index_events(ELMO, text, tmp_path / "uses")
    assert [type(next(events)).__name__ for _ in range(3)] == ["Started", "Step", "Step"]
    with pytest.raises(OutputError, match="another process is working on it"):
        Index.build(ELMO, text, tmp_path / "uses")
    events.close()
    with pytest.raises(ConfigError, match=r"stored was 'float16' and is now 'int8'"):
        Index.build(ELMO, text, tmp_path / "uses", dtype="int8")
    found = list(index_events(ELMO, text, tmp_path / "uses"))
    assert isinstance(found[0], index_run.Started) and found[0].done_characters > 0
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "uses"}


def test_a_text_that_changes_while_it_is_read_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.setattr(index_parts, "PART_WORDS", 60)
    events = index_events(ELMO, text, tmp_path / "uses")
    next(events)
    text.write_text("Something else.\n" * 60, encoding="utf-8")
    with pytest.raises(TextError, match="changed while it was read"):
        list(events)
    assert not (tmp_path / "uses").exists()


@pytest.mark.parametrize("kind", ["flip", "cut", "grow", "remove"])
def test_a_damaged_index_is_refused(index, tmp_path, kind):
    pytest.importorskip("faiss")
    files = [path for path in index.folder.rglob("*") if path.is_file()]
    assert len(files) == 9
    for file in files:
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(index.folder, folder)
        path = folder / file.relative_to(index.folder)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 4
        if kind == "flip":
            path.write_bytes(content)
        elif kind == "cut":
            path.write_bytes(path.read_bytes()[:-1])
        elif kind == "grow":
            path.write_bytes(path.read_bytes() + b"x")
        else:
            path.unlink()
        if (kind, path.name) == ("grow", "config.json"):
            continue  # see the test of JSON files; white space is not damage
        with pytest.raises((DamagedFile, ConfigError, NotAModel), match="damaged"):
            Index.open(folder).search(ELMO, ASKED, 1000)
            Index.open(folder).search(ELMO, ASKED, 1000, same_word=True)


def test_damage_of_the_structure_for_approximate_search_is_noticed(text, tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(nearest_uses, "EXACT_USES", 50)
    index = Index.build(ELMO, text, tmp_path / "uses")
    exact = nearest_uses.nearest(index._segments[0], index._space.vector(ELMO, ["bank"], 0), 5)
    assert [use.cosine for use in index.search(ELMO, "[bank]", 5)] == pytest.approx(exact[1].tolist())
    (cells,) = (tmp_path / "uses").rglob("cells.faiss")
    content = bytearray(cells.read_bytes())
    content[-9] ^= 1
    cells.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"cells.faiss: is not the file that was saved"):
        Index.open(tmp_path / "uses").search(ELMO, "[bank]")


def test_without_faiss_all_uses_are_compared(text, tmp_path, monkeypatch, caplog):
    pytest.importorskip("faiss")
    monkeypatch.setattr(nearest_uses, "EXACT_USES", 50)
    with_faiss = Index.build(ELMO, text, tmp_path / "with")
    monkeypatch.setattr(nearest_uses, "installed", lambda: False)
    without = Index.build(ELMO, text, tmp_path / "without")
    assert with_faiss.config.texts[0].approximate and not without.config.texts[0].approximate
    caplog.set_level("INFO", logger="bilmo")
    assert shown(Index.open(tmp_path / "with").search(ELMO, ASKED)) == shown(without.search(ELMO, ASKED))
    assert r"pip install 'bilmo[search]'" in caplog.text


def test_another_model_start_or_language_is_refused(index, text):
    with pytest.raises(ConfigError, match="was made with another model"):
        index.search(Embedder(made(1), lang="en"), ASKED)
    with pytest.raises(ConfigError, match="start='settled'"):
        index.search(Embedder(made(0), lang="en", start="zero"), ASKED)
    with pytest.raises(ConfigError, match="was built with lang 'en'"):
        index.add(Embedder(made(0), lang="spaces"), text)
    with pytest.raises(ConfigError, match="cannot carry a state"):
        Index.build(Embedder(made(0), start="carry"), text, index.folder.with_name("new"))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("no brackets", "0 opening and 0 closing"),
        ("[two] [words]", "2 opening"),
        ("[two words]", "hold 2 tokens"),
        ("", "0 opening"),
        ("[ ]", "are empty"),
    ],
)
def test_a_text_without_one_marked_word_is_refused(index, asked, says):
    with pytest.raises(TextError, match=says):
        index.search(ELMO, asked)


def test_other_mistakes_are_refused(index, text, tmp_path, model):
    with pytest.raises(TextError, match="'zebra' is not used in"):
        index.search(ELMO, "a [zebra]", same_word=True)
    with pytest.raises(ConfigError, match="topn is 0"):
        index.search(ELMO, ASKED, 0)
    with pytest.raises(OutputError, match=r"already exists.*--add"):
        Index.build(ELMO, text, tmp_path / "uses")
    with pytest.raises(NotAModel, match="there is no such index"):
        Index.open(tmp_path / "nothing")
    for path in (model, text):
        with pytest.raises(NotAModel, match="is not an index"):
            Index.open(path)
    with pytest.raises(TextError, match="there is no such file"):
        Index.build(ELMO, tmp_path / "nothing", tmp_path / "new")
    with pytest.raises(TextError, match="only once"):
        Index.build(ELMO, "-", tmp_path / "new")
    with pytest.raises(ConfigError, match="dtype is 'float64'"):
        Index.build(ELMO, text, tmp_path / "new", dtype="float64")
    with pytest.raises(OutputError):
        Index.build(ELMO, tmp_path, tmp_path / "new")
    (tmp_path / "blank.txt").write_text("\n ... \n", encoding="utf-8")
    for refused in (
        lambda: Index.build(ELMO, tmp_path / "blank.txt", tmp_path / "new"),
        lambda: index.add(ELMO, tmp_path / "blank.txt"),
    ):
        with pytest.raises(TextError, match="no word in the text"):
            refused()
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "uses", "blank.txt", "model"}
    assert issubclass(NotAModel, BilmoError) and len(bilmo.Index.open(index.folder)) == len(index)


def test_int8_takes_half_the_space_and_finds_nearly_the_same(index, text, tmp_path):
    small = Index.build(ELMO, text, tmp_path / "small", dtype="int8")
    sizes = [(one.folder / "00000" / "vectors.bin").stat().st_size for one in (index, small)]
    assert sizes[0] == 2 * sizes[1]
    found, wanted = (one.search(ELMO, ASKED, 20) for one in (small, index))
    assert np.allclose([use.cosine for use in found], [use.cosine for use in wanted], atol=0.02)
