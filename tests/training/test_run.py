"""A training run through the command line: made, killed, resumed, refused."""

import math
import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import bilmo
from bilmo.store import checkpoint
from bilmo.training import recipe as recipes
from bilmo.training.corpus import Corpus
from bilmo.training.evaluate import HeldOutLoss
from bilmo.training.events import Progress, Step
from bilmo.training.run import train
from program import SignalAfter, program, started, wait_until_stopped
from small_runs import log, recipe, same_bits, threads, weights, write_text

COMMAND = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml")
THREADS = {"sentences": 1, "stream": 2, "document": 1}
"""A run must be repeatable on one thread, and on two that work side by side."""


@pytest.fixture(scope="module", params=THREADS)
def undisturbed(request, tmp_path_factory):
    """A complete run, for each context."""
    folder = tmp_path_factory.mktemp(request.param)
    write_text(folder)
    with (folder / "recipe.toml").open("a", encoding="utf-8") as file:
        file.write(f'context = "{request.param}"\naverage = 0.9\nwindow = 5\n')
    with threads(THREADS[request.param]):
        done = program(folder, *COMMAND)
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def again(undisturbed, tmp_path):
    """A folder with the same text and recipe, and the number of threads to use."""
    for name in ("text.txt", "recipe.toml"):
        (tmp_path / name).write_bytes((undisturbed / name).read_bytes())
    return tmp_path, THREADS[recipes.read(str(tmp_path / "recipe.toml")).train.context]


def after(function: str, calls: int, number: signal.Signals) -> SignalAfter:
    return SignalAfter("bilmo.training.run", function, calls, number)


def test_the_model_of_a_run_loads_embeds_and_scores(undisturbed):
    elmo = bilmo.load(undisturbed / "model")
    assert elmo.layers([["the", "cat", "."]])[0].shape == (3, 3, 16)
    scores = elmo.log_probs([["the", "cat", "."], []])
    assert scores[0].shape == (2, 4) and scores[1].shape == (2, 1)
    assert all((score < 0).all() for score in scores)
    assert elmo.bundle.start is not None


def test_a_run_learns_something(undisturbed):
    evaluations = log(undisturbed / "model", "evaluation")
    assert evaluations[-1]["mean"] < 14  # eleven words and two boundaries; a model that knows nothing is at 14
    steps = [entry["loss"] for entry in log(undisturbed / "model", "step")]
    assert np.mean(steps[-5:]) < steps[0]


def test_a_killed_run_is_resumed_to_the_same_bits_and_repeats_no_more_than_it_may(undisturbed, again):
    folder, cores = again
    chosen = random.Random(0)
    saved = folder / "model" / "training" / "checkpoint.safetensors"
    for _ in range(2):
        lines = chosen.randint(4, 9)  # of the log, one per step; a checkpoint comes after 5
        process = started(folder, *COMMAND, threads=cores, after=after("log_event", lines, signal.SIGKILL))
        said = process.communicate()
        assert process.returncode == -signal.SIGKILL, said
        done = checkpoint.read(saved, Progress).progress.steps if saved.exists() else 0
        assert log(folder / "model", "step")[-1]["number"] - done <= 5
    with threads(cores):
        assert program(folder, *COMMAND).code == 0
    assert same_bits(weights(folder / "model"), weights(undisturbed / "model"))
    assert without_time(log(folder / "model")) == without_time(log(undisturbed / "model"))


def without_time(entries):
    return [{name: value for name, value in entry.items() if name != "seconds"} for entry in entries]


def test_a_run_that_is_stopped_at_any_event_is_resumed_to_the_same_bits(undisturbed, again, monkeypatch):
    folder, cores = again
    monkeypatch.chdir(folder)
    chosen = random.Random(2)
    with threads(cores):
        for _ in range(20):
            events = train([Path("text.txt")], Path("model"), recipes.read("recipe.toml"))
            for _, _event in zip(range(chosen.randint(1, 12)), events, strict=False):
                pass
            events.close()  # nothing is saved on the way out, just as when the power fails
        *_, last = train([Path("text.txt")], Path("model"), recipes.read("recipe.toml"))
    assert last.progress.finished
    assert same_bits(weights(folder / "model"), weights(undisturbed / "model"))
    assert without_time(log(folder / "model")) == without_time(log(undisturbed / "model"))


