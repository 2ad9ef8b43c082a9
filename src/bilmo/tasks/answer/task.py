"""Answering questions: the part of a text that answers a question about it, or none.

Knows: Task, questions in files, splitters. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilmo.errors import TextError
from bilmo.tasks.answer.measure import ANSWER, NO_ANSWER, by_answer
from bilmo.tasks.answer.settings import OVERLAP, WINDOW, AnswerSettings
from bilmo.tasks.core import html
from bilmo.tasks.core.measure import Score
from bilmo.tasks.core.spec import Dataset, PredictionInput, Prepared, Task
from bilmo.tasks.data import squad
from bilmo.tasks.data.rows import row
from bilmo.tasks.data.splitting import ModelSplit, choose_task_dictionary, choose_text_split, split_texts
from bilmo.tasks.data.squad import Question, Span
from bilmo.tasks.network.probabilities import Probabilities
from bilmo.text.offsets import offsets

if TYPE_CHECKING:
    from bilmo.tasks.answer.head import AnswerHead
    from bilmo.tasks.answer.reader import Reader
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput

MOST_TOKENS, MOST_QUESTION = 20_000, 500
"""Maximum number of tokens of a context, and of a question; longer ones are refused."""
Asked = Question | tuple[str, str]
"""A context and a question."""
Answers = Sequence[Span]
"""All correct answers, or the predicted one; empty for no answer."""
Given = str | Span | Sequence[str | Span] | None
"""An answer as a user gives it: a text that occurs in the context, its place, several of them, or none."""


@dataclass(frozen=True)
class AnswerItem:
    """A question and its context, and the answers to learn."""

    question: Text
    text: Text
    """The context."""
    context: str
    offsets: Sequence[tuple[int, int]]
    """Where each token of the context begins and ends in it."""
    answers: Sequence[tuple[int, int]] | None = None
    """First and last token of each correct answer, empty for no answer; None where there is nothing to learn from."""

    @property
    def texts(self) -> Sequence[Text]:
        """The question and its context."""
        return self.question, self.text

    @property
    def windows(self) -> list[tuple[int, int]]:
        """First token and number of tokens of each window of the context; one for a context that is not long."""
        tokens = len(self.offsets)
        starts = range(0, max(1, tokens - OVERLAP), WINDOW - OVERLAP) if tokens > WINDOW else [0]
        return [(start, min(WINDOW, tokens - start)) for start in starts]


@dataclass(frozen=True, kw_only=True)
class PreparedAnswer(Prepared[Asked, AnswerItem, Answers, AnswerSettings]):
    """Facts learned from the training examples: how texts are split, and whether all questions have an answer."""

    lang: str
    """How strings are split."""
    no_answer: bool
    """Whether some questions have no answer, as in SQuAD 2.0."""

    def check(self, examples: Sequence[Asked], answers: Sequence[Given]) -> list[Answers]:
        """Answers as places in their context."""
        return [_spans(_checked(example), given) for example, given in zip(examples, answers, strict=True)]

    def items(self, examples: Sequence[Asked], answers: Sequence[Answers] | None = None) -> list[AnswerItem]:
        """Questions and contexts, split; each context once."""
        checked = [_checked(example) for example in examples]
        contexts = list(dict.fromkeys(question.context for question in checked))
        split = dict(zip(contexts, split_texts(contexts, self.lang, self.dictionary), strict=True))
        places = {context: offsets(context, [t for s in text for t in s]) for context, text in split.items()}
        questions = split_texts([question.question for question in checked], self.lang, self.dictionary)
        found = []
        for k, (asked, question) in enumerate(zip(checked, questions, strict=True)):
            _check_length("context", asked.context, len(places[asked.context]), MOST_TOKENS)
            _check_length("question", asked.question, sum(map(len, question)), MOST_QUESTION)
            learned = None if answers is None else _token_spans(answers[k], places[asked.context])
            found.append(AnswerItem(question, split[asked.context], asked.context, places[asked.context], learned))
        return found

    def split_by(self, item: AnswerItem) -> Sequence[Text]:
        """All questions about a context are in the same part."""
        return (item.text,)

    def head(self, input: TaskInput, settings: AnswerSettings) -> AnswerHead:
        """A head with a score for each part of the context, and for no answer if that is learned."""
        from bilmo.tasks.answer.head import AnswerHead

        return AnswerHead(input, self.no_answer, settings)

    def count(self, answers: Iterable[Answers]) -> dict[str, int]:
        """How many questions have an answer, and how many have none."""
        found = [bool(spans) for spans in answers]
        counts = {ANSWER: found.count(True), NO_ANSWER: found.count(False)}
        return {name: count for name, count in counts.items() if count}

    def known(self) -> set[str]:
        """What can be predicted."""
        return {ANSWER, NO_ANSWER} if self.no_answer else {ANSWER}

    def measure(self, true: Sequence[Answers], predicted: Sequence[Answers]) -> Score:
        """F1 and exact match, as the official script."""
        texts = [spans[0].text if spans else "" for spans in predicted]
        return by_answer([[span.text for span in spans] for spans in true], texts)

    def read(self, path: Path, form: str, settings: AnswerSettings) -> PredictionInput[Asked]:
        """Questions to answer; answers in the file are ignored."""
        source = squad.detect_form(path, form)
        return PredictionInput(squad.FORMS[source.form], squad.read_questions(source))

    def header(self, form: str, *, probabilities: bool) -> str | None:
        """Names of columns; JSONL has none."""
        if form == "jsonl":
            return None
        return row(["question", "answer", "begin", "end", *(["probability"] if probabilities else [])], form)

    def lines(
        self,
        examples: Sequence[Asked],
        answers: Sequence[Answers],
        probabilities: Sequence[Probabilities] | None,
        form: str,
        number: int,
    ) -> Iterator[str]:
        """One line per question; begin and end count characters of the context."""
        for k, (example, spans) in enumerate(zip(examples, answers, strict=True)):
            asked = _checked(example)
            share = [] if probabilities is None else list(probabilities[k])
            if form == "jsonl":
                begin, end, text = spans[0] if spans else (None, None, None)
                entry: dict[str, object] = {"id": asked.id} if asked.id else {}
                entry |= {"question": asked.question, "answer": text, "begin": begin, "end": end}
                entry |= {"probability": round(share[0], 6)} if share else {}
                yield json.dumps(entry | {"context": asked.context}, ensure_ascii=False)
            elif form == "html":
                sure = share[0] if share else None
                marks = [html.Mark(begin, end, 0, probability=sure) for begin, end, _ in spans]
                none = html.marked(NO_ANSWER, [html.Mark(0, len(NO_ANSWER), 1, probability=sure)])
                yield html.article([*([] if spans else [none]), html.marked(asked.context, marks)], asked.question)
            else:
                cells: list[object] = [spans[0].text, *spans[0][:2]] if spans else ["", "", ""]
                yield row([asked.question, *cells, *(f"{value:.4f}" for value in share)], form)


class Answer(Task[Asked, AnswerItem, Answers, AnswerSettings]):
    """The specification."""

    name = "answer"
    summary = "the part of a text that answers a question"
    settings = AnswerSettings
    prepared = PreparedAnswer
    forms: ClassVar = squad.FORMS
    outputs = ("table", "csv", "jsonl", "html")
    asks = True

    def read(self, path: Path, form: str, settings: AnswerSettings) -> Dataset[Asked, Answers]:
        """Questions and their answers."""
        source = squad.detect_form(path, form)
        found = squad.read_examples(source)
        return Dataset([example.question for example in found], [example.answers for example in found], source.form)

    def prepare(
        self, data: Dataset[Asked, Answers], settings: AnswerSettings, model_split: ModelSplit
    ) -> tuple[PreparedAnswer, list[Answers], list[str]]:
        """Choose how texts are split."""
        contexts = dict.fromkeys(_checked(example).context for example in data.examples)
        lang = choose_text_split(settings.lang, contexts, model_split.lang)
        answers: list[Answers] = [
            _spans(_checked(example), given) for example, given in zip(data.examples, data.answers, strict=True)
        ]
        if not any(answers):
            raise TextError("no question has an answer; there is nothing to learn")
        prepared = PreparedAnswer(
            lang=lang,
            no_answer=not all(answers),
            dictionary=choose_task_dictionary(settings.dictionary, lang, model_split),
        )
        left_out = sum(item.answers is None for item in prepared.items(data.examples, answers))
        notes = [f"{left_out:,} questions are not learned: their answers have more than {OVERLAP} tokens"]
        return prepared, answers, notes if left_out else []

    def estimator(self) -> type[Reader]:
        """Reader."""
        from bilmo.tasks.answer.reader import Reader

        return Reader


ANSWER_TASK = Answer()


def _checked(example: Asked) -> Question:
    """A context and a question, both strings."""
    if isinstance(example, Question):
        return example
    if not isinstance(example, tuple | list) or len(example) != 2 or not all(isinstance(t, str) for t in example):
        raise TextError(
            f"an example is {example!r:.60}; it must be a pair of two strings, the context and the question"
        )
    return Question(*example)


def _spans(asked: Question, given: Given) -> list[Span]:
    """Answers as places in the context; for a text alone, its first occurrence in the context."""
    if given is None:
        return []
    several = [given] if isinstance(given, str | Span) else given
    found = []
    for answer in several:
        if isinstance(answer, str):
            begin = asked.context.find(answer)
            if begin < 0:
                raise TextError(f"the answer {answer[:40]!r} does not occur in its context {asked.context[:40]!r}")
            answer = Span(begin, begin + len(answer), answer)
        if not isinstance(answer, tuple) or len(answer) != 3:
            raise TextError(f"an answer is {answer!r:.60}; it must be a string, a Span, a list of them, or None")
        span = Span(*answer)
        problem = squad.problem_of(asked.context, span)
        if problem:
            raise TextError(f"the question {asked.question[:40]!r}: {problem}")
        found.append(span)
    return found


def _token_spans(answers: Answers, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]] | None:
    """First and last token of each answer: the tokens that it touches. None if all answers are too long to learn."""
    begins, ends = [begin for begin, _ in places], [end for _, end in places]
    found = set()
    for answer in answers:
        first, last = bisect_right(ends, answer.begin), bisect_left(begins, answer.end) - 1
        if first <= last < first + OVERLAP:
            found.add((first, last))
    return sorted(found) if found or not answers else None


def _check_length(what: str, text: str, tokens: int, most: int) -> None:
    if tokens > most:
        raise TextError(
            f"the {what} that starts with {text[:40]!r} has {tokens:,} tokens; the limit is {most:,}. "
            "Split it into parts"
        )
