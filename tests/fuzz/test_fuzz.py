"""A few cases of most targets of the campaign, the saved cases, and the campaign's own machinery."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import strategies as st

from fuzz import campaign
from fuzz.all import TARGETS
from fuzz.campaign import Campaign, Row
from fuzz.target import SAME, Box, Failure, Target
from fuzz.worker import Found, Worker

TESTS = Path(__file__).parents[1]
SLOW = ("commands",)
"""Each case is a whole run of a command."""
LEFT_OUT = ("kills", "two runs at once", "full disk")
"""They take long, and have tests of their own: training/test_run.py, store/test_open_run.py, cli/test_full_disk.py."""


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in LEFT_OUT])
def test_a_few_cases_of_a_target(name, monkeypatch):
    monkeypatch.chdir(TESTS)
    monkeypatch.setattr(campaign, "save", lambda name, failure: "nowhere")
    number = 4 if name in SLOW else 25
    row = Campaign(seed=0).run(name, number)
    assert row.failures == {}
    assert row.cases == number


def test_no_saved_case_fails(monkeypatch):
    monkeypatch.chdir(TESTS)
    saved = sorted(campaign.REGRESSIONS.glob("*.json"))
    assert saved
    assert campaign.replay(saved) == []


class Planted(Target):
    """A reader that fails if two numbers of a list are large, and nowhere else."""

    name, share = "planted", 1

    def prepare(self, box):
        pass

    def cases(self):
        return st.lists(st.integers(0, 1000), max_size=20)

    def check(self, box, case):
        if sum(number > 500 for number in case) >= 2:
            raise Failure("silent difference: planted")
        return SAME


def test_a_failing_case_is_made_small(tmp_path):
    worker = Worker(Planted(), Box(tmp_path))
    worker.some(200, chosen=1, known=[])
    (failure,) = worker.failures.values()
    assert failure["case"] == [501, 501]
    assert worker.counts["failed"] > 0


def test_a_known_failure_does_not_end_the_search(tmp_path):
    first = Worker(Planted(), Box(tmp_path))
    first.some(200, chosen=1, known=[])
    second = Worker(Planted(), Box(tmp_path))
    second.some(200, chosen=1, known=list(first.failures))
    assert second.counts.total() == 200
    assert second.counts["failed"] > 1


def test_a_saved_case_is_tried_as_it_is(tmp_path):
    worker = Worker(Planted(), Box(tmp_path))
    worker.one([501], known=[])
    with pytest.raises(Found):
        worker.one([7, 501, 502], known=[])
    assert worker.counts == {SAME: 1, "failed": 1}


def test_files_outside_are_watched(tmp_path):
    box = Box(tmp_path)
    box.check_outside()
    (box.outside / "secret.txt").write_text("changed")
    with pytest.raises(Failure, match="outside"):
        box.check_outside()


GUARDED = """
import os, socket, subprocess, sys
from pathlib import Path
from fuzz.guard import GUARD, Trespass
folder = Path(sys.argv[1])
GUARD.start([folder / "in"])
GUARD.on = True
(folder / "in" / "new").write_text("allowed")
touch = ["touch", str(folder / "in" / "started")]
for what in (
    lambda: (folder / "new").write_text("not allowed"),
    lambda: os.system(" ".join(touch)),
    lambda: subprocess.run(touch),
    lambda: os.posix_spawn("/usr/bin/touch", touch, {}),
    lambda: os.execv("/usr/bin/touch", touch),
    lambda: socket.create_connection(("127.0.0.1", 9)),
    lambda: socket.create_server(("127.0.0.1", 0)),
):
    try:
        GUARD.trespass = None
        what()
        print("allowed")
    except Trespass as error:
        print(error)
"""


def test_the_guard_refuses_to_write_outside_to_start_programs_and_to_open_connections(tmp_path):
    (tmp_path / "in").mkdir()
    command = [sys.executable, "-c", GUARDED, str(tmp_path)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=True)
    first, *others = done.stdout.splitlines()
    assert first == f"open {tmp_path / 'new'}"
    events = ("os.system", "subprocess.Popen", "os.posix_spawn", "os.exec", "socket.connect", "socket.bind")
    assert len(others) == len(events)
    assert all(line.startswith(f"{event}(") for line, event in zip(others, events, strict=True)), others
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "new"]
    assert (tmp_path / "in" / "new").read_text() == "allowed"


def test_the_table_counts_every_target():
    one, two = Row(Counter(same=3, refused=1), commit="abc"), Row(Counter(other=2, failed=1), {"x y": {}}, commit="def")
    page = campaign.page({"one": one, "two": two}, "make fuzz CASES=7", left=["three"])
    assert "| one | 4 | 3 | 1 | 0 | 0 | 0 | abc |" in page
    assert "| **all** | **7** | 3 | 1 | 2 | **1** | 0 | |" in page
    assert "- two: x y" in page
    assert "still to be done: three." in page


def test_a_campaign_that_was_stopped_is_continued(tmp_path, monkeypatch):
    """Targets that are done are kept, those with failures are tried again; the page has all of them."""
    monkeypatch.setattr(campaign, "UNFINISHED", tmp_path / "unfinished.json")
    monkeypatch.setattr(campaign, "RESULT", tmp_path / "fuzz.md")
    plan = {"targets": ["one", "two", "three"], "cases": 9, "minutes": None}
    saved = campaign.Saved(plan, "make fuzz CASES=9")
    assert saved.read(None) == (None, {})
    rows = {"three": Row(Counter(same=3), commit="abc"), "two": Row(Counter(failed=3), {"x y": {"case": [1]}})}
    saved.write(7, rows)
    assert "SEED=7" in campaign.RESULT.read_text() and "still to be done: one." in campaign.RESULT.read_text()
    assert saved.read(None) == saved.read(7) == (7, {"three": rows["three"]})
    assert saved.read(8) == (8, {})
    assert campaign.Saved(plan | {"cases": 10}, "").read(None) == (None, {})
    saved.write(7, {"three": rows["three"], "one": Row(Counter(same=3)), "two": Row(Counter(same=3))})
    assert saved.read(None) == (None, {}) and "| **9** |" in campaign.RESULT.read_text()
