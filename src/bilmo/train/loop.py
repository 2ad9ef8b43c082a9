"""The loop: steps through the text, looks at held-out text, checkpoints.

Every random draw of a step comes from the seed and the step's number, so a run that is stopped anywhere and gone
on with does exactly what an undisturbed one does.

Knows: model, loss, optimiser, checkpoint, windows. Blind to: where text came from, who listens.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bilmo.errors import BilmoError, ConfigError, DamagedFile, TextError
from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END, Ids
from bilmo.ids.vocab import MARKS
from bilmo.ids.windows import Stream, Text, TextStep, TextSteps, Whole
from bilmo.net.bilm import settle
from bilmo.net.config import Direction
from bilmo.net.state import State
from bilmo.store import model_folder as folders
from bilmo.store.bundle import Bundle
from bilmo.store.card import card_of
from bilmo.store.run_folder import CHECKPOINT
from bilmo.train import checkpoint
from bilmo.train.build import Shape
from bilmo.train.card import Story
from bilmo.train.checkpoint import Checkpoint, Progress
from bilmo.train.corpus import Corpus, Side
from bilmo.train.evaluate import judge
from bilmo.train.events import Cost, Event, Finished, Look, Step
from bilmo.train.loss import Loss, full_loss, sampled_loss
from bilmo.train.model import Judged, LanguageModel, WordArrays
from bilmo.train.optimizer import device_of, optimizer_of, rate_at, set_rate
from bilmo.train.prior import Prior
from bilmo.train.recipe import TrainRecipe

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

FULL_SOFTMAX = 10_000
"""Words up to which the full softmax is chosen."""
EXPLODED = 10.0
"""Nats a word above the usual loss from which on a step is not made: worse than guessing. The old recipe's first steps
rise by five and come down again."""
LOOK = 20_000
"""Held-out words, about, that are judged at each look."""
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in which the system counts memory."""
SPOILED, TOO_OFTEN = 3, 10
"""Steps in a row that may be undone before the weights are taken for spoiled, and before the run gives up."""
OFTEN = 20
"""Steps that lie between two looks at least, however short the text is."""


A_PARAMETER = 16
"""Bytes: itself, its gradient, and two numbers that Adam remembers of it."""