def test_a_finished_run_says_so_and_changes_nothing(undisturbed):
    before = {path: path.read_bytes() for path in (undisturbed / "model").rglob("*") if path.is_file()}
    done = program(undisturbed, *COMMAND)
    assert done.code == 0 and "already complete" in done.out
    assert {path: path.read_bytes() for path in before} == before


def test_a_damaged_corpus_is_refused_and_can_be_made_again(again):
    folder, number = again
    with threads(number):
        assert program(folder, *COMMAND).code == 0
        was = weights(folder / "model")
        work = folder / "model" / "training"
        (work / "checkpoint.safetensors").unlink()
        (work / "corpus" / "train.ids").write_bytes(b"")
        done = program(folder, *COMMAND)
        assert (
            done.code == 1
            and "train.ids: is not the file that was saved" in done.err
            and "Delete this folder" in done.err
        )
        shutil.rmtree(work / "corpus")
        assert program(folder, *COMMAND).code == 0
    assert same_bits(weights(folder / "model"), was)


def test_a_missing_text_is_named(undisturbed):
    (undisturbed / "text.txt").rename(undisturbed / "away.txt")
    try:
        done = program(undisturbed, *COMMAND)
    finally:
        (undisturbed / "away.txt").rename(undisturbed / "text.txt")
    assert done.code == 1 and "text.txt: there is no such file" in done.err


def test_changed_settings_are_refused_by_name(undisturbed):
    done = program(undisturbed, *COMMAND, "--seed", "7")
    assert done.code == 1 and "train.seed was 1 and is now 7" in done.err


def test_changed_text_is_refused(undisturbed):
    with (undisturbed / "text.txt").open("a", encoding="utf-8") as file:
        file.write("more\n")
    try:
        done = program(undisturbed, *COMMAND)
    finally:
        text = (undisturbed / "text.txt").read_bytes()
        (undisturbed / "text.txt").write_bytes(text.removesuffix(b"more\n"))
    assert done.code == 1 and "the text: not the same as when the run was started" in done.err


def test_a_text_of_the_same_size_is_not_the_same_text(undisturbed):
    text = (undisturbed / "text.txt").read_bytes()
    (undisturbed / "text.txt").write_bytes(text.swapcase())
    try:
        done = program(undisturbed, *COMMAND)
    finally:
        (undisturbed / "text.txt").write_bytes(text)
    assert done.code == 1 and "the text: not the same" in done.err


def test_the_same_text_may_have_another_path(undisturbed):
    done = program(undisturbed, "train", str(undisturbed / "text.txt"), *COMMAND[2:])
    assert done.code == 0 and "already complete" in done.out


def test_a_run_killed_at_any_moment_is_resumed_to_the_same_bits(undisturbed, again):
    folder, cores = again
    chosen = random.Random(3)
    for _ in range(5):  # a run that ends before it is killed is accepted
        process = started(folder, *COMMAND, threads=cores)
        time.sleep(chosen.uniform(0.5, 5))  # while it loads, reads, trains, evaluates, or saves
        process.kill()
        process.communicate()
    with threads(cores):
        assert program(folder, *COMMAND).code == 0
    assert same_bits(weights(folder / "model"), weights(undisturbed / "model"))
    assert not list((folder / "model").glob("**/*.partial"))


def test_ctrl_c_says_how_to_resume(tmp_path):
    write_text(tmp_path)
    process = started(tmp_path, *COMMAND, after=after("_save", 1, signal.SIGINT))
    _, said = process.communicate()
    assert process.returncode == 130
    assert "model: the same command resumes from the last checkpoint" in said and "Traceback" not in said


