"""The training loop of every task: epochs over the items, early stopping on the dev set, the best epoch kept.

Every random draw of a step comes from the seed, the epoch and the step, so a run that is stopped anywhere and resumed
does what an uninterrupted one does.

Knows: torch.optim, checkpoints. Blind to: files, texts, labels, which task it is.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic

import torch
from torch import Tensor, nn

from bilmo.errors import BilmoError
from bilmo.store.checkpoint import Checkpoint, load_optimizer, optimizer_tensors
from bilmo.tasks.core.events import Epoch, Finished, Progress, Step
from bilmo.tasks.core.settings import Settings
from bilmo.tasks.network.head import Answer, ItemT, TaskNetwork

POOL = 20
"""Batches among which examples are sorted by their cost, which is their length for most heads."""
PADDED = 16_384
"""Maximum number of tokens in a batch, padding included: batches of long texts have fewer of them."""


class TrainingLoop(Generic[ItemT, Answer]):
    """Trains a network. The caller saves: a checkpoint taken at the end of any epoch resumes exactly there."""

    def __init__(
        self,
        network: TaskNetwork[ItemT, Answer],
        settings: Settings,
        items: Sequence[ItemT],
        evaluate: Callable[[], float],
    ) -> None:
        """`evaluate` returns the measure on the dev set."""
        self.network, self.settings, self.items = network, settings, items
        self._costs = [network.head.cost(item) for item in items]
        self._evaluate = evaluate
        groups: list[dict[str, Any]] = [
            {"params": network.own_parameters(), "lr": settings.rate},
            {"params": network.bilm_parameters(), "lr": settings.tune_rate},
        ]
        self._optimizer = torch.optim.Adam([group for group in groups if group["params"]], fused=True)
        self.progress = Progress()
        self._best: dict[str, Tensor] = {}

    def events(self) -> Iterator[Step | Epoch | Finished]:
        """Train to the end; the network then has the weights of its best epoch."""
        progress, settings = self.progress, self.settings
        while not self._ended():
            started = time.monotonic()
            self.network.train()
            losses: list[float] = []
            groups = batches(self._costs, settings.batch, f"{settings.seed} {progress.epoch}")
            for group in groups:
                losses.append(self._step([self.items[k] for k in group], progress.epoch, len(losses)))
                yield Step(progress.epoch + 1, len(losses) / len(groups), losses[-1])
            self.network.eval()
            value = self._evaluate()
            progress.epoch += 1
            best = progress.best is None or value > progress.best
            if best:
                progress.best, progress.best_epoch = value, progress.epoch
                self._best = {name: value.clone() for name, value in self.network.learned_state().items()}
            yield Epoch(progress.epoch, sum(losses) / len(losses), value, best, time.monotonic() - started)
        self.restore_best()
        yield Finished(self._ended(), progress.best_epoch, progress.best or 0.0)

    def _ended(self) -> str:
        """Why the run has ended; empty while it has not. A later call may ask for a longer run."""
        progress, settings = self.progress, self.settings
        # A task that has not predicted anything correctly yet is given time: its first epochs all have the value 0.
        if progress.best and progress.epoch - progress.best_epoch >= settings.patience:
            return f"stopped early: no improvement in the last {settings.patience} epochs"
        return "all epochs are done" if progress.epoch >= settings.epochs else ""

    def _step(self, items: Sequence[ItemT], epoch: int, number: int) -> float:
        """Update the weights once; returns the loss."""
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
            torch.manual_seed(((self.settings.seed * 100_003 + epoch) * 1_000_003 + number) % 2**63)
            loss = self.network.loss(items)
        self._optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        if not math.isfinite(float(norm)):
            raise BilmoError(
                f"epoch {epoch + 1}, step {number + 1}: the loss or its gradient is not finite. "
                f"Lower the learning rate (it is {self.settings.rate})."
            )
        self._optimizer.step()
        return loss.item()

    def restore_best(self) -> None:
        """Give the network the weights of its best epoch."""
        if self._best:
            self.network.load_state_dict(self._best, strict=False)
        self.network.eval()

    def checkpoint(self) -> Checkpoint[Progress]:
        """The run as it is between two epochs; not a copy."""
        optimizer = optimizer_tensors(self._optimizer)
        return Checkpoint(
            self.progress, {"now": self.network.learned_state(), "best": self._best, "optimizer": optimizer}
        )

    def resume(self, saved: Checkpoint[Progress]) -> None:
        """Continue from a checkpoint; one of another network is a ValueError, and changes nothing."""
        own = self.network.learned_state()
        now, best, optimizer = (saved.part(name) for name in ("now", "best", "optimizer"))
        _check_shapes("now", now, own)
        _check_shapes("best", best, own if saved.progress.best_epoch else {})
        _check_optimizer(self._optimizer, optimizer)
        self.network.load_state_dict(now, strict=False)
        load_optimizer(self._optimizer, optimizer)
        self._best, self.progress = best, saved.progress


def _check_shapes(part: str, found: Mapping[str, Tensor], needed: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are not exactly those of the network."""
    wrong = sorted(found.keys() ^ needed.keys())
    wrong = wrong or [name for name, value in needed.items() if found[name].shape != value.shape]
    if wrong:
        raise ValueError(f"{part}: missing, unused or of another shape: {', '.join(wrong[:10])}")


def _check_optimizer(optimizer: torch.optim.Adam, found: Mapping[str, Tensor]) -> None:
    """Refuse a state that is not one of Adam for these parameters; one without a gradient so far has no state."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    needed: dict[str, Tensor] = {}
    for number, value in enumerate(parameters):
        if any(name.startswith(f"{number}/") for name in found):
            needed |= {f"{number}/step": torch.zeros(()), f"{number}/exp_avg": value, f"{number}/exp_avg_sq": value}
    if not needed:
        raise ValueError("optimizer: holds no state")
    _check_shapes("optimizer", found, needed)


def batches(costs: Sequence[int], size: int, seed: str) -> list[list[int]]:
    """All numbers once, in random batches of similar cost in tokens, each of at most `size` texts."""
    chosen = random.Random(seed)
    order = list(range(len(costs)))
    chosen.shuffle(order)
    found: list[list[int]] = []
    for at in range(0, len(order), POOL * size):
        group: list[int] = []
        for k in sorted(order[at : at + POOL * size], key=lambda k: costs[k]):
            if group and (len(group) == size or (len(group) + 1) * costs[k] > PADDED):
                found.append(group)
                group = []
            group.append(k)
        found.append(group)
    chosen.shuffle(found)
    return found
