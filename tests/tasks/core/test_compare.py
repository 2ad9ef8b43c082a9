"""The inputs that a comparison chooses from."""

from __future__ import annotations

import pytest

from bilmo.errors import ConfigError
from bilmo.tasks.core.compare import Outcome, variant


@pytest.mark.parametrize(
    ("name", "words", "settings", "inputs"),
    [
        ("words", True, {"elmo_at": "none", "chars": 9}, "word vectors + 9 character filters"),
        ("static", False, {"elmo_at": "input", "mix": "0", "chars": 9}, "9 character filters + ELMo layer 0"),
        ("elmo", False, {"elmo_at": "input", "mix": "weighted", "chars": 0}, "ELMo (weighted)"),
        ("0", False, {"elmo_at": "input", "mix": "0", "chars": 0}, "ELMo layer 0"),
        (
            "input+output",
            True,
            {"elmo_at": "both", "mix": "weighted", "chars": 9},
            "word vectors + 9 character filters + ELMo (weighted) at input and output",
        ),
    ],
)
def test_what_a_variant_reads(name, words, settings, inputs):
    chosen = variant(name)
    assert chosen.words == words
    assert chosen.settings({"chars": 9, "hidden": 5}) == {"hidden": 5} | settings
    assert chosen.inputs(settings["chars"]) == inputs


def test_an_unknown_variant_is_refused():
    with pytest.raises(ConfigError, match="there is no variant 'all'; accepted: words, static, elmo"):
        variant("all")


def test_error_reduction():
    base, better, perfect = (Outcome("", "accuracy", values) for values in ([0.7, 0.9], [0.9, 0.9], [1.0, 1.0]))
    assert better.error_reduction(base) == pytest.approx(0.5)
    assert base.error_reduction(better) == pytest.approx(-1.0)
    assert better.error_reduction(perfect) == 0
