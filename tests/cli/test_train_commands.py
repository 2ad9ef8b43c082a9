"""`bilmo train`, `finetune` and `evaluate` as a user runs them."""

import gzip
import math
from unittest.mock import patch

import numpy as np
import pytest

import bilmo
from bilmo.errors import BilmoError
from bilmo.training.loop import Loop
from program import program
from small_runs import threads, write_text

TRAIN = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml")


@pytest.fixture(autouse=True)
def one_thread():
    with threads(1):
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a text and a model trained on it, and what the command printed."""
    folder = tmp_path_factory.mktemp("trained")
    write_text(folder)
    with threads(1):
        done = program(folder, *TRAIN)
    assert done.code == 0, done.err
    return folder, done


def test_train_shows_the_facts_first_and_results_on_standard_output(trained):
    _, done = trained
    names = [line.split("  ")[0] for line in done.out.splitlines()]
    shown = "lang, text, held out, vocabulary, unknown words, parameters, memory, time left, run"
    assert names[:9] == shown.split(", ")
    assert done.out.splitlines()[-1].startswith("model: training is complete; 26 steps in ")
    assert done.err.startswith("reading the text\n") and done.err.count("held-out perplexity") == 3
    assert done.err.count("; known words ") == 3 and ", of known words " in done.out.splitlines()[-1]


def test_many_unknown_words_come_with_advice(trained, tmp_path):
    folder, done = trained
    assert "--vocab-size" not in done.out
    (tmp_path / "text.txt").write_bytes((folder / "text.txt").read_bytes())
    (tmp_path / "recipe.toml").write_bytes((folder / "recipe.toml").read_bytes())
    few = program(tmp_path, *TRAIN, "--vocab-size", "6")
    assert "of the held-out text; a larger vocabulary (--vocab-size, --min-count) reduces them" in few.out
    few = program(tmp_path, "finetune", "model", "text.txt", "-o", "new", "--recipe", "recipe.toml")
    assert "of the held-out text; a larger vocabulary (--add-words) reduces them" in few.out


def perplexities(shown):
    """What `bilmo evaluate` prints: perplexity of all words and of known words, by direction."""
    rows = [line.split() for line in shown.partition("perplexity")[2].splitlines()[1:]]
    return {name: [float(value) for value in values] for name, *values in rows}


def test_evaluate_agrees_with_the_scores_of_every_word(trained):
    folder, _ = trained
    done = program(folder, "evaluate", "model", "text.txt", "--lang", "spaces")
    sentences = [line.split() for line in (folder / "text.txt").read_text(encoding="utf-8").splitlines()]
    scores = bilmo.load(folder / "model").log_probs(sentences)
    means = np.concatenate(scores, axis=1).astype(np.float64).mean(axis=1)
    shown = perplexities(done.out)
    assert shown["forward"] == pytest.approx([math.exp(-means[0])] * 2, abs=0.006)
    assert shown["backward"] == pytest.approx([math.exp(-means[1])] * 2, abs=0.006)
    assert shown["mean"] == pytest.approx([math.exp(-means.mean())] * 2, abs=0.006)
    assert f"{sum(map(len, sentences)):,} words in {len(sentences)} sentences" in done.out
    with_strange = [*sentences, ["the", "platypus", "."]]
    (folder / "strange.txt").write_text("\n".join(map(" ".join, with_strange)), encoding="utf-8")
    done = program(folder, "evaluate", "model", "strange.txt", "--lang", "spaces")
    last = bilmo.load(folder / "model").log_probs(with_strange[-1:])[0].astype(np.float64)
    known = np.concatenate([*scores, np.stack([np.delete(last[0], 1), np.delete(last[1], 2)])], axis=1)
    shown = perplexities(done.out)
    assert shown["forward"][1] == pytest.approx(math.exp(-known[0].mean()), abs=0.006)
    assert shown["mean"][1] == pytest.approx(math.exp(-known.mean()), abs=0.006)
    assert done.err == ""


def test_evaluate_warns_if_many_words_are_unknown(trained):
    """As for a text in another language: such a perplexity looks very good."""
    folder, _ = trained
    (folder / "foreign.txt").write_text("她 坐 在 河边 .\n" * 5, encoding="utf-8")
    done = program(folder, "evaluate", "model", "foreign.txt", "--lang", "spaces")
    assert done.code == 0 and done.err.startswith("warning: 80% of the words are not in the vocabulary of the model.")
    every, known = perplexities(done.out)["mean"]
    assert known != every


def test_evaluate_counts_unknown_words(trained):
    folder, _ = trained
    (folder / "other.txt").write_text("the zebra sat\nthe cat\n", encoding="utf-8")
    done = program(folder, "evaluate", "model", "other.txt", "--lang", "spaces")
    assert "5 words in 2 sentences" in done.out and "1 (20.00%)" in done.out
    (folder / "other.txt").write_text("the zebra <UNK>\nthe cat\n", encoding="utf-8")
    assert "2 (40.00%)" in program(folder, "evaluate", "model", "other.txt", "--lang", "spaces").out


@pytest.mark.parametrize("start", ["zero", "carry"])
def test_evaluate_uses_the_start_that_is_asked_for(trained, start):
    folder, _ = trained
    settled, other = (program(folder, "evaluate", "model", "text.txt", "--start", s) for s in ("settled", start))
    assert other.code == 0 and other.out != settled.out


def test_text_can_come_through_a_pipe(trained, tmp_path):
    folder, done = trained
    write_text(tmp_path)
    (tmp_path / "recipe.toml").write_text((tmp_path / "recipe.toml").read_text("utf-8").replace('"spaces"', '"auto"'))
    text = (folder / "text.txt").read_bytes()
    piped = program(tmp_path, "train", "-", "-o", "model", "--recipe", "recipe.toml", stdin=text)
    assert piped.code == 0, piped.err
    line = next(line for line in done.out.splitlines() if line.startswith("text"))
    assert line in piped.out.splitlines()
    again = program(tmp_path, "evaluate", "model", "-", stdin=text)
    assert again.out == program(folder, "evaluate", "model", "text.txt").out
    other = program(tmp_path, "train", "-", "-o", "model", "--recipe", "recipe.toml", stdin=b"other text\n")
    assert other.code == 0 and "this run is already complete; standard input was not read" in other.out
    near = program(tmp_path, "similar", "model", "cat", "--in", "-", stdin=text)
    assert near.code == 0 and len(near.out.splitlines()) > 5


def test_a_resumed_run_says_that_it_does_not_read_standard_input(tmp_path):
    write_text(tmp_path, lines=40)
    text = (tmp_path / "text.txt").read_bytes()
    command = ("train", "-", "-o", "model", "--recipe", "recipe.toml", "--epochs", "0.5")
    with patch.object(Loop, "step", side_effect=BilmoError("stopped")):
        started = program(tmp_path, *command, stdin=text)
    assert started.code == 1 and "standard input" not in started.err
    resumed = program(tmp_path, *command, stdin=b"other text\n")
    assert resumed.code == 0
    note = "note: standard input is not read; the run continues with the text that it was started with\n"
    assert resumed.err.count(note) == 1
    facts = [line for line in started.out.splitlines() if line.startswith("text")]
    assert facts and facts[0] in resumed.out.splitlines()


def test_a_folder_of_files_packed_or_not_is_one_text(trained, tmp_path):
    folder, done = trained
    write_text(tmp_path)
    lines = (folder / "text.txt").read_bytes().splitlines(keepends=True)
    (tmp_path / "texts" / "more").mkdir(parents=True)
    (tmp_path / "texts" / "a.txt").write_bytes(b"".join(lines[:50]))
    with gzip.open(tmp_path / "texts" / "more" / "b.txt.gz", "wb") as file:
        file.write(b"".join(lines[50:]))
    both = program(tmp_path, "train", "texts", "-o", "model", "--recipe", "recipe.toml", "--epochs", "0.1")
    line = next(line for line in done.out.splitlines() if line.startswith("text"))
    assert both.code == 0 and line in both.out.splitlines()
    assert "| text | a.txt, b.txt.gz |" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["train", "finetune", "evaluate"])
def test_bytes_that_are_not_utf8_are_reported_with_file_and_line(trained, tmp_path, command):
    folder, _ = trained
    write_text(tmp_path)
    (tmp_path / "bad.txt").write_bytes(b"good line .\n" * 2 + b"a caf\xe9\n")
    model = str(folder / "model")
    arguments = {"train": [], "finetune": [model], "evaluate": [model]}[command]
    more = [] if command == "evaluate" else ["-o", "new", "--recipe", "recipe.toml"]
    done = program(tmp_path, command, *arguments, "text.txt", "bad.txt", *more)
    assert done.code == 1 and "bad.txt, line 3: byte 6 (0xe9) is not UTF-8" in done.err
    assert not (tmp_path / "new").exists()


def test_finetune_reports_the_perplexity_before_and_after(trained, tmp_path):
    folder, _ = trained
    write_text(tmp_path, words=("the", "cat", "gnu", "gnu"))
    model = str(folder / "model")
    done = program(tmp_path, "finetune", model, "text.txt", "-o", "new", "--recipe", "recipe.toml", "--add-words", "1")
    assert done.code == 0, done.err
    assert "vocabulary     15 words; the text has 6 distinct ones" in done.out  # the model's 14 and one more
    before, *after = [line for line in done.err.splitlines() if "held-out perplexity" in line]
    assert before.split()[1] == "0" and before.endswith("best so far") and after[-1].endswith("best so far")
    assert "gnu" in (tmp_path / "new" / "vocab.txt").read_text(encoding="utf-8").split("\n")


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("evaluate", "nowhere", "text.txt"), "nowhere: there is no such file or folder"),
        (("evaluate", "MODEL", "nowhere.txt"), "nowhere.txt: there is no such file"),
        (("evaluate", "MODEL", "blank.txt"), "no sentences to evaluate"),
        (("evaluate", "MODEL", "text.txt", "--lang", "klingon"), "lang is 'klingon'"),
        (("finetune", "nowhere", "text.txt", "-o", "new"), "nowhere: there is no such file or folder"),
        (("finetune", "MODEL", "text.txt", "-o", "MODEL"), "is the folder of the original model"),
        (("similar", "MODEL", " "), "a word is empty"),
        (("train", "nowhere.txt", "-o", "new"), "nowhere.txt: there is no such file"),
        (("train", "text.txt", "-o", "new", "--recipe", "huge"), "there is no recipe 'huge'"),
        (("train", "text.txt", "-o", "new", "--cell", "transformer"), "network.cell"),
        (("train", "text.txt", "-o", "new", "--lang", "klingon"), "lang is 'klingon'"),
        (
            ("train", "text.txt", "-o", "new", "--recipe", "recipe.toml", "--min-count", "100000"),
            "no word of the text occurs that often",
        ),
        (
            ("train", "text.txt", "-o", "new", "--recipe", "recipe.toml", "--width", "1000000", "--cells", "1000000"),
            "GB of memory, but this machine has",
        ),
        (("train", "text.txt", "-o", "new", "--table-width", "20"), "which has no table"),
        (("train", "text.txt", "-o", "new", "--words", "chars+chars"), "words is 'chars+chars'"),
        (("train", "text.txt", "-o", "new", "--words", "vectors:"), "words is 'vectors:'"),
        (("train", "text.txt", "-o", "new", "--epochs", "inf"), "above 0 and finite"),
        (("train", "blank.txt", "-o", "new", "--layers", "101"), "recipe novel: layers is 101"),
        (("train", "blank.txt", "-o", "new", "--words", "vectors:no.txt"), "no.txt: there is no such file"),
    ],
)
def test_a_mistake_is_reported_and_nothing_is_written(trained, tmp_path, arguments, says):
    folder, _ = trained
    write_text(tmp_path)
    (tmp_path / "blank.txt").write_text("\n\n", encoding="utf-8")
    done = program(tmp_path, *(str(folder / "model") if word == "MODEL" else word for word in arguments))
    assert done.code == 1 and says in done.err
    assert not (tmp_path / "new").exists()


def test_a_run_that_failed_at_the_start_can_be_repeated_with_corrected_settings(tmp_path):
    write_text(tmp_path)
    assert program(tmp_path, *TRAIN, "--words", "vectors:nowhere.txt").code == 1
    assert program(tmp_path, *TRAIN, "--epochs", "0.1").code == 0
