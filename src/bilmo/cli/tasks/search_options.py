"""Options of `bilmo predict` for tasks that write: how to search, how many results, a page of attention.

Knows: the search of translations and summaries. Blind to: typer, how texts are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bilmo.generate.generator import Generator
    from bilmo.tasks.core.spec import AnyTask

WriteResults = Callable[[Sequence[Any], int], Iterator[str]]
"""Texts and the number of the first one to lines of output."""


@dataclass(frozen=True)
class Search:
    """The options that were given; None for the others."""

    beam: int | None
    best: int | None
    length_penalty: float | None
    longest: int | None
    attention: Path | None

    def check(self, task: str, *, writes: bool) -> None:
        """Refuse these options for other tasks."""
        from bilmo.errors import ConfigError

        given = [f"--{one.name.replace('_', '-')}" for one in fields(self) if getattr(self, one.name) is not None]
        if given and not writes:
            raise ConfigError(f"{', '.join(given)}: only for tasks that write texts; this task is {task}")

    def choose_output(self, task: AnyTask, output: Path | None, to: str) -> str:
        """The form to write; several results for each text need a table."""
        form = task.choose_output(output, to)
        return "table" if form == "text" and to == "auto" and self.best is not None and self.best > 1 else form

    @contextmanager
    def writing(self, estimator: Generator[Any], form: str) -> Iterator[WriteResults]:
        """A function that writes results in a form, and beside it the page of attention, where one is asked for."""
        from bilmo.generate.attention_page import STYLE
        from bilmo.store.atomic import new_file
        from bilmo.tasks.core import html

        options = {"beam": self.beam, "length_penalty": self.length_penalty, "longest": self.longest}
        with ExitStack() as stack:
            page = None
            if self.attention is not None:
                partial = stack.enter_context(new_file(self.attention))
                page = stack.enter_context(partial.open("w", encoding="utf-8", errors="backslashreplace", newline="\n"))
                title = f"{estimator.task.name} · attention"
                page.write(html.header(title, STYLE) + "\n")

            def write(texts: Sequence[Any], number: int) -> Iterator[str]:
                found = estimator.hypotheses(texts, best=self.best or 1, **options)  # type: ignore[arg-type]
                if page is not None:
                    lines = estimator.prepared_.result_lines(texts, found, "html", number)
                    page.writelines(f"{line}\n" for line in lines)
                return estimator.prepared_.result_lines(texts, found, form, number)

            yield write
            if page is not None:
                page.write(html.FOOTER + "\n")
