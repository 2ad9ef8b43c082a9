"""Parts of a long run: kept, resumed, refused if they belong to another run, written by one process at a time."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from bilmo.embed.output.parts import Facts, Parts, folder_of, open_parts
from bilmo.embed.output.table import EmbeddedText, VectorSpec
from bilmo.errors import ConfigError, DamagedFile, OutputError
from bilmo.store.atomic import new_file
from bilmo.store.run import Identity

SPEC = VectorSpec(width=3, layers=2)
RUN = Identity({"mix": "all"}, {"the text": "abc"})


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "v.h5"


def row(*tokens: str) -> EmbeddedText:
    return EmbeddedText(" ".join(tokens), list(tokens), np.full(SPEC.shape(len(tokens)), len(tokens), np.float32))


def add(parts: Parts, *rows: EmbeddedText, state: dict[str, np.ndarray] | None = None) -> None:
    facts = Facts(parts.sentences, len(rows), sum(len(one.tokens) for one in rows), "digest")
    with parts.new(facts) as part:
        for one in rows:
            part.add([one])
        part.state = state or {}


def stopped(target: Path, *rows: EmbeddedText, run: Identity | None = RUN) -> None:
    """A run that is stopped after one part per row."""
    with pytest.raises(KeyboardInterrupt), open_parts(target, SPEC, run) as parts:
        for one in rows:
            add(parts, one, state={"forward.0.0": np.arange(4, dtype=np.float32)})
        raise KeyboardInterrupt


def test_finished_parts_are_resumed_and_removed_when_they_are_joined(target):
    stopped(target, row("a", "\ud800\0"), row())
    with open_parts(target, SPEC, RUN) as parts:
        assert (len(parts.files), parts.sentences, parts.tokens) == (2, 2, 2)
        assert np.array_equal(parts.state()["forward.0.0"], np.arange(4, dtype=np.float32))
        add(parts, row("b"), row("c", "d", "e"))
        assert parts.state() == {}
        table = parts.table()
        assert (table.sentences, table.tokens, table.spec) == (4, 6, SPEC)
        for _ in range(2):
            found = list(table.read())
            assert [(r.text, r.tokens) for r in found] == [
                ("a \ud800\0", ["a", "\ud800\0"]),
                ("", []),
                ("b", ["b"]),
                ("c d e", ["c", "d", "e"]),
            ]
            assert [r.vectors.shape for r in found] == [(2, 2, 3), (2, 0, 3), (2, 1, 3), (2, 3, 3)]
            assert all((r.vectors == len(r.tokens)).all() for r in found)
        with parts.join(target) as path:
            path.write_text("all")
            path.with_name("tokens").write_text("beside")
    assert {path.name: path.read_text() for path in target.parent.iterdir()} == {"v.h5": "all", "tokens": "beside"}


def test_a_run_stopped_before_its_first_part_leaves_nothing(target):
    stopped(target)
    assert list(target.parent.iterdir()) == []


def test_a_part_that_was_not_finished_is_not_kept(target):
    stopped(target, row("a"))
    with (
        pytest.raises(KeyboardInterrupt),
        open_parts(target, SPEC, RUN) as parts,
        parts.new(Facts(1, 2, 2, "")) as part,
    ):
        part.add([row("b")])
        raise KeyboardInterrupt
    with open_parts(target, SPEC, RUN) as parts:
        assert parts.sentences == 1
        assert [one.text for one in parts.table().read()] == ["a"]


def test_open_parts_another_run_are_refused_and_stay(target):
    stopped(target, row("a"))
    other = Identity({"mix": "mean", "new": "x"}, {"the text": "abc"})
    with pytest.raises(ConfigError) as caught, open_parts(target, SPEC, other):
        pass
    assert "mix was 'all' and is now 'mean'" in str(caught.value)
    assert "new was not set and is now 'x'" in str(caught.value)
    assert "the text" not in str(caught.value)
    assert f"choose another name or remove {folder_of(target)}." in str(caught.value)
    with open_parts(target, SPEC, RUN) as parts:
        assert parts.sentences == 1


def test_a_run_that_cannot_be_repeated_keeps_nothing(target):
    stopped(target, row("a"), run=None)
    assert list(target.parent.iterdir()) == []


def test_a_run_that_cannot_be_repeated_does_not_destroy_the_parts_of_another(target):
    stopped(target, row("a"))
    with pytest.raises(OutputError, match=r"v\.h5: holds an unfinished run"), open_parts(target, SPEC, None):
        pytest.fail("there are parts")
    with open_parts(target, SPEC, RUN) as parts:
        assert parts.sentences == 1


def test_the_file_is_on_the_disk_before_the_parts_are_removed(target, monkeypatch):
    synced: list[tuple[Path, bool]] = []
    monkeypatch.setattr(
        "bilmo.embed.output.parts.sync",
        lambda path: synced.append((path, target.exists() and (folder_of(target) / "run.json").exists())),
    )
    with open_parts(target, SPEC, RUN) as parts:
        add(parts, row("a"))
        with parts.join(target) as path:
            path.write_text("all")
    assert synced == [(target.parent, True)]


def test_a_second_run_to_the_same_file_is_refused(target):
    with open_parts(target, SPEC, RUN) as parts:
        add(parts, row("a"))
        with (
            pytest.raises(OutputError, match=r"v\.h5: another process is working on it"),
            open_parts(target, SPEC, RUN),
        ):
            pass
        assert len(parts.files) == 1
        assert parts.files[0].exists()


def damaged(content: bytes, seed: int) -> bytes:
    """One bit flipped, bytes cut off, or bytes in front."""
    draw = random.Random(seed)
    at = draw.randrange(len(content))
    flipped = content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]
    return draw.choice([flipped, flipped, flipped, content[:at], content + b"x", b"x" + content, b""])


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("ordered", [True, False])
def test_a_damaged_part_is_computed_again_and_those_after_it_if_they_continue_it(target, number, ordered):
    rows = [row("a"), row("b", "\ud800"), row("c")]
    for seed in range(30):
        stopped(target, *rows)
        part = sorted(folder_of(target).glob("*.part"))[number]
        part.write_bytes(damaged(part.read_bytes(), seed))
        kept = [n for n in range(3) if (n < number if ordered else n != number)]
        with open_parts(target, SPEC, RUN, ordered=ordered) as parts:
            assert [facts.first for facts in parts.facts] == kept
            assert sorted(folder_of(target).glob("*.part")) == parts.files
            with parts.new(Facts(number, 1, 1, "digest")) as new:
                new.add([row("B")])
            found = [r.text for r in parts.table().read()]
            assert found == [rows[n].text if n != number else "B" for n in sorted({*kept, number})]
        shutil.rmtree(folder_of(target))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("ordered", [True, False])
def test_a_missing_part_is_computed_again_and_those_after_it_if_they_continue_it(target, number, ordered):
    stopped(target, row("a"), row("b"), row("c"))
    sorted(folder_of(target).glob("*.part"))[number].unlink()
    with open_parts(target, SPEC, RUN, ordered=ordered) as parts:
        assert len(parts.files) == (number if ordered else 2)


def test_a_part_of_another_place_is_not_used(target):
    stopped(target, row("a"), row("b"))
    first, second = sorted(folder_of(target).glob("*.part"))
    first.write_bytes(second.read_bytes())
    with open_parts(target, SPEC, RUN) as parts:
        assert [facts.first for facts in parts.facts] == [1]


def test_a_part_that_is_damaged_during_the_run_is_an_error_and_computed_again_by_the_next(target):
    says = r"00000\.part: was damaged during the run .*Run the same command again"
    with pytest.raises(DamagedFile, match=says), open_parts(target, SPEC, RUN) as parts:
        add(parts, row("a"), row("b"))
        content = parts.files[0].read_bytes()
        at = content.index(np.full(3, 1, np.float32).tobytes())
        parts.files[0].write_bytes(content[:at] + b"\xff" + content[at + 1 :])
        list(parts.table().read())
    with open_parts(target, SPEC, RUN) as parts:
        assert parts.facts == []


# Files beside the output


def join(target: Path, beside: Path, rows: int = 1) -> None:
    with open_parts(target, SPEC, RUN, [beside]) as parts:
        for _ in range(rows):
            add(parts, row("a"))
        with parts.join(target) as path:
            path.write_text("all")
            path.with_name(beside.name).write_text("beside")


def unchanged(path: Path) -> tuple[int, int, int, int]:
    """What stays the same of a file, folder or link that nobody has written to; reading may change the access time."""
    found = path.lstat()
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling link"])
def test_a_file_that_would_be_replaced_beside_the_output_is_refused_by_name(target, tmp_path, kind):
    beside = tmp_path / "v.tokens.jsonl"
    (tmp_path / "other").write_text("mine")
    if kind == "file":
        beside.write_text("mine")
    elif kind == "folder":
        beside.mkdir()
    else:
        beside.symlink_to("other" if kind == "link" else "nowhere")
    before = unchanged(beside)
    says = r"v\.tokens\.jsonl: already exists, and would be replaced, because it is written together with .*v\.h5\."
    with pytest.raises(OutputError, match=says):
        join(target, beside)
    assert unchanged(beside) == before and (tmp_path / "other").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "v.tokens.jsonl"]


def test_a_file_that_appears_beside_the_output_during_the_run_is_refused_and_the_parts_are_kept(target, tmp_path):
    beside = tmp_path / "v.tokens.jsonl"
    with (
        pytest.raises(OutputError, match=r"v\.tokens\.jsonl: already exists"),
        open_parts(target, SPEC, RUN, [beside]) as parts,
    ):
        add(parts, row("a"))
        with parts.join(target) as path:
            for name in (target.name, beside.name):
                path.with_name(name).write_text("new")
            beside.write_text("mine")
    assert beside.read_text() == "mine" and not target.exists()
    beside.unlink()
    join(target, beside, rows=0)
    assert (target.read_text(), beside.read_text()) == ("all", "beside")


def test_a_run_killed_between_its_files_recognizes_the_one_that_it_has_published(target, tmp_path, monkeypatch):
    beside, replace = tmp_path / "v.tokens.jsonl", Path.replace

    def killed(self, to):
        if to == target:
            raise KeyboardInterrupt
        return replace(self, to)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", killed)
        join(target, beside)
    assert beside.exists() and not target.exists()
    beside.write_text("the user's")
    with pytest.raises(OutputError, match=r"v\.tokens\.jsonl: already exists"):
        join(target, beside, rows=0)
    beside.write_text("beside")
    join(target, beside, rows=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.h5", "v.tokens.jsonl"]


def test_an_error_while_parts_are_joined_names_the_output(target):
    with pytest.raises(OutputError) as caught, open_parts(target, SPEC, RUN) as parts:
        add(parts, row("a"))
        with parts.join(target) as path, new_file(path):
            raise OSError(28, "No space left on device")
    says = f"{target}: cannot be written (No space left on device). Finished parts are kept; the same command resumes"
    assert str(caught.value).startswith(says)
    with open_parts(target, SPEC, RUN) as parts:
        assert len(parts.files) == 1


def test_parts_without_a_description_are_computed_again(target):
    stopped(target, row("a"))
    (folder_of(target) / "run.json").unlink()
    with open_parts(target, SPEC, RUN) as parts:
        assert parts.sentences == 0


def test_a_part_that_a_killed_process_left_half_written_is_removed(target):
    stopped(target, row("a"))
    (folder_of(target) / ".00001.part.bilmo-0a1b2c3d.partial").write_bytes(b"half")
    with open_parts(target, SPEC, RUN) as parts:
        assert parts.sentences == 1
        assert not (folder_of(target) / ".00001.part.bilmo-0a1b2c3d.partial").exists()


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("x")
    hopeless = {"nowhere/v.h5": "does not exist. Create it first", "file/v.h5": "file is not a folder"}
    if Path("/proc/self").is_dir():
        hopeless |= {"/proc/self/v.h5": "/proc/self cannot hold new files", "/proc/x/v.h5": "/proc/x does not exist"}
    for place, says in hopeless.items():
        with pytest.raises(OutputError, match=says), open_parts(tmp_path / place, SPEC, RUN):
            pass
