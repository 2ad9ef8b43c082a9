"""Role labelling: the predicates of a sentence, and for each the words that fill its roles.

Knows: Task, sentences with frames, splitters. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilmo.errors import TextError
from bilmo.ids.batch import listed
from bilmo.tasks.core import html
from bilmo.tasks.core.measure import Score
from bilmo.tasks.core.spec import Dataset, PredictionInput, Prepared, Task, check_labels
from bilmo.tasks.data import frames as files
from bilmo.tasks.data import spans
from bilmo.tasks.data.frame_columns import NONE, PREDICATE
from bilmo.tasks.data.frames import Frame, Marked
from bilmo.tasks.data.rows import row
from bilmo.tasks.data.splitting import ModelSplit, choose_task_dictionary, split_lines
from bilmo.tasks.network.probabilities import Probabilities
from bilmo.tasks.roles.measure import by_argument
from bilmo.tasks.roles.settings import RolesSettings
from bilmo.text.split import splitter

if TYPE_CHECKING:
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput
    from bilmo.tasks.roles.head import RolesHead
    from bilmo.tasks.roles.labeler import RoleLabeler

MOST_ROLES = 500
"""PropBank has about 60, continuations and references included. Time and memory grow with the square of the number."""
Sentence = Sequence[str] | Marked
"""The words of a sentence, with or without its predicates."""
Frames = Sequence[Frame]


@dataclass(frozen=True)
class RolesItem:
    """One sentence as a text, the predicates that are marked, and the frames to learn."""

    text: Text
    marked: Sequence[int] | None
    """None where the predicates are to be found."""
    frames: Sequence[tuple[int, Sequence[int]]] = ()
    """For training: each predicate, and the number of the tag of each word."""

    @property
    def texts(self) -> Sequence[Text]:
        """The one text."""
        return (self.text,)


@dataclass(frozen=True, kw_only=True)
class PreparedRoles(Prepared[Sentence, RolesItem, Frames, RolesSettings]):
    """Facts learned from the training examples: the roles, and how the biLM's text was split."""

    roles: tuple[str, ...]
    """All roles, that of the predicate itself (V) included."""
    model_split: str = ""
    """How the training text of the biLM was split, so that raw text is split alike; empty where that is unknown."""

    def __post_init__(self) -> None:
        check_labels(self.roles, most=MOST_ROLES)

    @property
    def tags(self) -> list[str]:
        """The tags that the network predicts."""
        return [spans.OUTSIDE, *(f"{prefix}-{role}" for role in self.roles for prefix in "BI")]

    def check(self, examples: Sequence[Sentence], answers: Sequence[Frames]) -> list[Frames]:
        """Each frame must fit its sentence."""
        return _checked(examples, answers)

    def items(self, examples: Sequence[Sentence], answers: Sequence[Frames] | None = None) -> list[RolesItem]:
        """Each sentence as a text of one sentence."""
        sentences = listed([_tokens(example) for example in examples])
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        found = []
        for k, (example, tokens) in enumerate(zip(examples, sentences, strict=True)):
            marked = _marked(example, k)
            learned = [
                (frame.predicate, [numbers[tag] for tag in frame.tags]) for frame in (answers[k] if answers else ())
            ]
            found.append(RolesItem([tokens] if tokens else [], marked, learned))
        return found

    def head(self, input: TaskInput, settings: RolesSettings) -> RolesHead:
        """A head that finds predicates and predicts one tag per word for each."""
        from bilmo.tasks.roles.head import RolesHead

        return RolesHead(input, self.tags, settings)

    def count(self, answers: Iterable[Frames]) -> dict[str, int]:
        """How often each role occurs, that of the predicate itself left out."""
        kinds = Counter(kind for frames in answers for frame in frames for kind, _, _ in spans.spans(frame.tags))
        del kinds[PREDICATE]
        return dict(sorted(kinds.items()))

    def known(self) -> set[str]:
        """The trained roles."""
        return set(self.roles) - {PREDICATE}

    def measure(self, true: Sequence[Frames], predicted: Sequence[Frames]) -> Score:
        """F1 over (predicate, role, span) as srl-eval.pl counts it; precision, recall and F1 per role."""
        return by_argument(true, predicted)

    def read(self, path: Path, form: str, settings: RolesSettings) -> PredictionInput[Sentence]:
        """Sentences to label. Lines of raw text are split; each of their sentences is one example."""
        source = files.detect_input_form(path, form)
        if source.form != "lines":
            return PredictionInput(files.FORMS[source.form], files.read_sentences(source))
        lang, sentences = split_lines(source.rows, settings.lang, self.model_split, self.dictionary)
        return PredictionInput(f"{files.FORMS['lines']}, split as {lang}", sentences)

    def header(self, form: str, *, probabilities: bool) -> str | None:
        """Names of columns; CoNLL and JSONL have none."""
        if form not in ("table", "csv"):
            return None
        names = ["sentence", "index", "predicate", "role", "text", *(["probability"] if probabilities else [])]
        return row(names, form)

    def lines(
        self,
        examples: Sequence[Sentence],
        answers: Sequence[Frames],
        probabilities: Sequence[Probabilities] | None,
        form: str,
        number: int,
    ) -> Iterator[str]:
        """One row per role; in JSONL one line per sentence; in CoNLL one line per word."""
        for k, (example, frames) in enumerate(zip(examples, answers, strict=True)):
            tokens = _tokens(example)
            shares = [] if probabilities is None else _by_frame(probabilities[k], len(frames), len(tokens))
            if form == "jsonl":
                yield json.dumps(_entry(tokens, frames, shares), ensure_ascii=False)
            elif form == "conll":
                yield from _columns(tokens, frames)
            elif form == "html":
                yield self._article(tokens, frames, shares)
            else:
                for cells in _table(tokens, frames, shares):
                    yield row([number + k, *cells], form)

    def _article(self, tokens: Sequence[str], frames: Frames, shares: Sequence[Sequence[float]]) -> str:
        """The sentence once per predicate, with its roles in colour; once if it has no predicates."""
        colours = {role: number for number, role in enumerate(self.roles)}
        shown = []
        for k, frame in enumerate(frames):
            marks = [
                html.Mark(start, end + 1, colours[kind], kind, min(shares[k][start : end + 1]) if shares else None)
                for kind, start, end in spans.spans(frame.tags)
            ]
            shown.append(html.marked(tokens, marks))
        return html.article(shown or [html.marked(tokens, [])])


