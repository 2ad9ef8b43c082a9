"""A bridge whose library is not installed says how to get it; a library that is not used is not imported."""

import json
import tomllib
from pathlib import Path

import pytest

from fresh import fresh

ROOT = Path(__file__).parents[1]
BRIDGES = {
    "sklearn": ("sklearn", "sklearn"),
    "gensim": ("gensim", "gensim"),
    "keras": ("keras", "keras"),
    "spacy": ("spacy", "spacy"),
    "transformers": ("transformers", "transformers"),
    "sentence_transformers": ("sentence_transformers", "sentence-transformers"),
    "flair": ("flair", "flair"),
    "onnx": ("onnx", "onnx"),
    "onnx.embedder": ("onnxruntime", "onnx"),
}
"""File of a bridge: the library that it needs, and the extra."""
USE = {
    "gensim": "from bilmo.plug.gensim import to_keyed_vectors as f; f('en', ['a'])",
    "onnx": "from bilmo.plug.onnx import export as f; f('en', 'never.onnx')",
    "onnx.embedder": "from bilmo.plug.onnx import load as f; f(sys.executable)",
}
OWN_ENVIRONMENT = {"flair"}
"""Extras that cannot be installed together with the others."""
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] == sys.argv[1]:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Hidden())
import bilmo
try:
    exec(sys.argv[2])
except bilmo.BilmoError as error:
    print(error)
"""


@pytest.mark.parametrize("bridge", BRIDGES)
def test_a_missing_library_is_reported(bridge):
    library, extra = BRIDGES[bridge]
    said = fresh(HIDE, library, USE.get(bridge, f"import bilmo.plug.{bridge}"))
    assert f"needs the package {library}" in said and f"pip install 'bilmo[{extra}]'" in said
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    together = extras["plug"][0].removeprefix("bilmo[").removesuffix("]").split(",")
    assert extra in extras and (extra in together) != (extra in OWN_ENVIRONMENT)


def test_bilmo_imports_no_other_library():
    code = "import bilmo, json, sys; bilmo.load('en').embed('a'); print(json.dumps(sorted(sys.modules)))"
    loaded = {name.split(".")[0] for name in json.loads(fresh(code))}
    others = {"sklearn", "gensim", "keras", "spacy", "transformers", "sentence_transformers", "onnx", "onnxruntime"}
    assert not loaded & (others | {"flair", "allennlp", "datasets", "pandas"})
