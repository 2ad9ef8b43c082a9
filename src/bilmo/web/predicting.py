"""Predictions of fitted tasks: /predict/{task}.

Knows: FastAPI, fitted tasks. Blind to: models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from bilmo.embed.texts import token_count
from bilmo.errors import ConfigError
from bilmo.generate.generator import Generator
from bilmo.tasks.core.spec import AnyEstimator
from bilmo.tasks.data.splitting import split_lines
from bilmo.web import encode
from bilmo.web.bodies import PredictAnswer, PredictBody
from bilmo.web.limits import Limits
from bilmo.web.refused import Refused

router = APIRouter()
AT_ONCE = 16
"""Examples predicted at a time; other requests are computed in between."""
FIELDS = {
    "classify": {"text", "tokens"},
    "tag": {"text", "tokens"},
    "roles": {"text", "tokens"},
    "entail": {"pairs"},
    "relate": {"text"},
    "answer": {"context", "questions"},
    "coref": {"text", "documents"},
    "translate": {"text", "tokens"},
    "summarise": {"text", "tokens"},
}
"""The fields of each kind of task: one of them, except that context and questions belong together."""
Examples = list[tuple[int, Any]]
"""The number of the input that an example comes from, and the example."""


@router.post("/predict/{task}", response_model=PredictAnswer)
async def predict(task: str, body: PredictBody, request: Request) -> Response:
    """Predictions of a fitted task, one per example, in order."""
    state = request.app.state
    estimator = state.served.task(task)
    kind = estimator.task.name
    _check_fields(kind, body, estimator)
    found = await state.worker.steps(_predicted(estimator, body, state.limits))
    answer = {"task": task, "kind": kind, "results": list(chain.from_iterable(found))}
    return Response(encode.as_json(answer), media_type=encode.JSON)


def _check_fields(kind: str, body: PredictBody, estimator: AnyEstimator) -> None:
    given = set(body.model_fields_set) - {"probabilities"}
    accepted = FIELDS[kind]
    if given != accepted if kind == "answer" else len(given) != 1 or not given <= accepted:
        join = " and " if kind == "answer" else " or "
        raise ConfigError(f"a task of kind {kind} needs {join.join(sorted(accepted))}; found {sorted(given)}")
    if body.probabilities and isinstance(estimator, Generator):
        raise ConfigError(f"a task of kind {kind} has no probabilities here; leave probabilities out")


def _predicted(estimator: AnyEstimator, body: PredictBody, limits: Limits) -> Iterator[list[dict[str, Any]]]:
    """The entries of some examples at a time."""
    examples = list(_examples(estimator, body, limits))
    prepared = estimator.prepared_
    for at in range(0, len(examples), AT_ONCE):
        some = [example for _, example in examples[at : at + AT_ONCE]]
        _check_length(prepared.items(some), limits)
        answers = estimator.answers(some)
        shares = estimator.confidence(some) if body.probabilities else None
        lines = prepared.lines(some, answers, shares, "jsonl", at + 1)
        yield [{"input": examples[at + k][0], **json.loads(line)} for k, line in enumerate(lines)]


def _examples(estimator: AnyEstimator, body: PredictBody, limits: Limits) -> Examples:
    """The examples of a request. A tagger's text has one example per sentence."""
    if body.questions is not None:
        inputs: Sequence[Any] = [(body.context, question) for question in body.questions]
    elif body.pairs is not None:
        inputs = [tuple(pair) for pair in body.pairs]
    elif body.documents is not None:
        inputs = body.documents
    elif body.tokens is not None:
        one = not body.tokens or isinstance(body.tokens[0], str)
        inputs = [body.tokens] if one else body.tokens
    else:
        inputs = [body.text] if isinstance(body.text, str) else body.text or []
    if len(inputs) > limits.texts:
        raise Refused(413, f"there are {len(inputs):,} examples; a request may have {limits.texts:,}")
    if body.text is None or estimator.task.name not in ("tag", "roles"):
        return list(enumerate(inputs))
    prepared: Any = estimator.prepared_
    asked = estimator.settings_.lang
    found: Examples = []
    for number, text in enumerate(inputs):
        _, sentences = split_lines(text.splitlines() or [""], asked, prepared.model_split, prepared.dictionary)
        found += [(number, sentence) for sentence in sentences]
    return found


def _check_length(items: Sequence[Any], limits: Limits) -> None:
    for item in items:
        if (count := max(map(token_count, item.texts), default=0)) > limits.tokens:
            raise Refused(413, f"a text has {count:,} tokens; a text may have {limits.tokens:,}")