class Roles(Task[Sentence, RolesItem, Frames, RolesSettings]):
    """The specification."""

    name = "roles"
    summary = "semantic roles: the predicates of a sentence, and who did what to whom"
    settings = RolesSettings
    prepared = PreparedRoles
    forms: ClassVar = {name: what for name, what in files.FORMS.items() if name != "lines"}
    outputs = ("table", "csv", "jsonl", "conll", "html")

    def read(self, path: Path, form: str, settings: RolesSettings) -> Dataset[Sentence, Frames]:
        """Sentences, whose predicates are marked, and their frames."""
        source = files.detect_form(path, form)
        found = files.read_examples(source)
        marked = [Marked(example.tokens, [frame.predicate for frame in example.frames]) for example in found]
        return Dataset(marked, [example.frames for example in found], source.form)

    def prepare(
        self, data: Dataset[Sentence, Frames], settings: RolesSettings, model_split: ModelSplit
    ) -> tuple[PreparedRoles, list[Frames], list[str]]:
        """Collect the roles."""
        answers = _checked(data.examples, data.answers)
        if settings.lang != "auto":
            splitter(settings.lang)  # an unknown name is an error now, not when raw text is read
        all_frames = [frame for frames in answers for frame in frames]
        roles = {kind for frame in all_frames for kind, _, _ in spans.spans(frame.tags)} | {PREDICATE}
        if not all_frames or len(roles) < 2:
            found = "no predicates" if not all_frames else f"no roles but {PREDICATE}, the predicates themselves"
            raise TextError(f"the training examples have {found}; there is nothing to learn")
        if len(roles) > MOST_ROLES:
            some = ", ".join(sorted(roles)[:3])
            raise TextError(f"{len(roles):,} different roles, such as {some}; accepted: at most {MOST_ROLES}")
        other = sum(frame.tags[frame.predicate] != f"B-{PREDICATE}" for frame in all_frames)
        notes = (
            [
                f"{other:,} of {len(all_frames):,} predicates do not have the tag B-{PREDICATE}, which each predicted "
                "predicate gets"
            ]
            if other
            else []
        )
        prepared = PreparedRoles(
            roles=tuple(sorted(roles)),
            model_split=model_split.lang,
            dictionary=choose_task_dictionary(settings.dictionary, settings.lang, model_split),
        )
        return prepared, answers, notes

    def estimator(self) -> type[RoleLabeler]:
        """RoleLabeler."""
        from bilmo.tasks.roles.labeler import RoleLabeler

        return RoleLabeler


