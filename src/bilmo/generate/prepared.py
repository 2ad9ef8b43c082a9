"""The facts that a writing task learns from its pairs: target words, splitting of both sides, lengths of targets.

Knows: the specification, target text, files of pairs. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bilmo.errors import TextError
from bilmo.generate import attention_page, scores
from bilmo.generate.data.items import PairItem
from bilmo.generate.data.pairs_file import Fields, named_lines, read_pairs, read_sources
from bilmo.generate.data.subwords import UNKNOWN, train_subwords
from bilmo.generate.data.target_text import TargetText
from bilmo.generate.settings import GenerateSettings
from bilmo.tasks.core import html
from bilmo.tasks.core.spec import Dataset, PredictionInput, Prepared, Task
from bilmo.tasks.data.rows import row
from bilmo.tasks.data.splitting import ModelSplit, RawText, choose_task_dictionary, choose_text_split, split_texts
from bilmo.tasks.network.probabilities import Probabilities

if TYPE_CHECKING:
    from bilmo.embed.embedder import Embedder
    from bilmo.generate.network.head import GenerateHead, Hypothesis
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput

SettingsT = TypeVar("SettingsT", bound=GenerateSettings)


@dataclass(frozen=True, kw_only=True)
class PreparedPairs(Prepared[RawText, PairItem, str, SettingsT]):
    """Facts that are learned from the pairs before training."""

    words: tuple[str, ...]
    """The target words, the most frequent first."""
    lang: str
    """How sources are split."""
    target_lang: str
    """How targets are split."""
    chinese: bool
    """Whether targets are Chinese, which measures count in characters."""
    longest: int
    """Words of the longest target."""
    source_limit: int
    target_limit: int
    subwords: str = ""
    """Learned subwords, as JSON; empty where target tokens are words."""
    target_model: str = ""
    """SHA-256 of the forward direction of the target model; empty without one."""
    target_layers: tuple[int, int] = (0, 0)
    """Number and width of its layers."""

    def inputs(self) -> dict[str, str]:
        """The target model."""
        return {"the target model": self.target_model}

    @cached_property
    def target(self) -> TargetText:
        """Target text to tokens and back."""
        return TargetText(self.target_lang, self.dictionary, self.subwords)

    def check(self, examples: Sequence[RawText], answers: Sequence[RawText]) -> list[str]:
        """Targets as strings."""
        return [_string(number, answer) for number, answer in enumerate(answers, start=1)]

    def items(self, examples: Sequence[RawText], answers: Sequence[str] | None = None) -> list[PairItem]:
        """Sources and targets as tokens, cut off at their limits."""
        found = []
        targets = [()] * len(examples) if answers is None else map(self.target_tokens, answers)
        for text, sentences, target in zip(
            examples, split_texts(examples, self.lang, self.dictionary), targets, strict=True
        ):
            kept = cut(sentences, self.source_limit)
            found.append(PairItem(kept, self.target.copies(text, kept, self.lang), target))
        return found

    def target_tokens(self, answer: str) -> list[str]:
        """The words of a target, cut off at the limit."""
        return self.target.tokens(answer)[: self.target_limit]

    def head(self, input: TaskInput, settings: SettingsT) -> GenerateHead:
        """Encoder and decoder."""
        from bilmo.generate.network.head import GenerateHead

        return GenerateHead(input, self.words, self.target, self.longest, self.target_layers, settings)

    def count(self, answers: Iterable[str]) -> dict[str, int]:
        """There are no labels."""
        return {}

    def known(self) -> set[str]:
        """There are no labels."""
        return set()

    def header(self, form: str, *, probabilities: bool) -> str | None:
        """Names of columns; plain text and JSON lines have none."""
        return row(["number", "rank", "log_probability", "text"], form) if form in ("table", "csv") else None

    def lines(
        self,
        examples: Sequence[RawText],
        answers: Sequence[str],
        probabilities: Sequence[Probabilities] | None,
        form: str,
        number: int,
    ) -> Iterator[str]:
        """One line per text, without scores and attention."""
        for k, (example, answer) in enumerate(zip(examples, answers, strict=True), start=number):
            if form == "jsonl":
                yield json.dumps({"source": example, "text": answer}, ensure_ascii=False)
            elif form == "html":
                yield html.article([html.escaped(_shown(example)), html.escaped(answer)], str(k))
            else:
                yield _line(answer) if form == "text" else row([k, 1, "", answer], form)

    def result_lines(
        self, examples: Sequence[RawText], results: Sequence[Sequence[Hypothesis]], form: str, number: int
    ) -> Iterator[str]:
        """The results of a search: lines of text, rows of a table, JSON lines, or tables of attention in HTML."""
        for k, (example, some) in enumerate(zip(examples, results, strict=True), start=number):
            if form == "html":
                source = [token for sentence in self.items([example])[0].text for token in sentence]
                yield attention_page.article(source, some, str(k))
            elif form == "jsonl":
                found = [_entry(one) for one in some]
                yield json.dumps({"source": example, "results": found}, ensure_ascii=False)
            elif form == "text":
                yield from [_line(one.text) for one in some] or [""]
            else:
                for rank, one in enumerate(some, start=1):
                    yield row([k, rank, f"{one.log_probability:.4f}", one.text], form)

    def read_fields(self, path: Path, form: str, fields: Fields) -> PredictionInput[RawText]:
        """Sources of a file."""
        shown, examples = read_sources(path, form, fields)
        return PredictionInput(shown, examples)


PreparedT = TypeVar("PreparedT", bound=PreparedPairs[Any])


class GenerateTask(Task[RawText, PairItem, str, SettingsT]):
    """The common part of all tasks that write."""

    outputs = ("text", "table", "csv", "jsonl", "html")
    parallel = True

    def fields(self, settings: SettingsT) -> Fields:
        """The names of source and target in a file."""
        raise NotImplementedError

    def read(self, path: Path, form: str, settings: SettingsT) -> Dataset[RawText, str]:
        """Pairs from one file."""
        return self.read_files([path], form, settings)

    def read_files(self, paths: Sequence[Path], form: str, settings: SettingsT) -> Dataset[RawText, str]:
        """Pairs from one file, or from two parallel ones."""
        pairs = read_pairs(paths, form, self.fields(settings))
        targets = [_string(number, target) for number, target in enumerate(pairs.targets, start=1)]
        return Dataset(pairs.sources, targets, pairs.form, pairs.notes)

    def _target_model(self, settings: SettingsT) -> Embedder | None:
        """The forward direction of the model of the target language, where one is given."""
        if settings.target_model is None:
            return None
        from bilmo.generate.network.target_model import load_forward

        return load_forward(settings.target_model)

    def facts(
        self, data: Dataset[RawText, str], settings: SettingsT, model_split: ModelSplit
    ) -> tuple[dict[str, Any], list[str], list[str]]:
        """The fields of PreparedPairs, the targets as strings, and notes for the user about the data."""
        target_model = self._target_model(settings)
        split = model_split_of(target_model)
        target_lang = choose_text_split(settings.target_lang, data.answers, split.lang)
        answers = [_string(number, answer) for number, answer in enumerate(data.answers, start=1)]
        lang = choose_text_split(settings.lang, data.examples, model_split.lang)
        dictionary = choose_task_dictionary(
            settings.dictionary, "zh" if "zh" in (lang, target_lang) else lang, model_split
        )
        subwords = train_subwords(answers, settings.subwords) if settings.subwords else ""
        target = TargetText(target_lang, dictionary, subwords)
        tokens = [target.tokens(answer) for answer in answers]
        counts = Counter(token for some in tokens for token in some[: settings.target_limit])
        if subwords:
            words = [word for word, _ in counts.most_common() if word != UNKNOWN]
        else:
            words = [word for word, count in counts.most_common(settings.most_words) if count >= settings.min_count]
        if not words:
            raise TextError(
                f"every target word occurs less than {settings.min_count} times; lower min_count, or give more pairs"
            )
        longest = max(map(len, tokens))
        facts = {
            "words": tuple(words),
            "lang": lang,
            "target_lang": target_lang,
            "chinese": scores.is_chinese(answers[:2000]),
            "longest": min(longest, settings.target_limit),
            "source_limit": settings.source_limit,
            "target_limit": settings.target_limit,
            "dictionary": dictionary,
            "subwords": subwords,
        }
        if target_model is not None:
            from bilmo.generate.network.target_model import check_language

            check_language(target_model, str(settings.target_model), tokens)
            facts["target_model"] = target_model.bundle.identity()
            facts["target_layers"] = (target_model.config.layers + 1, target_model.config.vector_width)
        sizes = [sum(map(len, text)) for text in split_texts(data.examples, lang, dictionary)]
        notes = [
            f"sources are split as {lang}, targets as {'subwords' if subwords else target_lang}; {len(words):,} "
            f"{'subwords' if subwords else 'target words'}, which are "
            f"{sum(counts[word] for word in words) / counts.total():.1%} of all"
        ]
        for side, lengths, limit in (
            ("source", sizes, settings.source_limit),
            ("target", list(map(len, tokens)), settings.target_limit),
        ):
            long = [k for k, length in enumerate(lengths, start=1) if length > limit]
            if long:
                notes.append(
                    f"{len(long):,} {side}s have more than {limit:,} tokens, and are cut off there "
                    f"(--{side}-limit): {named_lines(long, 'pair')}; the longest has {max(lengths):,}"
                )
        return facts, answers, notes


def model_split_of(elmo: Embedder | None) -> ModelSplit:
    """How the training text of a model was split."""
    from bilmo.tasks.core.estimator import model_split

    return model_split(elmo)


def cut(text: Text, limit: int) -> Text:
    """The first tokens of a text."""
    found, left = [], limit
    for sentence in text:
        if left <= 0:
            break
        found.append(sentence[:left])
        left -= len(sentence)
    return found


def _string(number: int, answer: object) -> str:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Sequence) and all(isinstance(token, str) for token in answer):
        return " ".join(answer)
    raise TextError(f"target {number} is {answer!r:.60}; it must be a text or a list of words")


def _shown(example: RawText) -> str:
    return example if isinstance(example, str) else " ".join(example)


def _line(text: str) -> str:
    return text.replace("\n", " ")


def _entry(one: Hypothesis) -> dict[str, object]:
    return {
        "text": one.text,
        "log_probability": round(one.log_probability, 6),
        "score": round(one.score, 6),
        "tokens": [attention_page.plain(token) for token in one.tokens],
        "probabilities": [round(value, 6) for value in one.probabilities],
    }
