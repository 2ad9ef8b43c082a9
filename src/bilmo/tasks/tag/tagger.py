"""A tag for each token of a sentence.

Knows: Task, the head for tokens, span schemes. Blind to: files, the command line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from bilmo.errors import TextError
from bilmo.ids.batch import listed
from bilmo.tasks.core import splitting
from bilmo.tasks.core.estimator import Task
from bilmo.tasks.core.measure import Score, by_span, by_token
from bilmo.tasks.core.settings import Settings
from bilmo.tasks.data import spans
from bilmo.tasks.data.spans import Scheme
from bilmo.tasks.network.feed import Text, TextBatch
from bilmo.tasks.network.heads import TokenHead
from bilmo.tasks.network.input import WayIn


class Tagger(Task):
    """Learns tags of tokens, and gives them to others.

    >>> Tagger(elmo).fit(sentences, tags).predict(sentences)        # doctest: +SKIP

    Tags that mark spans (IO, IOB1, BIO, BIOES) are learned as BIOES, for it says most about where a span ends, and
    given back in the scheme they came in. All other tags are learned as they are.
    """

    name = "tag"
    labels_: list[str]
    """The tags that are learned."""
    scheme_: Scheme
    """How the tags given mark spans; plain where they mark none."""
    rules_: str
    """By which the text of the biLM was split, for raw text to be split alike; empty where that is not known."""

    def _checked(self, raw: Sequence[Any], answers: Sequence[Any], *, learned: bool) -> list[Any]:
        for number, (tokens, tags) in enumerate(zip(listed(raw), listed(answers), strict=True)):
            if len(tokens) != len(tags):
                raise TextError(f"sentence {number} has {len(tokens)} tokens, but {len(tags)} tags")
        return list(answers)

    def _learn_forms(self, raw: Sequence[Any], answers: Sequence[Any], settings: Settings) -> list[str]:
        splitting.chosen(settings.lang, (), "")  # must be known
        self.rules_ = splitting.of_model(self.elmo)
        self.scheme_, broken = spans.scheme_of(answers)
        if self.scheme_ == "plain":
            self.labels_ = sorted({tag for tags in answers for tag in tags})
        else:
            self.labels_ = spans.bioes_tags(kind for tags in answers for kind, _, _ in spans.spans(tags))
        if len(self.labels_) < 2:
            raise TextError(f"every token has the same tag ({', '.join(self.labels_)}); there is nothing to learn")
        if broken:
            return [f"{broken:,} tags break the scheme {self.scheme_}; they are read as conlleval reads them"]
        return []

    def _texts(self, raw: Sequence[Any]) -> list[Text]:
        return [[sentence] if sentence else [] for sentence in listed(raw)]

    def way(self, lines: Sequence[str]) -> str:
        """How such raw text is split into the words that this tagger takes: the name of a splitter."""
        return splitting.chosen(self.used_.lang, lines, self.rules_)

    def _counted(self, answers: Sequence[Any]) -> dict[str, int]:
        if self.scheme_ == "plain":
            return dict(sorted(Counter(tag for tags in answers for tag in tags).items()))
        # A span without a type goes by its first tag, and so does a tag of no scheme at all.
        kinds = Counter(kind or tags[start] for tags in answers for kind, start, _ in spans.spans(tags))
        return dict(sorted(kinds.items()))

    def _known(self) -> set[str]:
        if self.scheme_ == "plain":
            return set(self.labels_)
        return {spans.parts(tag)[1] or tag for tag in self.labels_ if tag != spans.OUTSIDE}

    def _head(self, way_in: WayIn, settings: Settings) -> nn.Module:
        outside = [*self.labels_, spans.OUTSIDE]  # before the first token, and after the last
        plain = self.scheme_ == "plain"
        legal = [[plain or spans.may_follow(a, b) for b in outside] for a in outside]
        return TokenHead(way_in, torch.tensor(legal), settings)

    def _tokens(self) -> TokenHead:
        return cast("TokenHead", self.network_["head"])

    def _scores(self, batch: TextBatch) -> Tensor:
        return torch.as_tensor(self._tokens()(self.network_["way_in"](batch)))  # (B, T, K)

    def _loss(self, batch: TextBatch, answers: Sequence[Any]) -> Tensor:
        numbers = {tag: k for k, tag in enumerate(self.labels_)}
        tags = torch.zeros(batch.mask.shape, dtype=torch.long)
        for row, given in enumerate(answers):
            tags[row, : len(given)] = torch.tensor([numbers[tag] for tag in self._learned(given)], dtype=torch.long)
        return self._tokens().loss(self._scores(batch), batch.mask, tags)

    def _learned(self, tags: Sequence[str]) -> Sequence[str]:
        """Tags as they are learned."""
        return tags if self.scheme_ == "plain" else spans.write(spans.spans(tags), len(tags), "BIOES")

    def _paths(self, batch: TextBatch) -> list[list[int]]:
        return self._tokens().crf.best(self._scores(batch), batch.mask)

    def _answer(self, batch: TextBatch) -> list[list[str]]:
        found = []
        for path in self._paths(batch):
            tags = [self.labels_[k] for k in path]
            plain = self.scheme_ == "plain"
            found.append(tags if plain else spans.write(spans.spans(tags), len(tags), self.scheme_))
        return found

    def _likely(self, batch: TextBatch) -> list[list[list[float]]]:
        values = self._tokens().crf.probabilities(self._scores(batch), batch.mask)
        return [row[: int(n)].tolist() for row, n in zip(values, batch.mask.sum(dim=1), strict=True)]

    def _sure(self, batch: TextBatch) -> list[list[float]]:
        """How likely each tag of the best path is, as it was learned."""
        values = self._tokens().crf.probabilities(self._scores(batch), batch.mask)
        return [[float(values[row, t, k]) for t, k in enumerate(path)] for row, path in enumerate(self._paths(batch))]

    def certainty(self, sentences: Sequence[Any]) -> list[list[float]]:
        """For each token how likely the tag is that `predict` gives it."""
        return self._each(sentences, self._sure)

    def measure(self, true: Sequence[Any], answers: Sequence[Any]) -> Score:
        """Span F1 as conlleval counts it; of tags that mark no spans, token accuracy."""
        if self.scheme_ == "plain":
            return by_token(true, answers)
        found, _ = spans.scheme_of(true)
        return by_span(true, answers, None if found in (self.scheme_, "plain") else self.scheme_)

    def facts(self) -> dict[str, Any]:
        """Tags as they are learned, the scheme they came in, and how raw text is split."""
        return {"labels": self.labels_, "scheme": self.scheme_, "rules": self.rules_}

    def _set_facts(self, facts: dict[str, Any]) -> None:
        self.labels_, self.scheme_, self.rules_ = list(facts["labels"]), facts["scheme"], str(facts.get("rules", ""))
