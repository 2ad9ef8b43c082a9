"""Steps and evaluations for TensorBoard, if it is installed.

Knows: torch.utils.tensorboard. Blind to: how a run works.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bilmo.training.events import Evaluation, Step


@contextmanager
def tensorboard(folder: Path) -> Iterator[Callable[[Step | Evaluation], None]]:
    """A function that logs an event; without TensorBoard it does nothing."""
    if importlib.util.find_spec("tensorboard") is None:
        yield lambda event: None
        return
    from torch.utils.tensorboard.writer import SummaryWriter

    with SummaryWriter(str(folder)) as writer:

        def log(event: Step | Evaluation) -> None:
            if isinstance(event, Step):
                values = {"loss": event.loss, "rate": event.rate, "words per second": event.words / event.seconds}
            else:
                measured = ("forward", "backward", "mean", "known")
                values = {f"held-out perplexity/{name}": getattr(event, name) for name in measured}
            for name, value in values.items():
                writer.add_scalar(name, value, event.number)

        yield log