def test_ctrl_c_before_anything_was_saved_says_so(tmp_path):
    write_text(tmp_path)
    process = started(tmp_path, *COMMAND, after=after("log_event", 1, signal.SIGINT))
    _, said = process.communicate()
    assert process.returncode == 130
    assert "model: the same command starts training again, without reading the text again" in said


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("text.txt", b"\n \n", "every line is blank"),
        ("text.txt", b"caf\xe9\n", "text.txt, line 1: byte 4 (0xe9) is not UTF-8"),
        ("text.txt", "a cat .\n".encode("utf-16-le") * 300, "text.txt, line 1: contains zero bytes"),
        ("text.txt", b"a cat .\n" * 300 + b"a\0cat\n", "text.txt, line 301: contains zero bytes"),
        ("recipe.toml", b"# caf\xe9\n", "recipe recipe.toml: is not UTF-8"),
        ("text.txt", b"a b .\n" * 3000 + b"caf\xe9\n", "text.txt, line 3001: byte 4 (0xe9) is not UTF-8"),
        ("recipe.toml", b"[train]\nrat = 3\n", "train.rat"),
        (
            "recipe.toml",
            b"[text]\nheld_out = 0.1\n[network]\nfilters = [[100000000, 100000000]]\nmax_characters = 100000000\n",
            "GB of memory, but this machine has",
        ),
        ("recipe.toml", b"[train\n", "is not TOML"),
        ("recipe.toml", b"[network]\nwords = 'letters'\n", "accepted: chars, table"),
    ],
)
def test_a_mistake_is_reported_in_one_line(tmp_path, name, content, says):
    write_text(tmp_path)
    (tmp_path / name).write_bytes(content)
    done = program(tmp_path, *COMMAND)
    assert done.code == 1 and says in done.err
    assert not (tmp_path / "model").exists()


def test_a_folder_that_is_something_else_is_left_alone(tmp_path):
    write_text(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "precious.txt").write_text("mine", encoding="utf-8")
    done = program(tmp_path, *COMMAND)
    assert done.code == 1 and "already exists and is not a training run" in done.err
    assert [file.name for file in (tmp_path / "model").iterdir()] == ["precious.txt"]


@pytest.mark.parametrize("name", ["training/mine.txt", "training/corpus/mine.txt", "training/run.txt"])
def test_a_folder_of_training_text_is_not_a_run_and_is_left_alone(tmp_path, name):
    text = write_text(tmp_path)
    precious = tmp_path / "model" / name
    precious.parent.mkdir(parents=True)
    precious.write_bytes(text.read_bytes())
    says = {"text.txt": "already exists and is not a training run", "model/training": "model: contains the input"}
    for source, message in says.items():
        done = program(tmp_path, "train", source, *COMMAND[2:])
        assert done.code == 1 and message in done.err
        assert precious.read_bytes() == text.read_bytes()


def test_files_beside_an_empty_training_folder_are_left_alone(tmp_path):
    text = write_text(tmp_path)
    (tmp_path / "model" / "training").mkdir(parents=True)
    (tmp_path / "model" / "README.md").write_text("mine", encoding="utf-8")
    for content in (text.read_bytes(), b"\n"):
        text.write_bytes(content)
        done = program(tmp_path, *COMMAND)
        assert done.code == 1 and "already exists and is not a training run" in done.err
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"training", "README.md"}
    assert (tmp_path / "model" / "README.md").read_text(encoding="utf-8") == "mine"


def test_folders_of_a_run_that_never_started_are_removed(tmp_path):
    write_text(tmp_path).write_text("\n", encoding="utf-8")
    (tmp_path / "mine").mkdir()
    for place in ("new/model", "mine/new/model", "mine"):
        assert program(tmp_path, "train", "text.txt", "-o", place, "--recipe", "recipe.toml").code == 1
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "recipe.toml", "mine"}
    assert not list((tmp_path / "mine").iterdir())


