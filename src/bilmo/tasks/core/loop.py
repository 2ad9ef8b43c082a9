"""The loop of every task: epochs over the examples, early stop on the dev set, the best kept.

Every random draw of a step comes from the seed, the epoch and the step, so a run that is stopped anywhere and gone
on with does what an undisturbed one does.

Knows: torch.optim, checkpoints. Blind to: texts, labels, which task it is.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from bilmo.errors import BilmoError, DamagedFile, OutputError
from bilmo.store.atomic import new_file
from bilmo.store.checkpoint import load_optimizer, with_prefix
from bilmo.tasks.core.events import Epoch, Finished, Step
from bilmo.tasks.core.settings import Settings

POOL = 20
"""Batches among which examples are sorted by length."""
PADDED = 16_384
"""Tokens of a batch, padding included: texts that are longer go by fewer at a time."""


@dataclass
class Progress:
    """Where a run is."""

    epoch: int = 0
    best: float | None = None
    """The dev set's measure at its best."""
    best_epoch: int = 0


class Fitting:
    """A run at work."""

    def __init__(
        self,
        network: nn.Module,
        settings: Settings,
        lengths: Sequence[int],
        loss_of: Callable[[list[int]], Tensor],
        judge: Callable[[], float],
        checkpoint: Path | None = None,
    ) -> None:
        """`loss_of` examples by their numbers, of which `lengths` tells the tokens; `judge` answers the dev set."""
        self.network, self.settings, self.lengths = network, settings, lengths
        self._loss_of, self._judge, self._checkpoint = loss_of, judge, checkpoint
        tuned = [p for name, p in network.named_parameters() if p.requires_grad and ".tuned." in name]
        own = [p for name, p in network.named_parameters() if p.requires_grad and ".tuned." not in name]
        groups = [{"params": own, "lr": settings.rate}, {"params": tuned, "lr": settings.tune_rate}]
        self._optimizer = torch.optim.Adam([group for group in groups if group["params"]], fused=True)
        self.progress = Progress()
        self._best: dict[str, Tensor] = {}
        if checkpoint is not None and checkpoint.exists():
            self._restore(checkpoint)

    def events(self) -> Iterator[Step | Epoch | Finished]:
        """Learn to the end, telling each step; the network is then at its best epoch."""
        progress = self.progress
        while not self._over():
            started = time.monotonic()
            loss = yield from self._epoch()
            self.network.eval()
            value = self._judge()
            progress.epoch += 1
            best = progress.best is None or value > progress.best
            if best:
                progress.best, progress.best_epoch = value, progress.epoch
                self._best = {name: value.clone() for name, value in learned_state(self.network).items()}
            if self._checkpoint is not None:
                self._save(self._checkpoint)
            yield Epoch(progress.epoch, loss, value, best, time.monotonic() - started)
        self.use_best()
        yield Finished(self._over(), progress.best_epoch, progress.best or 0.0)

    def _over(self) -> str:
        """Why the run has come to its end; empty while it has not. A longer one may be asked for later."""
        progress, settings = self.progress, self.settings
        # A task that has found nothing at all yet is given time: its first epochs are all equally bad.
        if progress.best and progress.epoch - progress.best_epoch >= settings.patience:
            return f"no better in {settings.patience} epochs"
        return "all epochs are done" if progress.epoch >= settings.epochs else ""

    def _epoch(self) -> Generator[Step, None, float]:
        self.network.train()
        epoch, total = self.progress.epoch, 0.0
        groups = batches(self.lengths, self.settings.batch, f"{self.settings.seed} {epoch}")
        for number, group in enumerate(groups):
            with torch.random.fork_rng(devices=[]):  # a caller's own random numbers stay as they are
                torch.manual_seed(((self.settings.seed * 100_003 + epoch) * 1_000_003 + number) % 2**63)
                loss = self._loss_of(group)
            self._optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
            if not math.isfinite(float(norm)):
                raise BilmoError(
                    f"epoch {epoch + 1}, step {number + 1}: the loss or its gradient is no number any more. "
                    f"Lower the rate (it is {self.settings.rate})."
                )
            self._optimizer.step()
            total += loss.item()
            yield Step(epoch + 1, (number + 1) / len(groups), loss.item())
        return total / len(groups)

    def use_best(self) -> None:
        """Put the network back to its best epoch."""
        if self._best:
            self.network.load_state_dict(self._best, strict=False)
        self.network.eval()

    def _save(self, path: Path) -> None:
        tensors = {f"now/{name}": value for name, value in learned_state(self.network).items()}
        tensors |= {f"best/{name}": value for name, value in self._best.items()}
        for number, values in self._optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{number}/{name}": torch.as_tensor(value) for name, value in values.items()}
        with new_file(path) as partial:
            try:
                clean = {name: value.detach().clone().contiguous() for name, value in tensors.items()}
                save_file(clean, partial, metadata={"progress": json.dumps(asdict(self.progress))})
            except SafetensorError as error:
                raise OutputError(f"{path}: the checkpoint cannot be written ({error})") from None

    def _restore(self, path: Path) -> None:
        try:
            with safe_open(path, framework="pt") as file:
                self.progress = Progress(**json.loads(file.metadata()["progress"]))
                # Copied: where values lie in memory decides how a product is rounded.
                tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            now = {name.removeprefix("now/"): value for name, value in tensors.items() if name.startswith("now/")}
            self.network.load_state_dict(now, strict=False)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise DamagedFile(f"{path}: is no checkpoint of this run ({error})") from None
        self._best = {name.removeprefix("best/"): value for name, value in tensors.items() if name.startswith("best/")}
        load_optimizer(self._optimizer, with_prefix("optimizer/", tensors))


def learned_state(network: nn.Module) -> dict[str, Tensor]:
    """Everything in a network that learning changes; given word vectors and a frozen biLM are not in it."""
    frozen = {name for name, parameter in network.named_parameters() if not parameter.requires_grad}
    return {name: value.detach() for name, value in network.state_dict().items() if name not in frozen}


def batches(lengths: Sequence[int], size: int, seed: str) -> list[list[int]]:
    """All numbers once, in random batches of like length, each of at most `size` texts."""
    chosen = random.Random(seed)
    order = list(range(len(lengths)))
    chosen.shuffle(order)
    found: list[list[int]] = []
    for at in range(0, len(order), POOL * size):
        group: list[int] = []
        for k in sorted(order[at : at + POOL * size], key=lambda k: lengths[k]):
            if group and (len(group) == size or (len(group) + 1) * lengths[k] > PADDED):
                found.append(group)
                group = []
            group.append(k)
        found.append(group)
    chosen.shuffle(found)
    return found
