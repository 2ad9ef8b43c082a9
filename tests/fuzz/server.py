"""Requests to the server: whatever is sent, the answer is JSON, and never that the server failed."""

from __future__ import annotations

import json
import logging
from typing import Any

from hypothesis import strategies as st
from starlette.testclient import TestClient

from bilmo.embed.embedder import Embedder
from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts
from bilmo.web.app import application
from bilmo.web.limits import Limits
from bilmo.web.predicting import FIELDS
from bilmo.web.served import Served
from fuzz import damage
from fuzz.target import REFUSED, SAME, Box, Failure, Target, weighted
from fuzz.tasks import CAT, SMALL, TASKS, data

import old_models
import task_data

GOOD: dict[str, tuple[Any, ...]] = {
    "text": ("The cat sat.", "The [cat] sat.", "A [cat] sat.", ["The cat.", ""], CAT, "宝玉听了。", "x" * 300),
    "tokens": (["the", "cat"], ["a", "b", "c"], [["the", "cat"], []], [[""]], ["\ud800", "a b"]),
    "inputs": ("a cat", ["a", "b"]),
    "input": ("a cat", ["a", "b"], [1, 2]),
    "model": ("a", "a", "b", None),
    "words": (["cat", "", "漢字"], ["x" * 3000]),
    "among": (["The cat sat."], [["a", "cat"], []]),
    "pairs": ([["a", "b"]], [["a"]]),
    "documents": ([[["The", "cat"], ["It"]]], [[]]),
    "context": ("The cat is red.", ""),
    "questions": (["What is the cat?"], []),
    "mix": ("mean", "top", "concat", 0, 9, [0, 1], []),
    "pool": ("none", "mean", "max"),
    "n": (1, 5, 1000),
    "encoding": ("numbers", "base64"),
    "encoding_format": ("float", "base64"),
    "position": (0, 1, -1),
}
"""Values that often work, by the name of the field."""
GIVEN = (
    *(("text",), ("tokens",), ("inputs",), ("input", "model"), ("words",), ("pairs",), ("documents",)),
    *(("context", "questions"), ("tokens", "position"), ("text", "among"), ("tokens", "position", "among")),
)
"""Fields that go together, with which a request asks about something."""
TYPES = (*["application/json"] * 30, "text/plain", "application/x-npy", "application/json; charset=utf-16", "")
ACCEPTED = (*["*/*"] * 4, "application/json", "application/x-npy", "application/vnd.apache.arrow.stream", "x" * 3000)
STRAY = ("/", "/missing", "/embed/", "/predict/missing", "/%ff", "/..%2f..%2fetc/passwd", "/" + "x" * 3000)


class Requests(Target):
    """Bodies for every path: most of them with good fields, some of them damaged."""

    name, share = "server requests", 60

    def prepare(self, box: Box) -> None:
        old_models.write_checkpoint(box.good / "c")
        old_models.write_manylangs(box.good / "m")
        models = {name: Embedder(settled(layouts.read(box.good / folder))) for name, folder in (("a", "c"), ("b", "m"))}
        elmo = Embedder(task_data.made(0))
        tasks = {}
        for name in ("entail", "relate", "roles", "answer", "coref", "translate"):
            examples = data(name)
            tasks[name] = TASKS[name].estimator()(elmo, **SMALL[name]).fit(examples.examples, examples.answers)
        limits = Limits(body=1 << 16, texts=8, tokens=200, seconds=20)
        self.client = TestClient(application(Served(models, tasks), limits=limits), base_url="http://localhost")
        self.client.__enter__()
        described = self.client.get("/openapi.json").json()
        bodies = {
            path: described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
            for path, methods in described["paths"].items()
            if "post" in methods
            for schema in [methods["post"]["requestBody"]["content"]["application/json"]["schema"]]
        }
        self.fields = {path: sorted(fields) for path, fields in bodies.items() if "{task}" not in path}
        self.fields |= {f"/predict/{task}": sorted(FIELDS[task] | {"probabilities"}) for task in tasks}
        self.log = logging.getLogger("bilmo.web")
        self.said: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.said.append(record.getMessage())  # type: ignore[method-assign]
        self.log.addHandler(handler)

    def cases(self) -> st.SearchStrategy[Any]:
        return st.sampled_from(sorted(self.fields)).flatmap(self._requests)

    def _requests(self, path: str) -> st.SearchStrategy[Any]:
        odd = st.sampled_from(damage.VALUES)
        fields = {
            name: weighted((12, st.sampled_from(GOOD[name])), (1, odd)) if name in GOOD else odd | st.just(True)
            for name in self.fields[path]
        }
        given: list[tuple[str, ...]] = [names for names in GIVEN if set(names) <= set(fields)] or [()]
        rest = st.lists(st.sampled_from(self.fields[path]), max_size=2)
        some = st.tuples(st.sampled_from(given), weighted((1, rest), (2, st.just([])))).map(
            lambda parts: {*parts[0], *parts[1]}
        )
        body = some.flatmap(lambda names: st.fixed_dictionaries({name: fields[name] for name in sorted(names)}))
        return st.fixed_dictionaries(
            {
                "path": st.sampled_from((*[path] * 80, *STRAY)),
                "method": st.sampled_from((*["POST"] * 30, "GET", "PUT", "OPTIONS", "x")),
                "type": st.sampled_from(TYPES),
                "accept": st.sampled_from(ACCEPTED),
                "body": body,
                "edits": weighted((2, st.just([])), (1, damage.edits(["body"], most=2, kinds=EDITS))),
            }
        )

    def check(self, box: Box, case: Any) -> str:
        body = damage.apply({"body": json.dumps(case["body"]).encode()}, case["edits"])["body"]
        assert isinstance(body, bytes)
        headers = {"content-type": case["type"], "accept": case["accept"]}
        self.said.clear()
        try:
            found = self.client.request(case["method"], case["path"], content=body, headers=headers)
        except ValueError as error:  # the address or a header cannot be sent
            return REFUSED if "/%ff" in case["path"] else _fail(f"{type(error).__name__}: {error}")
        if found.status_code >= 500 and found.status_code != 501:
            raise Failure(f"status {found.status_code}: {' '.join(self.said)} {found.text[:300]}")
        if "json" in found.headers.get("content-type", ""):
            answer = json.loads(found.content, parse_constant=_fail)
            if found.status_code >= 400 and answer["error"]["code"] != found.status_code:
                raise Failure(f"status {found.status_code}, but the answer says {answer}")
        elif found.status_code >= 400:
            raise Failure(f"status {found.status_code} without a message")
        return SAME if found.status_code < 400 else REFUSED


EDITS = ("flip", "write", "insert", "cut", "delete", "repeat", "value", "raw", "drop", "key", "text")


def _fail(what: str) -> Any:
    raise Failure(f"not JSON: {what}")
