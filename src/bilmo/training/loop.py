"""The training loop: steps through the text and evaluations on held-out text, as events.

Every random number of a step follows from the seed, the epoch and the step in it, so a run that is stopped anywhere
and resumed does exactly what an uninterrupted one does.

Knows: model, loss, optimizer, windows. Blind to: files, where text comes from, who reads the events.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bilmo.errors import ConfigError, TextError
from bilmo.ids.windows import Stream, TextStep, TextSteps, Whole
from bilmo.net.bilm import settle
from bilmo.net.device import device_of
from bilmo.net.softmax import perplexity
from bilmo.net.state import State
from bilmo.store.bundle import Bundle
from bilmo.store.checkpoint import Checkpoint, load_optimizer, optimizer_tensors
from bilmo.training.build import ModelPlan, seeded
from bilmo.training.corpus import Corpus
from bilmo.training.distributed.gradients import SummedGradients
from bilmo.training.distributed.processes import ALONE, Processes
from bilmo.training.evaluate import HeldOutLoss, evaluate
from bilmo.training.events import Evaluation, Finished, Progress, Step
from bilmo.training.loss import full_loss, sampled_loss
from bilmo.training.model import LanguageModel, StepLoss, TrainingOptions, WordArrays
from bilmo.training.optimizer import optimizer_of, rate_at
from bilmo.training.prior import Prior
from bilmo.training.recipe import TrainRecipe

FULL_SOFTMAX = 10_000
"""Largest vocabulary for which `softmax = "auto"` means the full softmax."""
EXPLODED = 10.0
"""A step is skipped if its loss is this many nats per word above the usual: worse than guessing. The first steps of
the old recipe rise by five and come down again."""
EVALUATION_WORDS = 20_000
"""Approximate number of held-out words in one evaluation."""
SHORTEST_INTERVAL = 20
"""Steps between two evaluations at least, however short the text is."""


class Loop:
    """A training run in memory: the model, its optimizer, and its progress.

    The caller saves: a checkpoint taken at any event resumes exactly there.
    """

    def __init__(
        self,
        recipe: TrainRecipe,
        plan: ModelPlan,
        corpus: Corpus,
        words: WordArrays,
        processes: Processes = ALONE,
    ) -> None:
        """`processes`: those that share each step and each evaluation; every one of them has a loop of its own."""
        self.recipe, self.plan, self.corpus, self.processes = recipe, plan, corpus, processes
        self._words = words
        self._vocab_ids = np.array(plan.vocab.ids(corpus.words))
        self._device = device_of(processes.device(recipe.device))
        steps = corpus.facts.tokens["train"] + corpus.facts.sentences["train"]
        if recipe.context != "sentences" and steps < recipe.window:
            raise TextError(f"the text has {steps} words and sentence ends; a stream needs {recipe.window} or more")
        if recipe.context != "sentences" and processes.world > (rows := _rows(recipe, steps)):
            raise ConfigError(
                f"{processes.world} processes share {rows} rows of the stream (batch {recipe.batch} / window "
                f"{recipe.window}); each process needs a row of its own. Use fewer processes, or a larger batch."
            )
        self._base_has_softmax = plan.base is not None and plan.base.has_softmax
        self._prior: Prior | None = None
        if recipe.prior == "counts" and not self._base_has_softmax:
            self._prior = Prior(corpus.counts, self._vocab_ids, plan.vocab.unknown)
        options = TrainingOptions(
            dropout=recipe.dropout,
            vector_dropout=recipe.vector_dropout,
            bfloat16_products=recipe.precision == "bfloat16",
        )
        self.model: LanguageModel = plan.model(recipe.seed, self._softmax_bias(), options).to(self._device)
        size = len(plan.vocab)
        self._full_softmax = recipe.softmax == "full" or recipe.samples >= size
        self._full_softmax |= recipe.softmax == "auto" and size <= FULL_SOFTMAX
        self._optimizer = optimizer_of(self.model, recipe)
        self._summed = None if processes.alone else SummedGradients(_buckets(self.model), processes)
        self._average: dict[str, Tensor] = {}
        if recipe.average:
            self._average = {name: value.clone() for name, value in self.model.state_dict().items()}
        self._state: State | None = None
        self.progress = Progress(corpus=corpus.identity)

    def _softmax_bias(self) -> Tensor | None:
        """The initial softmax bias (V,) from word counts; learning it would take thousands of steps."""
        if self._prior is None:
            return None
        vocab = self.plan.vocab
        ends = self.corpus.facts.sentences["train"] / 2  # each boundary is predicted in one of two directions
        return self._prior.log_shares({vocab.begin: ends, vocab.end: ends}, len(vocab))

    def events(self) -> Iterator[Step | Evaluation | Finished]:
        """Train to the end."""
        progress, patience = self.progress, self.recipe.patience
        if self._base_has_softmax and progress.last_evaluation_step is None:
            yield self.evaluate()  # the perplexity before; if nothing improves, the model stays as it was
        while True:
            text = self.text(progress.epoch)
            steps = len(text)
            interval = self.evaluation_interval(steps)
            while True:
                # Counted from the last evaluation, not from the first step: epochs differ in length.
                if progress.step_in_epoch and progress.steps - (progress.last_evaluation_step or 0) >= interval:
                    yield self.evaluate()
                if patience and progress.evaluations_without_improvement >= patience:
                    yield from self._finish(f"stopped early: no improvement in the last {patience} evaluations")
                    return
                if progress.step_in_epoch >= steps:
                    break
                done = self.share_done(steps)
                if done >= 1:
                    yield from self._finish("training is complete")
                    return
                yield self.step(text[progress.step_in_epoch], done)
            progress.epoch, progress.step_in_epoch = progress.epoch + 1, 0

    def _finish(self, reason: str) -> Iterator[Evaluation | Finished]:
        regular = self.progress.last_evaluation_step
        if regular != self.progress.steps:
            yield self.evaluate()
            self.progress.last_evaluation_step = regular  # a longer run does not evaluate here
        self.progress.finished = True
        yield Finished(self.progress, reason)

    def evaluation_interval(self, steps: int) -> int:
        """Steps between evaluations: at least one per epoch, so that overfitting on a small text is noticed."""
        return min(self.recipe.evaluate_every, max(SHORTEST_INTERVAL, steps))

    def share_done(self, steps: int) -> float:
        """The share of the run that is done, if the current epoch has `steps` steps."""
        if self.recipe.minutes is not None:
            return self.progress.seconds / (60 * self.recipe.minutes)
        return (self.progress.epoch + self.progress.step_in_epoch / steps) / self.recipe.epochs

    def to_be_continued(self) -> bool:
        """Whether a complete run has a longer recipe now, and its steps do not depend on the length."""
        return self.recipe.same_at_any_length and self.share_done(len(self.text(self.progress.epoch))) < 1

    def text(self, epoch: int) -> TextSteps:
        """The text of an epoch, in its own order; documents are read in the order of the text, from a random place."""
        recipe = self.recipe
        text = self.corpus.text("train")
        random = np.random.default_rng([recipe.seed, epoch])
        order: NDArray[Any] = np.arange(len(text.ends), dtype=np.int32)  # half the memory of 64 bits
        if recipe.context == "document":
            order = np.roll(order, random.integers(len(order)))  # so that windows begin at other words in each epoch
        else:
            order = random.permutation(order)
        if recipe.context != "sentences":
            rows = _rows(recipe, len(text.ids) + len(text.ends))
            return Stream(text, order, rows=rows, window=recipe.window)
        return Whole(text, order, budget=recipe.batch, longest=recipe.longest, seed=[recipe.seed, epoch])

    def step(self, text: TextStep, done: float) -> Step:
        """One update of the weights, when a share `done` of the run is over."""
        began = time.perf_counter()
        recipe, progress = self.recipe, self.progress
        seed = [recipe.seed, progress.epoch, progress.step_in_epoch]
        rate = rate_at(recipe, done)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self.model.train()
        new_softmax = self.plan.base is not None and not self._base_has_softmax
        with seeded(int(np.random.SeedSequence(seed).generate_state(1)[0])):
            head_only = new_softmax and done < recipe.head_first
            found, after = self._gradients(text, np.random.default_rng(seed), head_only=head_only)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        loss, usual = float(found.loss.detach()), progress.usual_loss
        if not self.processes.alone:
            loss = self.processes.total(loss * found.own / found.words)
        sound = bool(torch.isfinite(norm)) and math.isfinite(loss) and (usual is None or loss < usual + EXPLODED)
        if sound:
            self._optimizer.step()
            progress.usual_loss = loss if usual is None else 0.98 * usual + 0.02 * loss
            self._state = after.detach() if recipe.context != "sentences" else None
            if self._average:
                # Decay faster at first; otherwise the initial random weights dominate the average.
                keep = min(recipe.average, (1 + progress.steps) / (10 + progress.steps))
                new = self.model.state_dict()
                for name, average in self._average.items():
                    average.lerp_(new[name], 1 - keep)
        progress.step_in_epoch += 1
        progress.steps += 1
        progress.skipped += not sound
        seconds = self.processes.of_first(time.perf_counter() - began)
        progress.seconds += seconds
        return Step(
            number=progress.steps,
            epoch=progress.epoch,
            done=done,
            loss=loss,
            rate=rate,
            words=found.words,
            seconds=seconds,
            skipped=not sound,
        )

    def _gradients(
        self, text: TextStep, random: np.random.Generator, *, head_only: bool = False
    ) -> tuple[StepLoss, State]:
        """Compute the gradients of a step, or only those of the softmax; returns its loss, and the state after it.

        With several processes, the loss is that of the rows of this process, and the gradients are those of all rows.
        """
        self._optimizer.zero_grad()
        rows, number, idle = None, len(text.lengths), False
        if not self.processes.alone:
            rows = self.processes.rows(number)
            idle = rows.start >= number
            if idle:  # fewer rows than processes: a row that another one computes, without weight
                rows = slice(0, 1)
            number = len(text.lengths[rows])
        if self.recipe.context == "sentences":
            state = self.model.start_state(number)
        else:
            state = self._state or self.model.bilm.zero_state(number)
        targets = partial(self._prior.targets, random=random) if self._prior else self._vocab_ids.__getitem__
        drawn: list[Tensor] = []
        loss = full_loss if self._full_softmax else sampled_loss(self.recipe.samples, random, drawn.append)
        found, after = self.model(text, self._words, targets, state, loss, head_only=head_only, rows=rows)
        if idle:
            found = replace(found, own=0)
        # The rate and clip of the old recipe belong to a loss that is summed over the steps of a window.
        scale = self.recipe.window if self.recipe.optimizer == "adagrad" else 1
        if self._summed is None:
            (found.loss * scale).backward()
            return found, after
        softmax, touched = self.model.softmax, {}
        if drawn:
            some = torch.unique(torch.cat([*drawn, found.targets])).to(self._device)
            touched = {softmax.weight: some, softmax.bias: some}
        self._summed.begin(touched)
        (found.loss * (scale * found.own / found.words)).backward()
        self._summed.finish()
        return found, after

    @property
    def summed_bytes(self) -> int:
        """What each process sent of its gradients in the last step."""
        return self._summed.bytes if self._summed else 0

    def try_step(self, text: TextStep) -> float:
        """Run forward and backward without updating weights; returns the seconds."""
        began = time.perf_counter()
        with seeded(0):
            self._gradients(text, np.random.default_rng(0))
        self._optimizer.zero_grad()
        return time.perf_counter() - began

    def evaluate(self) -> Evaluation:
        """Evaluate the model that would be saved now, and note whether it is the best so far."""
        began = time.perf_counter()
        progress = self.progress
        with self._averaged():
            found = self.held_out_loss(EVALUATION_WORDS)
        mean = found.mean
        best = math.isfinite(mean) and (progress.best is None or mean < progress.best)
        if best:
            progress.best, progress.best_known, progress.evaluations_without_improvement = mean, found.known, 0
        else:
            progress.evaluations_without_improvement += 1
        progress.last_evaluation_step = progress.steps
        progress.seconds += self.processes.of_first(time.perf_counter() - began)
        perplexities = {direction: perplexity(loss) for direction, loss in found.each.items()}
        return Evaluation(
            number=progress.steps,
            **perplexities,
            mean=perplexity(mean),
            known=perplexity(found.known),
            words=found.words,
            best=best,
        )

    def held_out_loss(self, most: int) -> HeldOutLoss:
        """The losses over about `most` held-out words."""
        text, targets = self.corpus.text("held_out"), self._vocab_ids.__getitem__
        unknown, processes = self.plan.vocab.unknown, self.processes
        return evaluate(
            self.model, text, self._words, targets, self._start, unknown=unknown, most=most, processes=processes
        )

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Within it the model has the averaged weights, if an average is kept."""
        if not self._average:
            yield
            return
        latest = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.model.load_state_dict(self._average)
        try:
            yield
        finally:
            self.model.load_state_dict(latest)

    def _start(self, rows: int) -> State:
        """What isolated sentences start from: the learned start, or the state to which empty sentences lead."""
        if self.recipe.context == "sentences":
            return self.model.start_state(rows)
        return settle(self.model.bilm, self.plan.indexer().batch([[]])).expand(rows)

    def bundle(self) -> Bundle:
        """A copy of the model that was evaluated last, ready to be saved."""
        cpu, plan = torch.device("cpu"), self.plan
        with torch.no_grad(), self._averaged():
            weights = {
                name.removeprefix("bilm."): value.to(cpu, copy=True)
                for name, value in self.model.state_dict().items()
                if not name.startswith("start.")
            }
            start = copy.deepcopy(self._start(1).to(cpu))
        return Bundle(
            plan.config,
            weights,
            "trained by bilmo",
            vocab=plan.vocab,
            chars=plan.chars,
            start=start,
            lang=self.corpus.facts.lang,
        )

    def checkpoint(self) -> Checkpoint[Progress]:
        """The run as it is now; not a copy. All processes call it together."""
        parts = {
            "model": self.model.state_dict(),
            "average": self._average,
            "optimizer": optimizer_tensors(self._optimizer),
            "state": self._state_of_all() if self._state else {},
        }
        return Checkpoint(self.progress, parts)

    def resume(self, saved: Checkpoint[Progress]) -> None:
        """Continue from a checkpoint; one of another network is a RuntimeError, ValueError or KeyError."""
        self.restore_weights(saved)
        self.progress = saved.progress

    def restore_weights(self, saved: Checkpoint[Progress]) -> None:
        """Take the weights of a checkpoint and all that belongs to them, but not its progress."""
        self.model.load_state_dict(saved.part("model"))
        load_optimizer(self._optimizer, saved.part("optimizer"))
        self._average = {name: value.to(self._device) for name, value in saved.part("average").items()}
        state = saved.part("state")
        self._state = State.from_named(state).to(self._device) if state else None
        if self._state and not self.processes.alone:
            rows = torch.arange(self._state.rows, device=self._device)
            self._state = self._state.select(rows[self.processes.rows(len(rows))])

    def _state_of_all(self) -> dict[str, Tensor]:
        """The state of the rows of all processes, by name."""
        assert self._state is not None
        if self.processes.alone:
            return self._state.named()
        number = int(self.processes.total(self._state.rows))
        found = {}
        for name, part in self._state.named().items():
            whole = part.new_zeros(number, part.shape[1])
            whole[self.processes.rows(number)] = part
            found[name] = self.processes.sum(whole)
        return found


def _rows(recipe: TrainRecipe, steps: int) -> int:
    """The rows of a stream with this number of steps."""
    return max(1, min(recipe.batch, steps) // recipe.window)


def _buckets(model: LanguageModel) -> list[list[nn.Parameter]]:
    """The parameters in the order in which the backward pass reaches them: softmax, layers from the top, the rest."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    layers = [
        [parameter for stack in model.bilm.stacks.values() for parameter in stack[number].parameters()]
        for number in reversed(range(model.bilm.config.layers))
    ]
    layers[0].append(model.softmax.bias)
    first = [[model.softmax.weight], *layers]
    seen = {id(parameter) for bucket in first for parameter in bucket}
    return [*first, [parameter for parameter in trained if id(parameter) not in seen]]
