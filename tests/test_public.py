"""The public names, and the examples in docstrings."""

import doctest
import subprocess
import sys
from importlib import import_module

import pytest

import bilmo

NAMES = ["BiLM", "BiLMConfig", "BilmoError", "Classifier", "Embedder", "Layers", "Mix", "Tagger", "load"]


def test_the_public_names():
    assert bilmo.__all__ == NAMES
    assert set(NAMES) <= set(dir(bilmo))
    assert all(getattr(bilmo, name) is not None for name in NAMES)


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
