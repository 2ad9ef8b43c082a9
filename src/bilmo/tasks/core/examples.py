"""Examples as a network is trained and evaluated on them: checked, made into items, with a dev set.

Knows: the specification. Blind to: networks, files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from bilmo.errors import TextError
from bilmo.tasks.core.spec import Answer, Dataset, Example, ItemT, Prepared, SettingsT, Task
from bilmo.tasks.data.splitting import ModelSplit
from bilmo.tasks.network.batch import Text, tokens_of

UNBALANCED = 10
"""Labels are reported as unbalanced where one occurs this many times as often as another."""


@dataclass(frozen=True)
class TrainingExamples(Generic[ItemT, Answer]):
    """The items on which a task is trained and evaluated."""

    items: list[ItemT]
    """To train on."""
    dev_items: list[ItemT]
    dev_answers: list[Answer]
    given: list[list[ItemT]]
    """The data sets as they were given. Their layers are stored before a dev set is split off, so that every split
    finds them."""
    counts: dict[str, int]
    """How often each label occurs among the items to train on."""
    notes: list[str]
    """What a user should know about the data."""

    @property
    def dev_split_off(self) -> bool:
        """Whether the dev set is a part of the training examples."""
        return len(self.given) == 1


def prepare_examples(
    task: Task[Example, ItemT, Answer, SettingsT],
    train: Dataset[Example, Answer],
    dev: Dataset[Example, Answer] | None,
    settings: SettingsT,
    model_split: ModelSplit,
) -> tuple[Prepared[Example, ItemT, Answer, SettingsT], TrainingExamples[ItemT, Answer]]:
    """Prepare a task for its training examples, and these for the task.

    model_split: how the training text of the biLM was split.
    """
    train = listed_data(train)
    prepared, answers, notes = task.prepare(train, settings, model_split)
    labelled = list(zip(prepared.items(train.examples, answers), answers, strict=True))
    given = [[item for item, _ in labelled]]
    if dev is None:
        training, held_out = split_off(labelled, settings.dev_share, prepared.split_by)
    else:
        dev = listed_data(dev)
        dev_answers = prepared.check(dev.examples, dev.answers)
        training, held_out = labelled, list(zip(prepared.items(dev.examples), dev_answers, strict=True))
        given.append([item for item, _ in held_out])
    counts = prepared.count(answer for _, answer in training)
    notes = [*notes, *_label_notes(counts, prepared.count(answer for _, answer in held_out))]
    empty = sum(not tokens_of(item) for part in given for item in part)
    if empty:
        notes.append(f"{empty:,} texts have no tokens; their predictions depend only on the frequency of the labels")
    return prepared, TrainingExamples(
        items=[item for item, _ in training],
        dev_items=[item for item, _ in held_out],
        dev_answers=[answer for _, answer in held_out],
        given=given,
        counts=counts,
        notes=notes,
    )


def listed_data(data: Dataset[Example, Answer]) -> Dataset[Example, Answer]:
    """Lists of examples and answers, of the same length and not empty."""
    if isinstance(data.examples, str) or isinstance(data.answers, str):
        raise TextError("texts and their labels must be lists; found one string")
    examples, answers = list(data.examples), list(data.answers)
    if len(examples) != len(answers):
        raise TextError(f"there are {len(examples)} texts, but labels for {len(answers)}; each text needs its own")
    if not examples:
        raise TextError("there are no examples; give at least one text and its label")
    return Dataset(examples, answers, data.form)


def split_off(
    labelled: Sequence[tuple[ItemT, Answer]], share: float, texts_of: Callable[[ItemT], Sequence[Text]]
) -> tuple[list[tuple[ItemT, Answer]], list[tuple[ItemT, Answer]]]:
    """Examples to train on, and a share of them as the dev set, chosen by a hash of their words.

    The same text is never in both parts, and every seed has the same dev set.
    """
    hashes = [
        hashlib.sha256(repr([list(s) for text in texts_of(item) for s in text]).encode("utf-8", "replace")).digest()
        for item, _ in labelled
    ]
    border = sorted(hashes)[max(1, round(len(labelled) * share)) - 1]
    held_out = [one for one, key in zip(labelled, hashes, strict=True) if key <= border]
    training = [one for one, key in zip(labelled, hashes, strict=True) if key > border]
    if not training:
        raise TextError(
            f"there are too few different texts among {len(labelled)} examples to split off a dev set; give a dev set"
        )
    return training, held_out


def _label_notes(train: dict[str, int], dev: dict[str, int]) -> list[str]:
    """Notes for the user about the labels of the training and the dev set."""
    if not train:
        return []
    notes = []
    most, least = max(train, key=lambda label: train[label]), min(train, key=lambda label: train[label])
    if train[most] >= UNBALANCED * train[least]:
        notes.append(
            f"labels are unbalanced: {most} occurs {train[most]:,} times, {least} {train[least]:,} times. "
            "Read the table per label, not only the one number."
        )
    unseen = sorted(dev.keys() - train.keys())
    if unseen:
        notes.append(f"the dev set has labels that do not occur in the training examples: {', '.join(unseen[:10])}")
    return notes
