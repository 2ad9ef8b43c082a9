"""`--dictionary` from the first command to the last: used, kept with the model and the task, and part of every run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import bilmo
from bilmo.errors import ConfigError, DamagedFile
from bilmo.store import model_folder
from bilmo.tasks.folder import load
from program import Result, program
from small_runs import RECIPE, threads

from old_models import write_hdf5

LINES = ("玄德引兵来到涿郡。", "玄德曰：善。", "关羽大怒。", "张飞引军而去，玄德大喜。", "玄德引关羽来到门前。")
SPLIT = ["玄德", "引兵", "来到", "涿郡", "。"]
WHOLE = ["玄德引", "兵", "来到", "涿郡", "。"]
TRAIN = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml", "--lang", "zh", "--epochs", "1")


def write(folder: Path) -> None:
    """A text whose lines differ, a recipe, and two dictionaries."""
    rows = [f"{line}第{number}回。" for number in range(12) for line in LINES]
    (folder / "text.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    (folder / "names.txt").write_text("玄德 100 nr\n關羽\n", encoding="utf-8")
    (folder / "other.txt").write_text("来到涿郡\n", encoding="utf-8")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dictionary")
    write(folder)
    with threads(1):
        for model, dictionary in (("model", ("--dictionary", "names.txt")), ("plain", ())):
            done = program(folder, *(model if name == "model" else name for name in TRAIN), *dictionary)
            assert done.code == 0, done.err
    return folder


@pytest.fixture
def run(trained: Path) -> Callable[..., Result]:
    def run(*arguments: object) -> Result:
        with threads(1):
            return program(trained, *arguments)

    return run


def embedded(done: Result) -> list[str]:
    assert done.code == 0, done.err
    found: list[str] = json.loads(done.out)["tokens"]
    return found


def test_a_model_is_trained_and_used_with_its_dictionary(trained, run):
    vocab = (trained / "model" / "vocab.txt").read_text(encoding="utf-8").split("\n")
    assert "玄德" in vocab and not any(word.startswith("玄德") and word != "玄德" for word in vocab)
    assert (trained / "model" / "dictionary.txt").read_text(encoding="utf-8") == "玄德\n關羽\n"
    assert embedded(run("embed", "model", LINES[0])) == SPLIT
    assert embedded(run("embed", "plain", LINES[0])) == WHOLE
    assert bilmo.load(trained / "model").embed(LINES[0]).tokens == SPLIT
    assert "dictionary" in run("info", "model").out and "dictionary" not in run("info", "plain").out


def test_a_dictionary_for_a_model_that_has_none_and_in_place_of_its_own(trained, run):
    assert embedded(run("embed", "plain", LINES[0], "--dictionary", "names.txt")) == SPLIT
    assert embedded(run("embed", "model", LINES[0], "--dictionary", "other.txt")) == ["玄德引", "兵", "来到涿郡", "。"]
    elmo = bilmo.load(trained / "plain", dictionary=trained / "names.txt")
    assert elmo.embed(LINES[0]).tokens == SPLIT
    elmo.save(trained / "saved")
    assert bilmo.load(trained / "saved").embed(LINES[0]).tokens == SPLIT


def test_a_converted_model_keeps_its_dictionary_or_says_that_it_is_dropped(trained, run):
    assert run("convert", "model", "converted").code == 0
    assert embedded(run("embed", "converted", LINES[0])) == SPLIT
    write_hdf5(trained / "old")
    bilmo.load(trained / "old", dictionary=trained / "names.txt").save(trained / "named")
    assert "dropped: the dictionary" in run("convert", "named", "again", "--to", "allennlp").err


def test_offsets_hold_in_the_output(run):
    done = run("embed", "model", LINES[0])
    row = json.loads(done.out)
    assert [LINES[0][begin:end] for begin, end in row["offsets"]] == SPLIT


def test_a_damaged_dictionary_of_a_model_is_refused(trained, tmp_path):
    bundle = model_folder.read(trained / "model")
    model_folder.write(bundle, tmp_path / "copy")
    (tmp_path / "copy" / "dictionary.txt").write_text("玄德引\n", encoding="utf-8")
    with pytest.raises(DamagedFile, match=r"dictionary\.txt: is not the file that was saved"):
        bilmo.load(tmp_path / "copy")


def test_a_run_with_another_dictionary_is_refused(trained, run, tmp_path):
    done = run(*TRAIN, "--dictionary", "other.txt")
    assert done.code == 1
    assert "the dictionary: not the same as when the run was started" in done.err
    (trained / "same.txt").write_text("关羽\n玄德\n", encoding="utf-8")
    assert "the dictionary: not the same" in run(*TRAIN, "--dictionary", "same.txt").err  # another spelling
    (trained / "same.txt").write_text("關羽\n玄德\n", encoding="utf-8")
    assert "already complete" in run(*TRAIN, "--dictionary", "same.txt").out  # the same words in another file
    assert "the dictionary: not the same" in run(*TRAIN).err
    assert run("embed", "plain", "text.txt", "-o", "v.npy", "--dictionary", "names.txt").code == 0


def test_an_interrupted_embedding_is_not_resumed_with_another_dictionary(trained, run, monkeypatch):
    from bilmo.embed import job

    monkeypatch.setattr(job, "PART_TOKENS", 60)
    with monkeypatch.context() as patched:
        patched.setattr("bilmo.embed.output.write.write", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("embed", "plain", "text.txt", "-o", "w.npy", "--dictionary", "names.txt")
    done = run("embed", "plain", "text.txt", "-o", "w.npy", "--dictionary", "other.txt")
    assert done.code == 1 and "the dictionary: not the same as when the run was started" in done.err
    done = run("embed", "plain", "text.txt", "-o", "w.npy", "--dictionary", "names.txt")
    assert done.code == 0 and "resumed" in done.err


def test_evaluate_similar_and_finetune_use_it(trained, run):
    words = {
        name: json.loads(run("evaluate", *arguments, "text.txt", "--json").out)["words"]
        for name, arguments in {"kept": ("model",), "given": ("plain", "--dictionary", "names.txt")}.items()
    }
    elmo = bilmo.load(trained / "model")
    lines = (trained / "text.txt").read_text(encoding="utf-8").splitlines()
    assert words["kept"] == words["given"] == sum(len(elmo.embed(line).tokens) for line in lines)
    assert run("similar", "plain", "玄德", "--in", "text.txt", "--dictionary", "names.txt").code == 0
    done = run("finetune", "model", "text.txt", "-o", "tuned", "--recipe", "recipe.toml", "--lang", "zh")
    assert done.code == 0, done.err
    assert embedded(run("embed", "tuned", LINES[0])) == SPLIT


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("embed", "en", "x.", "--dictionary", "names.txt"), "split with lang 'en'; only lang 'zh'"),
        (("embed", "plain", "x.", "--dictionary", "names.txt", "--lang", "west"), "split with lang 'west'"),
        (("evaluate", "plain", "text.txt", "--dictionary", "names.txt", "--lang", "en"), "split with lang 'en'"),
        (("train", "en.txt", "-o", "new", "--dictionary", "names.txt"), "split with lang 'en'"),
        (("train", "text.txt", "-o", "new", "--dictionary", "names.txt", "--lang", "en"), "split with lang 'en'"),
        (("train", "text.txt", "-o", "new", "--dictionary", "missing.txt"), "missing.txt: there is no such file"),
        (("embed", "plain", "x.", "--dictionary", "bad.txt"), "bad.txt, line 2: found '关 羽', which is not one word"),
        (("train", "text.txt", "-o", "names.txt", "--dictionary", "names.txt"), "names.txt: is the input names.txt"),
        (("embed", "plain", "text.txt", "-o", "names.npy", "--dictionary", "names.npy"), "is the input names.npy"),
    ],
)
def test_a_dictionary_that_cannot_be_used_is_refused_and_nothing_is_written(trained, run, arguments, says):
    (trained / "en.txt").write_text("The cat sat on the mat, and it was glad. Then it left.\n" * 20, encoding="utf-8")
    (trained / "bad.txt").write_text("玄德\n关 羽\n", encoding="utf-8")
    (trained / "names.npy").write_text("玄德\n", encoding="utf-8")
    done = run(*arguments)
    assert done.code == 1
    assert says in done.err and "Traceback" not in done.err
    assert not (trained / "new").exists()


def test_a_loaded_model_keeps_its_own_dictionary_when_it_is_evaluated(trained):
    elmo = bilmo.load(trained / "model")
    with pytest.raises(ConfigError, match="a loaded model keeps its own dictionary"):
        bilmo.evaluate(elmo, trained / "text.txt", dictionary=trained / "names.txt")


def test_tasks_keep_the_dictionary_that_split_their_texts(trained, run):
    rows = [f"{'好' if '玄德' in line else '坏'}\t{line}" for line in LINES * 4]
    (trained / "labelled.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    fit = ("fit", "classify", "plain", "--train", "labelled.txt", "-o", "task", "--epochs", "1", "--lang", "zh")
    done = run(*fit, "--dictionary", "names.txt")
    assert done.code == 0, done.err
    saved = json.loads((trained / "task" / "config.json").read_text(encoding="utf-8"))
    assert saved["prepared"]["dictionary"] == ["玄德", "關羽"]
    task = load(trained / "task")
    assert task.prepared_.items([LINES[0]])[0].text == [SPLIT]
    assert run("predict", "task", "text.txt").code == 0
    done = run(*fit, "--dictionary", "other.txt")
    assert done.code == 1 and "the dictionary: not the same as when the run was started" in done.err


def test_tasks_take_the_dictionary_of_their_model(trained):
    elmo = bilmo.load(trained / "model")
    texts, labels = list(LINES) * 2, ["a", "b", "a", "b", "a"] * 2
    task = bilmo.Classifier(elmo, epochs=1).fit(texts, labels)
    assert task.prepared_.items([LINES[0]])[0].text == [SPLIT]
    tagger = bilmo.Tagger(elmo, epochs=1).fit([["玄德", "引"], ["关羽"]] * 4, [["N", "V"], ["N"]] * 4)
    (trained / "lines.txt").write_text(f"{LINES[0]}\n", encoding="utf-8")
    assert list(tagger.prepared_.read(trained / "lines.txt", "auto", tagger.settings_).examples) == [SPLIT]
    other = bilmo.Tagger(elmo, epochs=1, dictionary=trained / "other.txt")
    other.fit([["玄德", "引"], ["关羽"]] * 4, [["N", "V"], ["N"]] * 4)
    assert other.prepared_.dictionary == ("来到涿郡",)
