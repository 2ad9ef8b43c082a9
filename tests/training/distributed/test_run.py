"""One run on several processes: the same model as on one, killed and resumed on another number, refused together."""

import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bilmo.store import checkpoint
from bilmo.store.run import Identity, open_run
from bilmo.training.events import Progress
from program import SignalAfter, program
from small_runs import RECIPE, log, threads, write_text
from together import together

COMMAND = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml")
CONTEXTS = {
    "sentences": "batch = 20\nepochs = 1\nsoftmax = 'full'",  # some steps have fewer rows than four processes
    "stream": "window = 5\nbatch = 40\nepochs = 2\nsoftmax = 'sampled'\nsamples = 3\naverage = 0.9",
    "document": "window = 5\nbatch = 40\nepochs = 2",
}
STEPS = 50
CLOSE = 1e-4
CHECKPOINT = Path("model", "training", "checkpoint.safetensors")


def prepare(folder, context):
    write_text(folder, 200)
    recipe = RECIPE.replace("batch = 60\nepochs = 2\nevaluate_every = 12\n", "evaluate_every = 30\n")
    (folder / "recipe.toml").write_text(f'{recipe}context = "{context}"\n{CONTEXTS[context]}\n', encoding="utf-8")


@pytest.fixture(scope="module", params=CONTEXTS)
def alone(request, tmp_path_factory):
    """A complete run of one process, for each context."""
    folder = tmp_path_factory.mktemp(request.param)
    prepare(folder, request.param)
    with threads(1):
        done = program(folder, *COMMAND)
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def again(alone, tmp_path):
    """A folder with the same text and recipe."""
    for name in ("text.txt", "recipe.toml"):
        shutil.copy(alone / name, tmp_path)
    return tmp_path


def losses(folder):
    return [step["loss"] for step in log(folder / "model", "step")]


def assert_like(folder, alone):
    """The log of one process: each step once, with nearly its loss, and nearly the same perplexities."""
    steps, own = log(folder / "model", "step"), log(alone / "model", "step")
    assert [step["number"] for step in steps] == [step["number"] for step in own]
    assert [step["words"] for step in steps] == [step["words"] for step in own]
    assert losses(folder)[:STEPS] == pytest.approx(losses(alone)[:STEPS], abs=CLOSE)
    for found, expected in zip(log(folder / "model", "evaluation"), log(alone / "model", "evaluation"), strict=True):
        assert found["words"] == expected["words"]
        assert found["mean"] == pytest.approx(expected["mean"], rel=1e-3)


@pytest.mark.parametrize(
    ("alone", "world"), [("sentences", 4), ("stream", 2), ("stream", 4), ("document", 2)], indirect=["alone"]
)
def test_the_losses_do_not_depend_on_the_number_of_processes(alone, again, world):
    done = together(again, *COMMAND, world=world)
    assert [member.code for member in done] == [0] * world, done
    assert "training is complete" in done[0].out
    assert not any(member.out or member.err for member in done[1:])
    assert len(losses(again)) >= STEPS
    assert_like(again, alone)


@pytest.mark.parametrize("alone", ["stream"], indirect=True)
def test_a_run_that_was_killed_is_resumed_on_another_number_of_processes(alone, again):
    # The first process dies while it writes the second checkpoint; the others notice.
    write = SignalAfter("bilmo.store.tensors_file", "write_tensors", 2, signal.SIGKILL)
    first, second = together(again, *COMMAND, world=2, after={0: write})
    assert first.code == -signal.SIGKILL and second.code == 1
    assert second.err.startswith("bilmo: process 1 of 2") and "Run the same command again" in second.err
    assert "Traceback" not in second.err
    assert checkpoint.read(again / CHECKPOINT, Progress).progress.steps == 5
    # Another process dies in the middle of the next epoch.
    step = SignalAfter("bilmo.training.loop", "rate_at", 11, signal.SIGKILL)
    first, _, third = together(again, *COMMAND, world=3, after={2: step})
    assert third.code == -signal.SIGKILL and first.code == 1
    assert checkpoint.read(again / CHECKPOINT, Progress).progress.steps == 15
    with threads(1):
        assert program(again, *COMMAND).code == 0
    assert not list((again / "model").rglob("*.partial"))
    assert_like(again, alone)


