"""The progress of a training run, and its events.

Knows: the facts of a corpus. Blind to: how a run works, who reads the events.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.net.softmax import perplexity
from bilmo.training.corpus import Facts


@dataclass
class Progress:
    """Where a run is."""

    epoch: int = 0
    step_in_epoch: int = 0
    steps: int = 0
    """Of the whole run."""
    seconds: float = 0.0
    """Time spent on steps and evaluations, without reading and saving."""
    best: float | None = None
    """The lowest held-out loss, nats per word, mean of both directions."""
    best_known: float | None = None
    """The loss of known words at that evaluation."""
    evaluations_without_improvement: int = 0
    """Since the best one."""
    last_evaluation_step: int | None = None
    skipped: int = 0
    """Steps that exploded and did not change the weights."""
    usual_loss: float | None = None
    """A running mean, nats per word, by which an exploding step is recognized."""
    finished: bool = False
    corpus: str = ""
    """Identifies the corpus; empty for one that was made before corpora had hashes."""


@dataclass(frozen=True)
class Cost:
    """The expected time and memory of a run, estimated from a trial step and a trial evaluation."""

    seconds: float
    """Until the end of the run."""
    memory: int
    """Bytes; 0 if unknown."""


@dataclass(frozen=True)
class Reading:
    """The text is being read; a resumed run does not read it again."""

    def __str__(self) -> str:
        return "reading the text"


@dataclass(frozen=True)
class Ready:
    """Before the first step."""

    corpus: Facts
    vocab: int
    """Words that can be predicted."""
    unknown: float
    """Share of the held-out words that are not in the vocabulary."""
    left_out: int
    """Distinct words of the training text that are not in the vocabulary."""
    parameters: int
    resumed: bool
    cost: Cost
    notes: list[str]
    """What a user should know about the run."""

    def __str__(self) -> str:
        """The main facts."""
        tokens, held_out = self.corpus.tokens["train"], self.corpus.tokens["held_out"]
        return (
            f"{'resumed' if self.resumed else 'new'} run: {tokens:,} words to train on and {held_out:,} held out, "
            f"{self.vocab:,} words in the vocabulary, {self.unknown:.2%} of the held-out words unknown, "
            f"{self.parameters:,} parameters"
        )


@dataclass(frozen=True)
class Step:
    """One update of the weights."""

    number: int
    epoch: int
    done: float
    """Share of the run."""
    loss: float
    """Nats per word, mean of both directions."""
    rate: float
    words: int
    seconds: float
    skipped: bool = False
    """The loss exploded, so the weights were not changed."""

    def __str__(self) -> str:
        if self.skipped:
            return f"step {self.number}: the loss exploded ({self.loss:.4g}); the step was skipped"
        return f"step {self.number}: loss {self.loss:.3f}, {self.words / self.seconds:,.0f} words/s"


@dataclass(frozen=True)
class Evaluation:
    """Perplexity on held-out text, by the full softmax."""

    number: int
    """Number of the last step before the evaluation."""
    forward: float
    backward: float
    mean: float
    """Perplexity of both directions together: exp of the mean of both losses."""
    known: float
    """The same for words in the vocabulary only, because unknown words are easy to predict and lower `mean`."""
    words: int
    """Words predicted, including boundaries."""
    best: bool
    """Whether this evaluation is better than all before it."""

    def __str__(self) -> str:
        return (
            f"step {self.number:>7,}  held-out perplexity {self.mean:8.2f}  "
            f"(forward {self.forward:.2f}, backward {self.backward:.2f}; known words {self.known:.2f})"
            f"{'  best so far' if self.best else ''}"
        )


@dataclass(frozen=True)
class Finished:
    """The end of the run, or of one that was complete before."""

    progress: Progress
    reason: str

    def __str__(self) -> str:
        found = self.progress
        best = "" if found.best is None else f"; held-out perplexity {perplexity(found.best):.2f}"
        if found.best_known is not None:
            best += f", of known words {perplexity(found.best_known):.2f}"
        return f"{self.reason}; {found.steps:,} steps in {found.seconds / 60:.1f} minutes{best}"


Event = Reading | Ready | Step | Evaluation | Finished
