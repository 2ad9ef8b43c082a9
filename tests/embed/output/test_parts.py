"""Parts of a long run: kept, resumed, refused if they belong to another run, written by one process at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bilmo.embed.output.parts import Parts, folder_of, open_parts
from bilmo.embed.output.table import EmbeddedText, VectorSpec
from bilmo.errors import ConfigError, OutputError
from bilmo.store.run import Identity

SPEC = VectorSpec(width=3, layers=2)
RUN = Identity({"mix": "all"}, {"the text": "abc"})


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "v.h5"


def row(*tokens: str) -> EmbeddedText:
    return EmbeddedText(" ".join(tokens), list(tokens), np.full(SPEC.shape(len(tokens)), len(tokens), np.float32))


def add(parts: Parts, *rows: EmbeddedText, state: dict[str, np.ndarray] | None = None) -> None:
    with parts.new([len(one.tokens) for one in rows]) as part:
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
    with pytest.raises(KeyboardInterrupt), open_parts(target, SPEC, RUN) as parts, parts.new([1, 1]) as part:
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


@pytest.mark.parametrize("damage", [lambda b: b[:-10], lambda b: b"", lambda b: b[:50]], ids=range(3))
def test_a_damaged_part_and_those_after_it_are_computed_again(target, damage):
    stopped(target, row("a"), row("b"), row("c"))
    second = sorted(folder_of(target).glob("*.part"))[1]
    second.write_bytes(damage(second.read_bytes()))
    with open_parts(target, SPEC, RUN) as parts:
        assert parts.sentences == 1
        add(parts, row("B"))
        assert [r.text for r in parts.table().read()] == ["a", "B"]


def test_parts_without_a_description_are_computed_again(target):
    stopped(target, row("a"))
    (folder_of(target) / "run.json").unlink()
    with open_parts(target, SPEC, RUN) as parts:
        assert parts.sentences == 0


def test_a_part_that_a_killed_process_left_half_written_is_removed(target):
    stopped(target, row("a"))
    (folder_of(target) / ".00001.part.xyz.partial").write_bytes(b"half")
    with open_parts(target, SPEC, RUN) as parts:
        assert parts.sentences == 1
        assert not (folder_of(target) / ".00001.part.xyz.partial").exists()


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("x")
    hopeless = {"nowhere/v.h5": "does not exist. Create it first", "file/v.h5": "file is not a folder"}
    if Path("/proc/self").is_dir():
        hopeless |= {"/proc/self/v.h5": "/proc/self cannot hold new files", "/proc/x/v.h5": "/proc/x does not exist"}
    for place, says in hopeless.items():
        with pytest.raises(OutputError, match=says), open_parts(tmp_path / place, SPEC, RUN):
            pass
