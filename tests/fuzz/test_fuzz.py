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
import sys
from pathlib import Path
from fuzz.guard import GUARD, Trespass
folder = Path(sys.argv[1])
GUARD.start([folder / "in"])
GUARD.on = True
(folder / "in" / "new").write_text("allowed")
try:
    (folder / "new").write_text("not allowed")
except Trespass as error:
    print(error)
try:
    __import__("os").system("true")
except Trespass as error:
    print(error)
"""


def test_the_guard_refuses_to_write_outside(tmp_path):
    (tmp_path / "in").mkdir()
    command = [sys.executable, "-c", GUARDED, str(tmp_path)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert said[0] == f"open {tmp_path / 'new'}"
    assert (tmp_path / "in" / "new").read_text() == "allowed"
    assert not (tmp_path / "new").exists()


def test_the_table_counts_every_target():
    rows = {"one": Row(Counter(same=3, refused=1)), "two": Row(Counter(other=2, failed=1), {"x y": {}})}
    page = campaign.page(rows, "make fuzz CASES=7")
    assert "| one | 4 | 3 | 1 | 0 | 0 | 0 |" in page
    assert "| **all** | **7** | 3 | 1 | 2 | **1** | 0 |" in page
    assert "- two: x y" in page