@pytest.mark.parametrize("alone", ["sentences"], indirect=True)
def test_a_process_with_another_text_or_other_settings_is_named_and_nothing_is_written(alone, again):
    shutil.copy(again / "text.txt", again / "other.txt")
    with (again / "other.txt").open("a", encoding="utf-8") as file:
        file.write("one more line\n")
    found = together(again, *COMMAND, world=3, other={2: ("train", "other.txt", *COMMAND[2:], "--seed", 2)})
    assert [member.code for member in found] == [1, 1, 1]
    assert "process 2 of 3" in found[0].err and "train.seed is 2, and 1 there" in found[0].err
    assert "the text is" in found[0].err
    assert not found[1].err and not found[2].err
    assert not (again / "model").exists()
    missing = ("train", "missing.txt", *COMMAND[2:])
    found = together(again, *COMMAND, world=2, other={1: missing})
    assert [member.code for member in found] == [1, 1]
    assert found[1].err.startswith("bilmo: process 1 of 2") and "missing.txt: there is no such file" in found[1].err
    assert not found[0].err and not (again / "model").exists()


@pytest.mark.parametrize("alone", ["stream"], indirect=True)
def test_what_one_process_refuses_is_said_once(alone, again):
    identity = Identity({}, {})
    (again / "other").mkdir()
    with open_run(again / "model", again / "model" / "training", kind="training run", identity=identity, keeps=()):
        found = together(again, *COMMAND, world=2)
    assert [member.code for member in found] == [1, 1]
    assert (
        found[0].err == "bilmo: model: another process is working on it. Wait until it ends, or choose another name.\n"
    )
    assert not found[1].err
    shutil.rmtree(again / "model", ignore_errors=True)
    few = (again / "recipe.toml").read_text(encoding="utf-8").replace("batch = 40", "batch = 5")
    (again / "few.toml").write_text(few, encoding="utf-8")
    found = together(again, *COMMAND[:-1], "few.toml", world=2)
    assert "2 processes share 1 rows of the stream (batch 5 / window 5)" in found[0].err
    assert [member.code for member in found] == [1, 1] and not found[1].err


@pytest.mark.parametrize("alone", ["sentences"], indirect=True)
def test_a_full_disk_ends_the_run_and_leaves_its_last_checkpoint(alone, again):
    size = (alone / CHECKPOINT).stat().st_size
    after = SignalAfter("bilmo.training.run", "_save", 1, signal.SIGKILL)
    together(again, *COMMAND, world=2, after={0: after})
    before = (again / CHECKPOINT).read_bytes()
    found = together(again, *COMMAND, world=2, largest_file={0: size // 2})
    assert [member.code for member in found] == [1, 1]
    assert "checkpoint.safetensors: cannot be written" in found[0].err and "Traceback" not in found[0].err
    assert (again / CHECKPOINT).read_bytes() == before


SCRIPT = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import bilmo.training.loop
from bilmo.cli.app import main
from program import SignalAfter
from together import _signal

if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    _signal(SignalAfter("bilmo.training.loop", "rate_at", 13, signal.SIGKILL))
main()
"""


@pytest.mark.parametrize("alone", ["document"], indirect=True)
def test_torchrun_starts_a_killed_process_again_and_the_run_continues(alone, again):
    script = again / "script.py"
    script.write_text(textwrap.dedent(SCRIPT.format(tests=str(Path(__file__).parents[2]))), encoding="utf-8")
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = [*torchrun, "--max-restarts", "1", str(script), *COMMAND]
    done = subprocess.run(command, cwd=again, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "resumed" in done.stdout
    assert_like(again, alone)


PYTHON = """
import logging, os
import bilmo

logging.basicConfig(level=logging.INFO, format="%(message)s")
bilmo.train("text.txt", "model", recipe="recipe.toml", progress=True)
elmo = bilmo.finetune("model", "text.txt", "tuned", epochs=1, batch=40, window=5, evaluate_every=5, lang="spaces")
print(f"process {os.environ['RANK']}: {elmo.embed([['the', 'cat']])[0].shape}\\n", end="")
"""


@pytest.mark.parametrize("alone", ["document"], indirect=True)
def test_a_script_under_torchrun_trains_and_finetunes_and_each_process_has_the_model(alone, again):
    (again / "script.py").write_text(PYTHON, encoding="utf-8")
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = subprocess.run([*torchrun, "script.py"], cwd=again, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["process 0: (2, 16)", "process 1: (2, 16)"]
    assert done.stderr.count("training is complete") == 2  # one of each run
    assert_like(again, alone)