ROLES = Roles()


def _tokens(example: Sentence) -> Sequence[str]:
    return example.tokens if isinstance(example, Marked) else example


def _marked(example: Sentence, number: int) -> list[int] | None:
    """The marked predicates of an example, in the order of the words."""
    if not isinstance(example, Marked):
        return None
    found = sorted(map(operator.index, example.predicates))
    problem = files.problem_of(example.tokens, [(index, ()) for index in found], tagged=False)
    if problem:
        raise TextError(f"sentence {number}: {problem}")
    return found


def _checked(examples: Sequence[Sentence], answers: Sequence[Frames]) -> list[Frames]:
    """Frames as plain values, in the order of the words."""
    checked: list[Frames] = []
    sentences = listed([_tokens(example) for example in examples])
    for number, (tokens, given) in enumerate(zip(sentences, answers, strict=True)):
        try:
            frames = sorted(Frame(operator.index(index), listed([tags])[0]) for index, tags in given)
        except (TypeError, ValueError):
            raise TextError(
                f"sentence {number}: its answer is {given!r:.60}; it must be a list of frames, each the position of a "
                "predicate and a list with one tag per word"
            ) from None
        problem = files.problem_of(tokens, frames)
        if problem:
            raise TextError(f"sentence {number}: {problem}")
        checked.append(frames)
    return checked


def _by_frame(shares: Probabilities, frames: int, tokens: int) -> list[list[float]]:
    """The probabilities of all tags of a sentence, one frame after the other, as one list per frame."""
    return [shares[k * tokens : (k + 1) * tokens] for k in range(frames)]


def _entry(tokens: Sequence[str], frames: Frames, shares: Sequence[Sequence[float]]) -> dict[str, object]:
    """A sentence as JSON, in the form that is read."""
    verbs: list[dict[str, object]] = [
        {"index": frame.predicate, "word": tokens[frame.predicate], "tags": list(frame.tags)} for frame in frames
    ]
    for verb, values in zip(verbs, shares, strict=False):
        verb["probabilities"] = [round(value, 6) for value in values]
    return {"words": list(tokens), "verbs": verbs}


def _table(tokens: Sequence[str], frames: Frames, shares: Sequence[Sequence[float]]) -> Iterator[list[object]]:
    """Rows with predicate, role and words; the probability of a role is that of the least probable of its tags."""
    for k, frame in enumerate(frames):
        for kind, start, end in spans.spans(frame.tags):
            cells: list[object] = [frame.predicate, tokens[frame.predicate], kind, " ".join(tokens[start : end + 1])]
            yield [*cells, *([f"{min(shares[k][start : end + 1]):.4f}"] if shares else [])]


def _columns(tokens: Sequence[str], frames: Frames) -> Iterator[str]:
    """CoNLL-2005: the words, the predicates, and one column of brackets for each; a blank line at the end."""
    marked = {frame.predicate for frame in frames}
    columns = []
    for frame in frames:
        cells = ["*"] * len(tokens)
        for kind, start, end in spans.spans(frame.tags):
            cells[start] = f"({kind}*"
            cells[end] += ")"
        columns.append(cells)
    for k, token in enumerate(tokens):
        target = (token if token != NONE else "_") if k in marked else NONE
        yield row([token, target, *(cells[k] for cells in columns)], "conll")
    yield ""