def test_a_text_may_have_a_name_that_is_not_utf8(tmp_path):
    write_text(tmp_path).rename(tmp_path / os.fsdecode(b"caf\xe9.txt"))
    command = ("train", os.fsdecode(b"caf\xe9.txt"), *COMMAND[2:], "--epochs", "0.2")
    for says in ("training is complete", "already complete"):
        done = program(tmp_path, *command)
        assert done.code == 0 and says in done.out
    assert r"caf\udce9.txt" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_a_model_cannot_have_a_name_that_is_not_utf8(tmp_path):
    write_text(tmp_path)
    done = program(tmp_path, "train", "text.txt", "-o", os.fsdecode(b"mod\xe9le"), "--recipe", "recipe.toml")
    assert done.code == 1 and "the name is not UTF-8" in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "recipe.toml"}


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    write_text(tmp_path)
    assert program(tmp_path, *COMMAND, "--epochs", "0.2").code == 0
    other = ("train", "text.txt", "-o", "other", "--recipe", "recipe.toml", "--epochs", "0.2", "--width", "6")
    assert program(tmp_path, *other).code == 0
    where = Path("training", "checkpoint.safetensors")
    shutil.copy(tmp_path / "other" / where, tmp_path / "model" / where)
    done = program(tmp_path, *COMMAND, "--epochs", "0.2")
    assert done.code == 1 and "checkpoint.safetensors: does not belong to the network" in done.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"bilmo_run": 2, "kind": "task run"}', "model: contains a task run, not a training run"),
        (
            '{"recipe": {"text": {"lang": "spaces"}}, "texts": [["text.txt", "ab"]], "lang": "spaces", "base": null}',
            "model: was started by another version of bilmo (run format 1; this version resumes format 2). "
            "Finish it with that version. To start over, choose another name or remove model.",
        ),
        ("{", "its description is damaged. model/training/run.json: is not JSON"),
    ],
    ids=["of a task", "of the version before", "damaged"],
)
def test_a_run_that_is_not_a_training_run_of_this_version_is_refused_and_left_alone(tmp_path, content, says):
    write_text(tmp_path)
    run = tmp_path / "model" / "training" / "run.json"
    run.parent.mkdir(parents=True)
    run.write_text(content, encoding="utf-8")
    (run.parent / "checkpoint.safetensors").write_bytes(b"of the other run")
    (run.parent / ".bilmo-abcdefgh.partial").write_bytes(b"of the other run")
    before = sorted(run.parent.iterdir())
    done = program(tmp_path, *COMMAND)
    assert done.code == 1 and says in done.err
    assert sorted(path for path in run.parent.iterdir() if path.name != "bilmo.lock") == before


def test_characters_that_occur_only_in_held_out_text_get_no_row(tmp_path):
    text = write_text(tmp_path, words=("宝玉", "笑", "道", "：", "黛玉", "。"))
    rare = [chr(0x4E00 + 40 * n) for n in range(200)]
    with text.open("a", encoding="utf-8") as file:
        file.writelines(f"{character} 笑 道 。\n" for character in rare)
    assert program(tmp_path, *COMMAND, "--epochs", "0.1").code == 0
    corpus = Corpus(tmp_path / "model" / "training" / "corpus")
    trained = {word for word, count in zip(corpus.words, corpus.counts, strict=True) if count}
    rows = (tmp_path / "model" / "chars.txt").read_text(encoding="utf-8").split("\n")
    assert {c for c in rare if c in rows} == trained & set(rare) != set(rare)


def test_a_model_cannot_be_written_among_its_texts(tmp_path):
    write_text(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "text.txt").rename(tmp_path / "texts" / "text.txt")
    done = program(tmp_path, "train", "texts", "-o", "texts/model", "--recipe", "recipe.toml")
    assert done.code == 1 and "texts/model: is inside texts, whose files are all read as text" in done.err
    assert [path.name for path in (tmp_path / "texts").iterdir()] == ["text.txt"]


def test_changed_word_vectors_are_refused(tmp_path):
    write_text(tmp_path)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 0.1 0.2\ncat 0.3 0.4\n", encoding="utf-8")
    command = (*COMMAND, "--words", "vectors:vectors.txt", "--epochs", "0.2")
    assert program(tmp_path, *command).code == 0
    vectors.write_text("the 0.5 0.2\ncat 0.3 0.4\n", encoding="utf-8")
    done = program(tmp_path, *command)
    assert done.code == 1 and "the word vectors: not the same" in done.err


def test_a_recipe_can_remove_the_bound_on_cells(tmp_path):
    write_text(tmp_path)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(recipe.read_text("utf-8").replace("[network]", "[network]\ncell_clip = inf"), encoding="utf-8")
    assert program(tmp_path, *COMMAND, "--epochs", "0.2").code == 0
    elmo = bilmo.load(tmp_path / "model")
    assert elmo.config.cell.cell_clip == np.inf and np.isfinite(elmo.layers([["the", "cat"]])[0]).all()


def test_chinese_gets_unicode_characters(tmp_path):
    write_text(tmp_path, words=("宝玉", "笑", "道", "：", "黛玉", "。"))
    assert program(tmp_path, *COMMAND, "--epochs", "0.2").code == 0
    assert bilmo.load(tmp_path / "model").config.words.chars.kind == "unicode"


def test_minutes_and_epochs_cannot_be_combined(tmp_path):
    write_text(tmp_path)
    done = program(tmp_path, *COMMAND, "--minutes", "1", "--epochs", "1")
    assert done.code == 1 and "minutes and epochs are both given" in done.err
    with (tmp_path / "recipe.toml").open("a", encoding="utf-8") as file:
        file.write("minutes = 60\n")
    assert program(tmp_path, *COMMAND, "--epochs", "0.2").code == 0


