"""The loop: steps through the text, looks at held-out text, checkpoints.

Every random draw of a step comes from the seed and the step's number, so a run that is stopped anywhere and gone
on with does exactly what an undisturbed one does.

Knows: model, loss, optimiser, checkpoint, windows. Blind to: where text came from, who listens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bilmo.errors import BilmoError
from bilmo.ids.chars import Ids
from bilmo.ids.windows import Stream, Text, TextStep, TextSteps, Whole
from bilmo.net.bilm import State, settle, spread
from bilmo.store import folder as folders
from bilmo.store.bundle import Bundle
from bilmo.train import checkpoint
from bilmo.train.checkpoint import Progress
from bilmo.train.corpus import Corpus, Side
from bilmo.train.events import Event, Finished, Look, Step
from bilmo.train.judge import judge
from bilmo.train.loss import Loss, full_loss, sampled_loss
from bilmo.train.model import LanguageModel, WordArrays, detached
from bilmo.train.optimise import optimizer_of, rate_at, set_rate
from bilmo.train.recipe import TrainRecipe
from bilmo.train.shape import Shape

FULL_SOFTMAX = 50_000
"""Words up to which the full softmax is chosen."""
LOOK = 20_000
"""Held-out words, about, that are judged at each look; all of them at the end."""
TOO_OFTEN = 10
"""Steps in a row that may be undone before the run gives up."""


class Loop:
    """A run at work: the model, and where it is."""

    def __init__(self, recipe: TrainRecipe, shape: Shape, corpus: Corpus, words: WordArrays, folder: Path) -> None:
        self.recipe, self.shape, self.corpus = recipe, shape, corpus
        self._words, self._folder = words, folder
        self._checkpoint = folder / "training" / "checkpoint.safetensors"
        self.model: LanguageModel = shape.model(recipe.seed)
        self.model.bilm.dropout = recipe.dropout
        self._optimizer = optimizer_of(self.model, recipe)
        self._average: dict[str, Tensor] = {}
        self._state: State | None = None
        self._undone = 0
        self.progress = Progress()
        if self._checkpoint.exists():
            self._restore()
        elif recipe.average:
            self._average = {name: value.clone() for name, value in self.model.state_dict().items()}

    def events(self) -> Iterator[Event]:
        """Train to the end, telling each step."""
        recipe, progress = self.recipe, self.progress
        while True:
            text = self._text(progress.epoch)
            while progress.step < len(text):
                done = self._done(len(text))
                if done >= 1:
                    yield from self._finish("all is trained")
                    return
                yield self._step(text[progress.step], done)
                if progress.steps % recipe.evaluate_every == 0:
                    yield self._look()
                    if recipe.patience and progress.looks >= recipe.patience:
                        yield from self._finish(f"held-out text got no better in {progress.looks} looks")
                        return
                if progress.steps % recipe.save_every == 0:
                    self._save()
            progress.epoch, progress.step = progress.epoch + 1, 0

    def _done(self, steps: int) -> float:
        if self.recipe.minutes is not None:
            return self.progress.seconds / (60 * self.recipe.minutes)
        return (self.progress.epoch + self.progress.step / steps) / self.recipe.epochs

    def _text(self, epoch: int) -> TextSteps:
        """An epoch's text, in an order of its own."""
        recipe = self.recipe
        text = self._side("train")
        order = np.random.default_rng([recipe.seed, epoch]).permutation(len(text.ends))
        if recipe.context == "stream":
            rows = max(1, recipe.batch // recipe.window)
            return Stream(text, order, rows=rows, window=recipe.window)
        return Whole(text, order, budget=recipe.batch, longest=recipe.longest, seed=epoch)

    def _side(self, side: Side) -> Text:
        sentences, vocab = self.corpus.sentences(side), self.shape.vocab
        return Text(sentences.ids, sentences.ends, vocab.begin, vocab.end)

    def _targets(self, ids: Ids) -> Ids:
        """Words as the softmax knows them: one beyond its vocabulary is `<UNK>`."""
        return np.where(ids < len(self.shape.vocab), ids, self.shape.vocab.unknown)

    def _step(self, text: TextStep, done: float) -> Step:
        began = time.perf_counter()
        recipe, progress = self.recipe, self.progress
        seed = [recipe.seed, progress.epoch, progress.step]
        torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
        rate = rate_at(recipe, done)
        set_rate(self._optimizer, rate)
        self.model.train()
        self._optimizer.zero_grad()
        before = self._before(len(text.lengths))
        judged, after = self.model(text, self._words, self._targets, before, self._loss(np.random.default_rng(seed)))
        loss = judged.loss
        # The old recipe's rate and clip belong to a loss that is summed over the steps of a window.
        (loss * recipe.window if recipe.optimizer == "adagrad" else loss).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        sound = bool(torch.isfinite(norm)) and bool(torch.isfinite(loss.detach()))
        if sound:
            self._optimizer.step()
            self._state = detached(after) if recipe.context == "stream" else None
            self._update_average()
        self._undone = 0 if sound else self._undone + 1
        if self._undone >= TOO_OFTEN:
            raise BilmoError(
                f"{TOO_OFTEN} steps in a row gave no finite number, up to step {progress.steps}; the run stops and "
                "its last checkpoint stays as it was. Try a lower rate."
            )
        progress.step += 1
        progress.steps += 1
        progress.skipped += not sound
        seconds = time.perf_counter() - began
        progress.seconds += seconds
        return Step(
            number=progress.steps,
            epoch=progress.epoch,
            done=done,
            loss=float(loss.detach()),
            rate=rate,
            words=judged.words,
            seconds=seconds,
            skipped=not sound,
        )

    def _before(self, rows: int) -> State:
        if self.recipe.context == "sentences":
            return self.model.start_state(rows)
        return self._state or self.model.bilm.zero_state(rows)

    def _loss(self, random: np.random.Generator) -> Loss:
        words = len(self.shape.vocab)
        kind = self.recipe.softmax
        if kind == "full" or (kind == "auto" and words <= FULL_SOFTMAX) or self.recipe.samples >= words:
            return full_loss
        return sampled_loss(self.recipe.samples, random)

    def _update_average(self) -> None:
        if not self._average:
            return
        # A young average forgets faster, or it would be mostly the random weights of the beginning.
        keep = min(self.recipe.average, (1 + self.progress.steps) / (10 + self.progress.steps))
        new = self.model.state_dict()
        torch._foreach_lerp_(list(self._average.values()), [new[name] for name in self._average], 1 - keep)

    def _look(self) -> Look:
        """Judge held-out text, and keep the model if it was never better."""
        trained = {name: value.clone() for name, value in self.model.state_dict().items()} if self._average else {}
        if trained:
            self.model.load_state_dict(self._average)
        losses = judge(self.model, self._side("held"), self._words, self._targets, self.start, most=LOOK)
        mean = sum(losses.values()) / len(losses)
        best = math.isfinite(mean) and (self.progress.best is None or mean < self.progress.best)
        if best:
            self.progress.best, self.progress.looks = mean, 0
            folders.publish(self.bundle(), self._folder)
        else:
            self.progress.looks += 1
        if trained:
            self.model.load_state_dict(trained)
        perplexity = {direction: math.exp(loss) for direction, loss in losses.items()}
        return Look(
            number=self.progress.steps,
            ahead=perplexity["ahead"],
            behind=perplexity["behind"],
            mean=math.exp(mean),
            best=best,
        )

    def start(self, rows: int) -> State:
        """What isolated sentences start from: the learned start, or where a carried state comes to rest."""
        if self.recipe.context == "sentences":
            return self.model.start_state(rows)
        return spread(settle(self.model.bilm, self.shape.indexer().batch([[]])), rows)

    def bundle(self) -> Bundle:
        """The model as it is now, ready to be saved."""
        state = self.model.state_dict()
        weights = {name.removeprefix("bilm."): value for name, value in state.items() if not name.startswith("start.")}
        with torch.no_grad():
            start = self.start(1)
        return Bundle(
            self.shape.config, weights, "trained by bilmo", vocab=self.shape.vocab, chars=self.shape.chars, start=start
        )

    def _finish(self, why: str) -> Iterator[Event]:
        if self.progress.steps % self.recipe.evaluate_every:
            yield self._look()
        self.progress.finished = True
        self._save()
        yield Finished(self.progress, why)

    def _save(self) -> None:
        checkpoint.write(self._checkpoint, self.model, self._average, self._optimizer, self._state, self.progress)

    def _restore(self) -> None:
        was = checkpoint.read(self._checkpoint)
        self.model.load_state_dict(was.model)
        checkpoint.restore(self._optimizer, was.optimizer)
        self._average, self._state, self.progress = was.average, was.state, was.progress
