"""`bilmo fit`: labelled examples to a classifier or a tagger."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from bilmo.tasks.core.estimator import Task


class TaskName(StrEnum):
    """What can be learned."""

    classify = "classify"
    tag = "tag"


class Where(StrEnum):
    """Where ELMo is joined."""

    input = "input"
    output = "output"
    both = "both"
    none = "none"


FORMS = (
    "How the files look, where bilmo should not find out: tab (label<TAB>text), space (label text), csv, jsonl, "
    "folder (a folder a class); conll, conllu, jsonl; for predict also lines (texts or sentences alone)."
)
Name = Annotated[TaskName, typer.Argument(help="`classify`: a label a text. `tag`: a tag a token.")]
Model = Annotated[Path, typer.Argument(help="A model of any layout.")]
Train = Annotated[Path, typer.Option(help="Examples to learn from; plain, .gz, .xz or .zst, or a folder.")]
Dev = Annotated[Path | None, typer.Option(help="Examples to judge each epoch by; without it, some are split off.")]
Test = Annotated[Path | None, typer.Option(help="Examples to measure with when all is learned.")]
VectorsFile = Annotated[
    str | None, typer.Option(help="Word vectors beside ELMo: a GloVe or word2vec file, or `scratch` to learn them.")
]
MixName = Annotated[
    str, typer.Option(help="`weighted` (learned), `top`, `mean`, `concat`, or numbers of layers, as in `0,1`.")
]
Head = Annotated[
    str,
    typer.Option(
        help="classify: `mean`, `max` or `attention` (pool and dense layers), `lstm`, `bilstm`, `linear`. "
        "tag: `bilstm-crf`, `linear`. The first is the default."
    ),
]
Form = Annotated[str, typer.Option(help=FORMS)]
Column = Annotated[
    str, typer.Option(help="tag: upos or xpos of CoNLL-U; of other columns a number, counted from 1 (the last).")
]
Cache = Annotated[
    Path | None, typer.Option(help="Where layers of the data are kept, to be computed once; else the user's own place.")
]
Hidden = Annotated[int, typer.Option(help="Width of dense layers, and of one direction of an LSTM.")]
Chars = Annotated[int, typer.Option(help="Filters of a small character CNN of the task's own; 0: none.")]
Dropout = Annotated[float, typer.Option(help="On what goes in and before the last layer.")]
Rate = Annotated[float, typer.Option(help="The learning rate.")]
BatchSize = Annotated[int, typer.Option(help="Examples in a step.")]
Epochs = Annotated[int, typer.Option(help="At most so many.")]
Patience = Annotated[int, typer.Option(help="Epochs without a better result on dev until it stops.")]
Lang = Annotated[str, typer.Option(help="How text is split: auto, spaces (it is split already), en, west, zh.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]


def fit(
    task: Name,
    model: Model,
    train: Train,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to make, or to go on with.")],
    dev: Dev = None,
    test: Test = None,
    vectors: VectorsFile = None,
    elmo: Annotated[Where, typer.Option(help="Where mixed ELMo layers join the task's own network.")] = Where.input,
    mix: MixName = "weighted",
    l2: Annotated[float, typer.Option(help="Keeps the weights of the mix small; 1 keeps them equal.")] = 0.001,
    head: Head = "default",
    hidden: Hidden = 200,
    dense: Annotated[int, typer.Option(help="classify: hidden layers after pooling.")] = 1,
    batch_norm: Annotated[
        bool, typer.Option("--batch-norm", help="classify: normalise before the last layer.")
    ] = False,
    chars: Chars = 0,
    dropout: Dropout = 0.5,
    tune: Annotated[
        bool, typer.Option("--tune", help="Train the biLM too; layers are then computed each time.")
    ] = False,
    tune_rate: Annotated[float, typer.Option(help="The biLM's own learning rate.")] = 0.0001,
    rate: Rate = 0.001,
    batch: BatchSize = 32,
    epochs: Epochs = 50,
    patience: Patience = 5,
    lang: Lang = "auto",
    form: Form = "auto",
    column: Column = "",
    cache: Cache = None,
    seed: Seed = 1,
) -> None:
    """Learn to classify texts or to tag tokens, on top of a model.

    The task gets [word vectors ; characters ; mixed ELMo layers] for each token. With a frozen model (the usual way)
    the layers of the data are computed once and kept. The same command again goes on where it stopped; Ctrl-C
    keeps the best so far.
    """
    from bilmo.cli.show import learning
    from bilmo.tasks.core import examples, run

    given = {
        "at": elmo.value,
        "mix": mix,
        "l2": l2,
        "head": head,
        "hidden": hidden,
        "dense": dense,
        "batch_norm": batch_norm,
        "chars": chars,
        "dropout": dropout,
        "tune": tune,
        "tune_rate": tune_rate,
        "rate": rate,
        "batch": batch,
        "epochs": epochs,
        "patience": patience,
        "lang": lang,
        "column": column,
        "seed": seed,
    }
    made = make(task, model, vectors, cache, given)
    source = examples.look(task.value, train, form=form)
    made.form_ = source.form
    learned = examples.taken(task.value, source, column=column)
    judged, tested = (read(task, path, form, column) if path else None for path in (dev, test))
    try:
        end = learning.watch(run.fit(made, output, learned, judged, model=str(model)))
    except KeyboardInterrupt:
        if (output / "config.json").exists():
            print(f"bilmo: the best so far is in {output}; the same command goes on from here", file=sys.stderr)
        raise
    if end is not None:
        print(f"{output}: {end.why}; epoch {end.epoch} was the best on dev, {end.value:.4f}")
    learning.mixes(made.mixes_)
    if tested is not None:
        print()
        tell_unseen(made, tested[1])
        learning.score(made.measure(tested[1], made.predict(tested[0])))


def make(task: TaskName, model: Path, vectors: str | None, cache: Path | None, settings: dict[str, Any]) -> Task:
    """The task on its model; a model that nobody looks at is not loaded."""
    from bilmo.embed.load import load
    from bilmo.tasks.core.folder import TASKS
    from bilmo.tasks.core.settings import settings_of
    from bilmo.tasks.network.words import loaded

    checked = settings_of(settings)
    elmo = load(model) if checked.at != "none" else None
    return TASKS[task.value](elmo, vectors=loaded(vectors) if vectors else None, cache=cache, **settings)


def read(task: TaskName, path: Path, form: str, column: str) -> tuple[Any, Any]:
    """Examples from a file."""
    from bilmo.tasks.core import examples

    return examples.read(task.value, path, form=form, column=column)


def tell_unseen(task: Task, answers: Any) -> None:
    """Labels that were never learned can never be answered: say so."""
    from bilmo.cli.show import tables as show

    unseen = task.unseen(answers)
    if unseen:
        what = ", ".join(f"{label} ({count:,})" for label, count in unseen.items())
        show.notes([f"labels that were never learned, so never answered: {what}"])