def test_a_text_too_short_for_a_stream_of_many_rows_gets_fewer(tmp_path):
    write_text(tmp_path, lines=40)
    done = program(tmp_path, *COMMAND, "--context", "stream", "--epochs", "2")
    assert done.code == 0 and log(tmp_path / "model", "step")
    with (tmp_path / "recipe.toml").open("a", encoding="utf-8") as file:
        file.write("window = 5000\n")
    done = program(tmp_path, "train", "text.txt", "-o", "other", "--recipe", "recipe.toml", "--context", "stream")
    assert done.code == 1 and "a stream needs 5000 or more" in done.err
    assert not (tmp_path / "other").exists()


def test_a_second_run_on_the_same_folder_is_refused(tmp_path):
    write_text(tmp_path)
    first = started(tmp_path, *COMMAND, after=after("log_event", 1, signal.SIGSTOP))
    try:
        wait_until_stopped(first)
        second = program(tmp_path, *COMMAND)
        assert second.code == 1 and "another process is working on it" in second.err
        assert first.poll() is None
    finally:
        first.kill()
        first.communicate()


def test_a_run_that_never_had_a_finite_loss_is_an_error_and_not_complete(tmp_path, monkeypatch):
    write_text(tmp_path)
    never = HeldOutLoss({"forward": math.inf, "backward": math.nan}, known=math.inf, words=9)
    monkeypatch.setattr("bilmo.training.loop.evaluate", lambda *given, **named: never)
    for _ in range(2):
        done = program(tmp_path, *COMMAND, "--epochs", "0.3")
        assert done.code == 1 and "model: training has ended without a model" in done.err and "lower rate" in done.err
        assert not (tmp_path / "model" / "config.json").exists()


def test_the_highest_rate_gives_a_bad_model_and_no_traceback(tmp_path):
    write_text(tmp_path)
    with (tmp_path / "recipe.toml").open("a", encoding="utf-8") as file:
        file.write("warm_up = 0.0\nclip = 1e30\n")
    done = program(tmp_path, *COMMAND, "--epochs", "0.3", "--rate", "1000")
    assert done.code == 0 and "held-out perplexity inf" in done.out
    assert program(tmp_path, "evaluate", "model", "text.txt").code == 0
    refused = program(tmp_path, *COMMAND, "--rate", "1e308")
    assert refused.code == 1 and "rate is 1e+308; it must be from 0 to 1000" in refused.err


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt", "config.json"])
@pytest.mark.parametrize("epochs", ["0.7", "2"], ids=["complete", "interrupted"])
def test_a_run_whose_best_model_is_damaged_says_so(tmp_path, name, epochs):
    text = write_text(tmp_path)
    events = train([text], tmp_path / "model", recipe(tmp_path, epochs=float(epochs)))
    for event in events:
        if isinstance(event, Step) and event.number == 16:
            break
    events.close()
    path = tmp_path / "model" / name
    path.write_bytes(path.read_bytes()[:-9])
    command = (*COMMAND, "--epochs", epochs)
    done = program(tmp_path, *command)
    assert done.code == 1 and "model: the best model of this run is damaged" in done.err and name in done.err
    (tmp_path / "model" / "training" / "checkpoint.safetensors").unlink()  # as the error says
    assert program(tmp_path, *command).code == 0
    assert bilmo.load(tmp_path / "model").bundle.has_softmax


def test_a_corpus_of_another_text_is_refused(tmp_path):
    text = write_text(tmp_path)
    for name in ("model", "other"):
        events = train([text], tmp_path / name, recipe(tmp_path))
        for event in events:
            if isinstance(event, Step) and event.number == 7:
                break
        events.close()
        text.write_text(text.read_text("utf-8").replace("cat dog", "dog cat"), encoding="utf-8")
    write_text(tmp_path)
    work = tmp_path / "model" / "training"
    shutil.rmtree(work / "corpus")
    shutil.copytree(tmp_path / "other" / "training" / "corpus", work / "corpus")
    done = program(tmp_path, *COMMAND)
    assert done.code == 1 and "checkpoint.safetensors: belongs to another corpus than" in done.err
