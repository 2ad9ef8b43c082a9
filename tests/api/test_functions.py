"""`bilmo.evaluate`, `bilmo.convert` and `bilmo.models`, compared with the commands."""

import re

import numpy as np
import pytest

import bilmo
from bilmo.errors import CannotConvert, ConfigError, NotAModel, TextError
from bilmo.store.installed import installed
from program import program
from small_runs import threads, write_text


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    write_text(folder)
    with threads(1):
        bilmo.train(folder / "text.txt", folder / "model", recipe=str(folder / "recipe.toml"), epochs=0.5)
    return folder


def test_evaluate_gives_the_numbers_of_the_command(trained):
    found = bilmo.evaluate(trained / "model", trained / "text.txt", lang="spaces")
    done = program(trained, "evaluate", "model", "text.txt", "--lang", "spaces")
    shown = [tuple(map(float, numbers)) for numbers in re.findall(r"^\w+ +([\d.]+) +([\d.]+)$", done.out, re.M)]
    known = found.known
    assert shown == [(round(value, 2), round(known[name], 2)) for name, value in found.perplexity.items()]
    assert found.lang == "spaces" and f"{found.words:,} words in {found.sentences:,} sentences" in done.out
    loaded = bilmo.evaluate(bilmo.load(trained / "model"), [str(trained / "text.txt")], lang="spaces")
    assert loaded.perplexity == found.perplexity
    zero = bilmo.evaluate(trained / "model", trained / "text.txt", lang="spaces", start="zero")
    assert zero.perplexity != found.perplexity


def test_evaluate_explains_what_it_cannot_do(trained, tmp_path):
    with pytest.raises(ConfigError, match="start is 'zero', but the model was loaded with start='settled'"):
        bilmo.evaluate(bilmo.load(trained / "model"), trained / "text.txt", start="zero")
    (tmp_path / "blank.txt").write_text("\n\n")
    with pytest.raises(TextError, match=r"blank\.txt: no sentences to evaluate; every line is blank"):
        bilmo.evaluate(trained / "model", tmp_path / "blank.txt")


def test_convert_writes_the_files_of_the_command(trained):
    found = bilmo.convert(trained / "model", trained / "for-allennlp", to="allennlp")
    assert found.dropped and found.notes == []
    done = program(trained, "convert", "model", "by-command", "--to", "allennlp")
    assert [line.split(";")[0] for line in done.err.splitlines()] == [f"dropped: {what}" for what in found.dropped]
    for name in ("options.json", "weights.hdf5"):
        a, b = (trained / folder / name for folder in ("for-allennlp", "by-command"))
        assert a.stat().st_size == b.stat().st_size
    bilmo.convert(trained / "for-allennlp", trained / "back")
    vectors = (bilmo.load(trained / name).embed([["cat"]])[0] for name in ("for-allennlp", "back"))
    assert np.allclose(*vectors, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"to": "onnx"}, ConfigError, "to is 'onnx'; accepted: bilmo, allennlp"),
        ({"dtype": "float64"}, ConfigError, "dtype is 'float64'; accepted: float32, float16"),
        ({"to": "allennlp", "dtype": "float16"}, CannotConvert, "float16 works only with bilmo's own folder"),
        ({"old": "nothing"}, NotAModel, "nothing: there is no such file or folder"),
    ],
)
def test_convert_explains_what_it_cannot_do(trained, tmp_path, given, error, said):
    with pytest.raises(error, match=said):
        bilmo.convert(**({"old": trained / "model", "new": tmp_path / "new"} | given))
    assert not (tmp_path / "new").exists()


def test_models_are_listed():
    found = bilmo.models()
    assert {model.name: model.folder for model in found} == installed()
    for model in found:
        assert model.bytes > 1e6 and "words in" in model.trained_on and model.perplexity
        assert bilmo.load(model.name).bundle.card == bilmo.load(model.folder).bundle.card