def need_memory(parameters: int) -> None:
    """Refuse a network that the machine cannot hold, before it is made: to find out takes the machine down."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # a system that does not tell
        return
    if A_PARAMETER * parameters > there:
        raise ConfigError(
            f"the network has {parameters:,} parameters; to train it takes {A_PARAMETER * parameters / 1e9:,.0f} GB of "
            f"memory, and this machine has {there / 1e9:,.0f}. Make it smaller: width, cells, layers, vocab_size."
        )


class Loop:
    """A run at work: the model, and where it is."""

    def __init__(self, recipe: TrainRecipe, shape: Shape, corpus: Corpus, words: WordArrays, folder: Path) -> None:
        self.recipe, self.shape, self.corpus = recipe, shape, corpus
        self._words, self._folder = words, folder
        self._vocab_ids = np.array(shape.vocab.ids(corpus.words))
        self._device = device_of(recipe.device)
        steps = corpus.facts.tokens["train"] + corpus.facts.sentences["train"]
        if recipe.context == "stream" and steps < recipe.window:
            raise TextError(f"the text has {steps} words and sentence ends; a stream needs {recipe.window} or more")
        self._checkpoint = folder / "training" / CHECKPOINT
        self._prior: Prior | None = None
        if recipe.prior == "counts" and not (shape.base and shape.base.has_softmax):
            self._prior = Prior(corpus.counts, self._vocab_ids, shape.vocab.unknown)
        self.model: LanguageModel = shape.model(recipe.seed, self._log_shares()).to(self._device)
        self.model.bilm.dropout = recipe.dropout
        self.model.vector_dropout = recipe.vector_dropout
        self.model.bfloat16_products = recipe.precision == "bfloat16"
        self._optimizer = optimizer_of(self.model, recipe)
        self._average: dict[str, Tensor] = {}
        self._state: State | None = None
        self._undone = 0
        self._new_head = shape.base is not None and not shape.base.has_softmax
        self.progress = Progress()
        self.story: Story | None = None
        """For the model card."""
        if self._checkpoint.exists():
            self._restore()
        elif recipe.average:
            self._average = {name: value.clone() for name, value in self.model.state_dict().items()}

    def events(self) -> Iterator[Event]:
        """Train to the end, telling each step."""
        recipe, progress = self.recipe, self.progress
        if self.shape.base is not None and self.shape.base.has_softmax and not progress.steps:
            yield self._look()  # the perplexity before; if nothing gets better, the model stays what it was
        while True:
            text = self.text(progress.epoch)
            while progress.step < len(text):
                done = self._done(len(text))
                if done >= 1:
                    yield from self._finish("all is trained")
                    return
                yield self.step(text[progress.step], done)
                # Not every so many steps of the run: passes differ in length, and so may what lies between two looks.
                if progress.steps - (progress.looked or 0) >= self._between_looks(text):
                    yield self._look()
                    if recipe.patience and progress.looks >= recipe.patience:
                        yield from self._finish(f"held-out text got no better in {progress.looks} looks")
                        return
                if progress.steps % recipe.save_every == 0 and not self._undone:
                    self._save()
            progress.epoch, progress.step = progress.epoch + 1, 0

    def rehearse(self) -> Cost:
        """Try a step and a look without changing anything, and tell from it what the run will take."""
        text = self.text(self.progress.epoch)
        number = min(self.progress.step, len(text) - 1)
        seconds = min(self._tried(text[number]) for _ in range(2))  # the first one is slower: things are made ready
        self._optimizer.zero_grad()
        memory = 0 if resource is None else RSS_UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if not self.progress.steps:  # what the optimiser will remember of each parameter
            memory += sum(8 * p.numel() for p in self.model.parameters())
        left = 1 - self._done(len(text))
        if self.recipe.minutes is not None:
            return Cost(60 * self.recipe.minutes * left, memory)
        steps = len(text) * self.recipe.epochs * left
        return Cost(seconds * steps + self._look_seconds() * steps / self._between_looks(text), memory)

    def _log_shares(self) -> Tensor | None:
        """What a new softmax begins with: (V,). To learn it word by word would take thousands of steps."""
        if self._prior is None:
            return None
        vocab = self.shape.vocab
        ends = self.corpus.facts.sentences["train"] / 2  # each is predicted in one of two directions
        return self._prior.log_shares({vocab.begin: ends, vocab.end: ends}, len(vocab))

    def _between_looks(self, text: TextSteps) -> int:
        """Steps; one look in a pass at least, or a small text is learned by heart before anybody looks."""
        return min(self.recipe.evaluate_every, max(OFTEN, len(text)))

    def _look_seconds(self) -> float:
        """What a look will take, told from a tenth of one."""
        began = time.perf_counter()
        _, words = self._judged(LOOK // 10)
        seconds = time.perf_counter() - began
        facts = self.corpus.facts
        return seconds / words * min(LOOK, facts.tokens["held"] + facts.sentences["held"])

    def _judged(self, most: int) -> tuple[dict[Direction, float], int]:
        return judge(self.model, self._side("held"), self._words, self._targets, self.start, most=most)

    def _tried(self, text: TextStep) -> float:
        began = time.perf_counter()
        self._optimizer.zero_grad()
        self._backward(text, np.random.default_rng(0))
        return time.perf_counter() - began

    def _done(self, steps: int) -> float:
        if self.recipe.minutes is not None:
            return self.progress.seconds / (60 * self.recipe.minutes)
        return (self.progress.epoch + self.progress.step / steps) / self.recipe.epochs

    def text(self, epoch: int) -> TextSteps:
        """An epoch's text, in an order of its own."""
        recipe = self.recipe
        text = self._side("train")
        order = np.random.default_rng([recipe.seed, epoch]).permutation(np.arange(len(text.ends), dtype=np.int32))
        if recipe.context == "stream":
            rows = max(1, min(recipe.batch, len(text.ids) + len(text.ends)) // recipe.window)
            return Stream(text, order, rows=rows, window=recipe.window)
        return Whole(text, order, budget=recipe.batch, longest=recipe.longest, seed=[recipe.seed, epoch])

    def _side(self, side: Side) -> Text:
        sentences = self.corpus.sentences(side)
        return Text(sentences.ids, sentences.ends, MARKS.index(SENTENCE_BEGIN), MARKS.index(SENTENCE_END))

    def _targets(self, ids: Ids) -> Ids:
        """Words of the corpus as the softmax knows them: one beyond its vocabulary is `<UNK>`."""
        found: Ids = self._vocab_ids[ids]
        return found

    def step(self, text: TextStep, done: float) -> Step:
        """One update of the weights, when a share `done` of the run is over."""
        began = time.perf_counter()
        recipe, progress = self.recipe, self.progress
        seed = [recipe.seed, progress.epoch, progress.step]
        torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
        rate = rate_at(recipe, done)
        set_rate(self._optimizer, rate)
        self.model.train()
        self.model.head_only = self._new_head and done < recipe.head_first
        self._optimizer.zero_grad()
        judged, after = self._backward(text, np.random.default_rng(seed))
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        nats = float(judged.loss.detach())
        usual = progress.usual_loss
        sound = bool(torch.isfinite(norm)) and math.isfinite(nats) and (usual is None or nats < usual + EXPLODED)
        if sound:
            self._optimizer.step()
            progress.usual_loss = nats if usual is None else 0.98 * usual + 0.02 * nats
            self._state = after.detach() if recipe.context == "stream" else None
            self._update_average()
        self._undone = 0 if sound else self._undone + 1
        if self._undone == SPOILED and self._checkpoint.exists():  # it was the step before that should not have been
            self._restore_weights(checkpoint.read(self._checkpoint))
        if self._undone >= TOO_OFTEN:
            raise BilmoError(
                f"{TOO_OFTEN} steps in a row exploded, up to step {progress.steps} (loss {nats:.4g}, usual {usual}); "
                "the run stops and its last checkpoint stays as it was. Try a lower rate, in another folder."
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
            loss=nats,
            rate=rate,
            words=judged.words,
            seconds=seconds,
            skipped=not sound,
        )

    def _backward(self, text: TextStep, random: np.random.Generator) -> tuple[Judged, State]:
        """Gradients of a step; its loss, and the state after it."""
        before = self._before(len(text.lengths))
        targets = partial(self._prior.targets, random=random) if self._prior else self._targets
        judged, after = self.model(text, self._words, targets, before, self._loss(random))
        # The old recipe's rate and clip belong to a loss that is summed over the steps of a window.
        scale = self.recipe.window if self.recipe.optimizer == "adagrad" else 1
        (judged.loss * scale).backward()
        return judged, after

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
        began = time.perf_counter()
        trained = {name: value.clone() for name, value in self.model.state_dict().items()} if self._average else {}
        if trained:
            self.model.load_state_dict(self._average)
        losses, words = self._judged(LOOK)
        mean = sum(losses.values()) / len(losses)
        best = math.isfinite(mean) and (self.progress.best is None or mean < self.progress.best)
        perplexity = {direction: _exp(loss) for direction, loss in losses.items()}
        look = Look(number=self.progress.steps, **perplexity, mean=_exp(mean), words=words, best=best)
        if best:
            self.progress.best, self.progress.looks = mean, 0
            folders.publish(self.bundle(self._told(look)), self._folder)
        else:
            self.progress.looks += 1
        if trained:
            self.model.load_state_dict(trained)
        self.progress.looked = self.progress.steps
        self.progress.seconds += time.perf_counter() - began
        return look

    def _told(self, look: Look) -> str:
        return self.story.tell(self.progress, look) if self.story else ""

    def start(self, rows: int) -> State:
        """What isolated sentences start from: the learned start, or where a carried state comes to rest."""
        if self.recipe.context == "sentences":
            return self.model.start_state(rows)
        return settle(self.model.bilm, self.shape.indexer().batch([[]])).expand(rows)

    def bundle(self, story: str = "") -> Bundle:
        """The model as it is now, ready to be saved; `story` is what its card tells of the training."""
        state = self.model.state_dict()
        weights = {name.removeprefix("bilm."): value for name, value in state.items() if not name.startswith("start.")}
        with torch.no_grad():
            start = self.start(1).to(torch.device("cpu"))
        weights = {name: value.cpu() for name, value in weights.items()}
        shape = self.shape
        made = Bundle(shape.config, weights, "trained by bilmo", vocab=shape.vocab, chars=shape.chars, start=start)
        return replace(made, card=card_of(made, story)) if story else made

    def _finish(self, why: str) -> Iterator[Event]:
        if self.progress.looked != self.progress.steps:
            yield self._look()
        self.progress.finished = True
        self._save()
        yield Finished(self.progress, why)

    def _save(self) -> None:
        checkpoint.write(self._checkpoint, self.model, self._average, self._optimizer, self._state, self.progress)

    def _restore(self) -> None:
        was = checkpoint.read(self._checkpoint)
        try:
            self._restore_weights(was)
        except (RuntimeError, ValueError, KeyError):
            raise DamagedFile(
                f"{self._checkpoint}: belongs to another network than the one that this run trains. "
                "Remove it, and the run begins anew from its first step."
            ) from None
        self.progress = was.progress

    def _restore_weights(self, was: Checkpoint) -> None:
        self.model.load_state_dict(was.model)
        checkpoint.restore(self._optimizer, was.optimizer)
        self._average = {name: value.to(self._device) for name, value in was.average.items()}
        self._state = was.state and was.state.to(self._device)


def _exp(loss: float) -> float:
    """A perplexity, however bad."""
    return math.exp(loss) if loss < 700 else math.inf
