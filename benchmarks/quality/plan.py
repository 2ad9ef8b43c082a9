"""Which networks are trained for which table and figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bilmo.tasks.answer.task import ANSWER_TASK
from bilmo.tasks.classify.task import CLASSIFY
from bilmo.tasks.core.spec import AnyTask
from bilmo.tasks.coref.task import COREF
from bilmo.tasks.entail.task import ENTAIL
from bilmo.tasks.relate.task import RELATE
from bilmo.tasks.roles.task import ROLES
from bilmo.tasks.tag.task import TAG

CHARS = 128
"""Filters of the character CNN: as many as in the paper's baseline for entities."""
NARROW = {"dropout": 0.2}
"""For the narrow input of `words`: dropping half of 50 numbers would make the baseline worse than it is."""


@dataclass(frozen=True)
class Measured:
    """A data set with the task and the settings that it is measured with, the same for all variants."""

    task: AnyTask
    settings: dict[str, Any] = field(default_factory=dict)
    goal: float | None = None
    """The error reduction to reach: the paper's over its baseline. The one for relations is our own."""


DATA_SETS = {
    "squad": Measured(ANSWER_TASK, {"patience": 3}, 0.249),
    "sick": Measured(ENTAIL, {}, 0.058),
    "roles": Measured(ROLES, {"patience": 3}, 0.172),
    "coref": Measured(COREF, {}, 0.098),
    "wikigold": Measured(TAG, {"patience": 8}, 0.21),
    "wnut17": Measured(TAG, {"patience": 8, "batch": 64, "rate": 0.002}, 0.21),
    "sst5": Measured(CLASSIFY, {"head": "mean"}, 0.068),
    "relations": Measured(RELATE, {}, 0.10),
    "trec": Measured(CLASSIFY, {"head": "bilstm"}),
    "ud_english_ewt": Measured(TAG, {"patience": 3, "batch": 64, "rate": 0.002}),
    "layers": Measured(TAG, {"head": "linear", "dropout": 0.0, "patience": 5}),
}


@dataclass(frozen=True)
class Fit:
    """One network to train."""

    data: str
    variant: str
    seed: int
    share: float = 1.0
    """Share of the training examples."""
    l2: float | None = None
    """The penalty on the weights of the mix; None is the default."""

    def __str__(self) -> str:
        share = f", {self.share:.0%} of the examples" if self.share < 1 else ""
        penalty = f", l2 {self.l2:g}" if self.l2 is not None else ""
        return f"{self.data}, {self.variant}{share}{penalty}, seed {self.seed}"


TABLE_1 = ("words", "static", "both")
TABLE_2 = (("top", None), ("both", 1.0), ("both", None))
TABLE_3 = ("both", "output", "input+output")
LAYERS = ("0", "1", "2")
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
COMPARED = ("squad", "sick", "roles")
"""The tasks of tables 2 and 3, as in the paper."""
CURVES = ("roles", "sick")
"""The tasks of figure 1, as in the paper."""

PARTS = {
    "table1": [
        Fit(data, variant, seed) for data in DATA_SETS if data != "layers" for variant in TABLE_1 for seed in (1, 2, 3)
    ],
    "table2": [Fit(data, name, seed, l2=l2) for data in COMPARED for name, l2 in TABLE_2 for seed in (1, 2)],
    "table3": [Fit(data, variant, seed) for data in COMPARED for variant in TABLE_3 for seed in (1, 2)],
    "figure1": [
        Fit(data, variant, seed, share)
        for data in CURVES
        for variant in ("words", "both")
        for share in SHARES
        for seed in (1, 2)
    ],
    "layers": [Fit("layers", layer, seed) for layer in LAYERS for seed in (1, 2, 3)],
}
"""The parts of the benchmark. A fit that belongs to several of them is trained once."""
