"""Parts of a long run: kept, gone on from, told from those of another run, and one run at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bilmo.embed.output.parts import Parts, folder_of, parts_of
from bilmo.embed.output.table import Form, Row
from bilmo.errors import ConfigError, OutputError

FORM = Form(width=3, layers=2)
RUN = {"mix": "all", "text": "abc"}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "v.h5"


def row(*tokens: str) -> Row:
    return Row(" ".join(tokens), list(tokens), np.full(FORM.shape(len(tokens)), len(tokens), np.float32))


def add(parts: Parts, *rows: Row, state: dict[str, np.ndarray] | None = None) -> None:
    with parts.new([len(one.tokens) for one in rows]) as part:
        for one in rows:
            part.add([one])
        part.state = state or {}


def stopped(target: Path, *rows: Row, run: dict[str, str] | None = RUN) -> None:
    """A run that ends early, after a part for each row."""
    with pytest.raises(KeyboardInterrupt), parts_of(target, FORM, run) as parts:
        for one in rows:
            add(parts, one, state={"forward.0.0": np.arange(4, dtype=np.float32)})
        raise KeyboardInterrupt


def test_finished_parts_are_gone_on_from_and_removed_at_the_end(target):
    stopped(target, row("a", "\ud800\0"), row())
    with parts_of(target, FORM, RUN) as parts:
        assert (len(parts.files), parts.sentences, parts.tokens) == (2, 2, 2)
        assert np.array_equal(parts.state()["forward.0.0"], np.arange(4, dtype=np.float32))
        add(parts, row("b"), row("c", "d", "e"))
        assert parts.state() == {}
        table = parts.table()
        assert (table.sentences, table.tokens, table.form) == (4, 6, FORM)
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
    assert list(target.parent.iterdir()) == []


def test_a_run_stopped_before_its_first_part_leaves_nothing(target):
    stopped(target)
    assert list(target.parent.iterdir()) == []


def test_a_part_that_was_not_finished_is_not_kept(target):
    stopped(target, row("a"))
    with pytest.raises(KeyboardInterrupt), parts_of(target, FORM, RUN) as parts, parts.new([1, 1]) as part:
        part.add([row("b")])
        raise KeyboardInterrupt
    with parts_of(target, FORM, RUN) as parts:
        assert parts.sentences == 1
        assert [one.text for one in parts.table().read()] == ["a"]


def test_parts_of_another_run_are_refused_and_stay(target):
    stopped(target, row("a"))
    other = {"mix": "mean", "text": "abc", "new": "x"}
    with pytest.raises(ConfigError) as caught, parts_of(target, FORM, other):
        pass
    assert "mix was all, is mean" in str(caught.value)
    assert "new was not set, is x" in str(caught.value)
    assert "text" not in str(caught.value)
    assert f"remove {folder_of(target)} to begin anew" in str(caught.value)
    with parts_of(target, FORM, RUN) as parts:
        assert parts.sentences == 1


def test_a_run_that_cannot_be_done_again_keeps_nothing_and_goes_on_from_nothing(target):
    stopped(target, row("a"), run=None)
    assert list(target.parent.iterdir()) == []
    stopped(target, row("a"))
    with parts_of(target, FORM, None) as parts:
        assert parts.sentences == 0
    assert list(target.parent.iterdir()) == []


def test_two_runs_to_one_file_are_told_apart(target):
    with parts_of(target, FORM, RUN) as parts:
        add(parts, row("a"))
        with (
            pytest.raises(OutputError, match=r"v\.h5: another run is writing this file now"),
            parts_of(target, FORM, RUN),
        ):
            pass
        assert len(parts.files) == 1
        assert parts.files[0].exists()


@pytest.mark.parametrize("damage", [lambda b: b[:-10], lambda b: b"", lambda b: b[:50]], ids=range(3))
def test_a_damaged_part_and_those_after_it_are_done_again(target, damage):
    stopped(target, row("a"), row("b"), row("c"))
    second = sorted(folder_of(target).glob("*.part"))[1]
    second.write_bytes(damage(second.read_bytes()))
    with parts_of(target, FORM, RUN) as parts:
        assert parts.sentences == 1
        add(parts, row("B"))
        assert [r.text for r in parts.table().read()] == ["a", "B"]


def test_a_folder_without_its_description_is_begun_anew(target):
    stopped(target, row("a"))
    (folder_of(target) / "run.json").write_text("{")
    with parts_of(target, FORM, RUN) as parts:
        assert parts.sentences == 0


def test_what_was_being_written_when_a_run_was_killed_is_removed(target):
    stopped(target, row("a"))
    (folder_of(target) / ".00001.part.xyz.partial").write_bytes(b"half")
    with parts_of(target, FORM, RUN) as parts:
        assert parts.sentences == 1
        assert not (folder_of(target) / ".00001.part.xyz.partial").exists()


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("x")
    for place, says in {"nowhere/v.h5": "does not exist. Make it first", "file/v.h5": "cannot be written"}.items():
        with pytest.raises(OutputError, match=says), parts_of(tmp_path / place, FORM, RUN):
            pass
