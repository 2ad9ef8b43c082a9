"""The public names, and the examples in docstrings."""

import ast
import doctest
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import bilmo
from program import program
from small_runs import write_text

from task_data import made

NAMES = (
    "BiLM BiLMConfig BilmoError Classifier Coreference Disambiguator Embedder Entailment Index Layers Mix Reader "
    "Relations RoleLabeler Senses Summariser Tagger Translator convert embed_files evaluate finetune get load models "
    "train word_cache"
).split()
ESTIMATOR = {"answers", "confidence", "events", "fitted_network", "restore", "run", "store_layers", "training"}
INTERNAL = {
    "Classifier": ESTIMATOR,
    "Coreference": ESTIMATOR,
    "Entailment": ESTIMATOR,
    "Reader": ESTIMATOR,
    "Relations": ESTIMATOR,
    "RoleLabeler": ESTIMATOR,
    "Summariser": ESTIMATOR,
    "Tagger": ESTIMATOR,
    "Translator": ESTIMATOR,
    "Disambiguator": {"choose", "restore", "use"},
    "Embedder": {"carried", "set_carried", "embed_rows", "sentences"},
    "Index": {"search_at", "some_words", "uses_of"},
    "BiLM": {"reset_parameters", "prepared", "layers"},
}
"""Methods that only bilmo itself uses."""
ROOT = Path(__file__).parents[1]
USE = ROOT / "tests" / "public_use.py"
REFERENCE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def test_the_public_names():
    assert bilmo.__all__ == NAMES
    assert dir(bilmo) == sorted([*NAMES, "__version__"])
    assert all(getattr(bilmo, name) is not None for name in NAMES)


def test_a_public_function_stays_one_when_its_room_is_imported():
    for name in ("training.run", "api.train", "api.models", "store.installed"):
        import_module(f"bilmo.{name}")
    assert callable(bilmo.train) and callable(bilmo.models)


def test_the_api_reference_has_every_public_name_and_nothing_that_does_not_exist():
    pages = re.findall(r"^::: ([\w.]+)$", REFERENCE, re.MULTILINE)
    for page in pages:
        module, _, name = page.rpartition(".")
        assert module == "bilmo" or hasattr(import_module(module), name), page
    for name in NAMES:
        thing = getattr(bilmo, name)
        home = f"{thing.__module__}.{name}"
        assert home in pages or thing.__module__ in pages, home


@pytest.mark.parametrize("name", NAMES)
def test_the_api_reference_lists_every_public_method(name):
    thing = getattr(bilmo, name)
    home = re.escape(f"::: {thing.__module__}.{name}")
    listed = re.search(rf"^{home}\n    options:\n(.+?)\n\n", REFERENCE, re.MULTILINE | re.DOTALL)
    if isinstance(thing, type) and listed is not None:
        shown = set(re.findall(r"\w+", listed[1]))
        kinds = [kind for kind in thing.__mro__ if kind.__module__.startswith("bilmo.")]
        defined = {method: value for kind in kinds for method, value in vars(kind).items() if method[0] != "_"}
        own = {method for method, value in defined.items() if callable(value) and not isinstance(value, type)}
        assert own - shown <= INTERNAL.get(name, set()), "public methods that the reference does not show"
        assert all(hasattr(thing, method) for method in shown - {"members", "inherited_members"})


def test_a_typed_program_uses_every_public_name_and_method(tmp_path):
    """mypy checks the same program in strict mode, as part of `make check`."""
    source = USE.read_text(encoding="utf-8")
    used = {ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    assert {f"bilmo.{name}" for name in NAMES} <= used
    pages = re.search(r"^::: bilmo.embed.embedder.Embedder\n    options:\n(.+?)\n\n", REFERENCE, re.M | re.S)
    methods = set(re.findall(r"\w+", pages[1])) - {"members", "inherited_members", "__contains__", "__getitem__"}
    assert {f"elmo.{name}" for name in methods} <= used and '"cat" in elmo' in source and 'elmo["cat"]' in source
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"] and "tests" in settings["files"]
    assert not any(USE.stem in override["module"] for override in settings["overrides"])
    write_text(tmp_path)
    trained = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml", "--epochs", "0.2")
    assert program(tmp_path, *trained).code == 0
    done = subprocess.run([sys.executable, str(USE)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("thing", "shown"),
    [
        ("elmo", "Embedder(layout='made for a test', layers=2, vector_width=16, words=None, start='settled'"),
        ("elmo.module(tune=True)", "ElmoModule(\n  output_width=16, mixes=1, tune=True\n"),
        ("elmo.module().mixes[0]", "Mix(\n  layers=2, width=8, directions=2, how='weighted'\n"),
        ("bilmo.Mix(layers=1, width=4, how=0, word=True)", "Mix(\n  layers=1, width=4, directions=2, how=0, word=True"),
        ("bilmo.Classifier(elmo, epochs=3)", "Classifier(elmo=Embedder(layout='made for a test', "),
        ("bilmo.Entailment(vectors='scratch')", "Entailment(vectors='scratch')"),
        ("bilmo.Relations(vectors='scratch')", "Relations(vectors='scratch')"),
        ("bilmo.Tagger(vectors='glove.txt', head='crf')", "Tagger(vectors='glove.txt', head='crf')"),
        ("bilmo.BiLM(elmo.config).stacks['forward'][0]", "Cell(lstm, inputs=8, cells=12, width=8)"),
    ],
)
def test_a_repr_says_what_the_thing_is(thing, shown):
    assert repr(eval(thing, {"bilmo": bilmo, "elmo": bilmo.Embedder(made(0))})).startswith(shown)


def test_another_name_is_an_error_that_lists_the_public_ones():
    with pytest.raises(AttributeError, match="no attribute 'elmo'; it has BiLM, BiLMConfig"):
        bilmo.elmo  # noqa: B018


def test_importing_the_package_does_not_import_torch():
    code = "import sys, bilmo; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", ["bilmo", "bilmo.text.split", "bilmo.formats.weight_map"])
def test_examples_in_docstrings_are_true(name):
    result = doctest.testmod(import_module(name))
    assert result.attempted and not result.failed
