"""Commands that have one sub-command per task: names, options and help come from the specifications of the tasks.

Each setting of a task is an option with the same name; the docstring under the setting is its help.

Knows: typer, the list of tasks. Blind to: single tasks, what the commands do.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from bilmo.cli.completion import complete_one_of
from bilmo.cli.options import DEVICE, complete_device, with_shared_options
from bilmo.cli.show.examples import epilog

if TYPE_CHECKING:
    from bilmo.tasks.core.settings import Settings
    from bilmo.tasks.core.spec import AnyTask, Dataset

Train = Annotated[
    Path, typer.Option(help="Training examples: a file (plain, .gz, .xz, .zst; - for standard input) or a folder.")
]
Dev = Annotated[
    Path | None, typer.Option(help="Examples for the evaluation after each epoch.", show_default="a share of --train")
]
Test = Annotated[Path | None, typer.Option(help="Examples for the evaluation of the final result.")]
FILES = "<path> [<path>]"
PAIRS = "two parallel files, or one file of pairs (plain, .gz, .xz, .zst)"
PARALLEL = {
    "train": Annotated[list[Path], typer.Option("--train", metavar=FILES, help=f"Training pairs: {PAIRS}.")],
    "dev": Annotated[
        list[Path] | None,
        typer.Option(
            "--dev",
            metavar=FILES,
            help="Pairs for the evaluation after each epoch.",
            show_default="a share of --train",
        ),
    ],
    "test": Annotated[
        list[Path] | None,
        typer.Option("--test", metavar=FILES, help="Pairs for the evaluation of the final result."),
    ],
}
"""The same options for tasks that read parallel files, as in `--train train.en train.de`."""
WordVectors = Annotated[
    str | None,
    typer.Option(help="Word vectors in addition to ELMo: a GloVe or word2vec file, or `scratch` to train them."),
]
Form = Annotated[
    str, typer.Option(help="Format of the data files, one of those in `bilmo fit TASK --help`; `auto` detects it.")
]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder in which the computed layers of the data are stored.", show_default="the user's cache folder"
    ),
]
LayersDevice = Annotated[
    str,
    typer.Option(
        "--device",
        help=f"Where the layers of the model are computed: {DEVICE} The task itself runs on the CPU.",
        autocompletion=complete_device,
    ),
]


def task_group(
    build: Callable[[AnyTask], Callable[..., None]], text: str, more: Mapping[str, Callable[..., None]] | None = None
) -> typer.Typer:
    """A command with one sub-command per task. `build` makes the function of a sub-command.

    more: functions of further sub-commands, by name.
    """
    others = more or {}

    class TaskGroup(TyperGroup):
        """Sub-commands are made when they are asked for."""

        def list_commands(self, ctx: Any) -> list[str]:
            return [*(task.name for task in _tasks()), *others]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            task = next((task for task in _tasks() if task.name == cmd_name), None)
            function = build(task) if task is not None else others.get(cmd_name)
            if function is None:
                return None
            app = typer.Typer(rich_markup_mode="markdown", add_completion=False, pretty_exceptions_enable=False)
            kind = TwoFiles if task is not None and task.parallel else TyperCommand
            shown = epilog(str(ctx.info_name), cmd_name)
            app.command(cmd_name, cls=kind, epilog=shown)(with_shared_options(function))
            return typer.main.get_command(app)

    return typer.Typer(cls=TaskGroup, help=text, no_args_is_help=True, subcommand_metavar="TASK ...")


class TwoFiles(TyperCommand):
    """A command whose options --train, --dev and --test take one file or two."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`--train A B` becomes `--train A --train B`."""
        found: list[str] = []
        rest = list(args)
        while rest:
            found.append(rest.pop(0))
            files = [value for value in rest[:2] if value == "-" or not value.startswith("-")]
            if found[-1] in {f"--{name}" for name in PARALLEL} and len(files) == 2:
                found += [files[0], found[-1], files[1]]
                del rest[:2]
        return super().parse_args(ctx, found)


def with_settings(
    function: Callable[..., None], task: AnyTask, text: str, *, without: Collection[str] = ()
) -> Callable[..., None]:
    """Give a function that takes `**settings` the options of a task, for typer to see.

    without: settings that the command chooses itself.
    """
    signature = inspect.signature(function, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    if task.parallel:
        own = [p.replace(annotation=PARALLEL.get(p.name, p.annotation)) for p in own]
    hints, docs = get_type_hints(task.settings), docs_of(task.settings)
    for field in fields(task.settings):
        if field.name not in without:
            kind = {int: int, float: float, bool: bool}.get(hints[field.name], str)
            flag = [f"--{field.name.replace('_', '-')}"] if kind is bool else []  # no --no-... beside it
            values = [str(value) for value in get_args(hints[field.name]) if isinstance(value, str)]  # of a Literal
            complete = complete_one_of(*values) if values else None
            option = typer.Option(*flag, help=docs[field.name], autocompletion=complete)
            own.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=Annotated[kind, option],
                )
            )
    forms = ", ".join(f"{name} ({what})" for name, what in task.forms.items())
    function.__doc__ = f"{inspect.cleandoc(text)}\n\nData formats (--form): {forms}."
    function.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    return function


def listed_files(given: Path | Sequence[Path] | None) -> list[Path]:
    """The files of an option: none, one, or two that are parallel."""
    return [given] if isinstance(given, Path) else list(given or ())


def check_task_output(
    output: Path, model: Path, data: Iterable[Path | Sequence[Path] | None], *files: str | None
) -> None:
    """Refuse an output that is one of the inputs of a task: its data, or other files."""
    from bilmo.formats.open import files_of
    from bilmo.store.output import check_output

    others = [Path(file) for file in files if file]
    texts = [path for given in data for path in listed_files(given)]
    check_output([output], texts=texts, files=[*files_of(model), *others])


def read_data(task: AnyTask, given: Path | Sequence[Path], form: str, settings: Settings) -> Dataset[Any, Any]:
    """Read examples with answers, and print the notes about them."""
    from bilmo.cli.show import messages
    from bilmo.text.files import STDIN

    paths = listed_files(given)
    data = task.read_files(paths, form, settings)
    shown = " and ".join("standard input" if path == STDIN else str(path) for path in paths)
    messages.notes(f"{shown}: {note}" for note in data.notes)
    return data


def docs_of(kind: type) -> dict[str, str]:
    """The docstring under each field of a dataclass, those of its bases included."""
    found = {}
    for base in reversed(kind.__mro__):
        if is_dataclass(base):
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
            assert isinstance(tree, ast.ClassDef)
            for field, doc in pairwise(tree.body):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(doc, ast.Expr)
                    and isinstance(doc.value, ast.Constant)
                ):
                    found[ast.unparse(field.target)] = " ".join(str(doc.value.value).split())
    return found


def _tasks() -> tuple[AnyTask, ...]:
    """All tasks, as listed at the time of the call."""
    from bilmo.generate.all import all_tasks

    return all_tasks()
