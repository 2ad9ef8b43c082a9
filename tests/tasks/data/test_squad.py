"""Both forms of questions give the same examples; errors name the place of the wrong one."""

from __future__ import annotations

import json
import lzma

import pytest

from bilmo.errors import TextError
from bilmo.tasks.data import squad
from bilmo.tasks.data.squad import Asked, Question, Span

CONTEXT = "Anna 👩‍🚀 fliegt nach Übersee.\nSie kommt\u00a0im Mai zurück."
EXAMPLES = [
    Asked(Question(CONTEXT, "Wer fliegt?", "q1"), [Span(0, 4, "Anna"), Span(0, 8, CONTEXT[:8])]),
    Asked(Question(CONTEXT, "Why?", "q2"), []),
    Asked(Question("漢字", "什么?", "7"), [Span(1, 2, "字")]),
]


def answers(example):
    return [{"text": span.text, "answer_start": span.begin} for span in example.answers]


def entry(example):
    asked = {"id": example.question.id, "question": example.question.question, "answers": answers(example)}
    return asked | ({} if example.answers else {"is_impossible": True, "plausible_answers": [{"text": "x"}]})


DATA = {
    "version": "v2.0",
    "data": [
        {"title": "a", "paragraphs": [{"context": CONTEXT, "qas": [entry(EXAMPLES[0]), entry(EXAMPLES[1])]}]},
        {"title": "b", "paragraphs": [{"context": "漢字", "qas": [entry(EXAMPLES[2]) | {"id": 7}]}]},
    ],
}
LINES = [entry(example) | {"context": example.question.context} for example in EXAMPLES]
LISTS = [
    line
    | {
        "answers": {
            "text": [a["text"] for a in line["answers"]],
            "answer_start": [a["answer_start"] for a in line["answers"]],
        }
    }
    for line in LINES
]
WRITTEN = {
    "dev.json": json.dumps(DATA),
    "indented.json": "\n" + json.dumps(DATA, indent=2, ensure_ascii=False),
    "unnamed": json.dumps(DATA, ensure_ascii=False),
    "a.jsonl": "\n".join(map(json.dumps, LINES)) + "\n\n",
    "lists.json": "\n".join(json.dumps(line, ensure_ascii=False) for line in LISTS),
}


def read(path, form="auto"):
    return squad.read_examples(squad.detect_form(path, form))


@pytest.mark.parametrize("name", WRITTEN)
def test_the_same_examples_in_every_form(tmp_path, name):
    (tmp_path / name).write_text(WRITTEN[name], encoding="utf-8")
    assert read(tmp_path / name) == EXAMPLES
    questions = list(squad.read_questions(squad.detect_form(tmp_path / name)))
    assert questions == [example.question for example in EXAMPLES]
    (tmp_path / "packed.xz").write_bytes(lzma.compress(WRITTEN[name].encode()))
    assert read(tmp_path / "packed.xz") == EXAMPLES


def test_questions_to_answer_need_no_answers(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"context": "a b", "question": "c"}\n', encoding="utf-8")
    assert list(squad.read_questions(squad.detect_form(tmp_path / "a.jsonl"))) == [Question("a b", "c")]


def one(**fields):
    answer = {"text": "b", "answer_start": 2} | fields
    return {"context": "a b", "question": "c", "answers": [answer]}


def article(**fields):
    return json.dumps({"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": "x"} | fields]}]}]})


WRONG = {
    "just text\n": "line 1: is 'just text'; expected SQuAD JSON, or JSON lines",
    "": "contains no questions",
    '{"question": "a"}': 'line 1: needs "context", a string',
    '{"context": "a"}': 'line 1: needs "question", a string',
    '{"context": "a", "question": 3}': 'line 1: needs "question", a string',
    '{"context": "a", "question": "b"}': 'line 1: needs "answers", a list',
    '{"context": "a", "question": "b", "answers": "a"}': 'line 1: needs "answers", a list',
    '{"context": "a", "question": "b", "answers": [3]}': 'line 1, answer 1: needs "text", a string',
    json.dumps(one(answer_start=None)): 'line 1, answer 1: needs "answer_start"',
    json.dumps(one(answer_start=True)): 'line 1, answer 1: needs "answer_start"',
    json.dumps(one(answer_start=3)): "line 1, answer 1: the answer 'b' is at characters 3 to 4, outside the context, "
    "which has 3",
    json.dumps(one(answer_start=-1)): "is at characters -1 to 0, outside the context",
    json.dumps(one(answer_start=0)): "the answer is 'b', but the context has 'a' at character 0",
    json.dumps(one(text=" ")): "line 1, answer 1: the answer is empty",
    json.dumps(one()) + '\n{"context": "a"\n': "line 2: is not JSON",
    '{"data": 3}': 'needs "data", a list',
    '{"data": [{}]}': 'article 1: needs "paragraphs", a list',
    '{"data": [{"paragraphs": [{}]}]}': 'article 1, paragraph 1: needs "context", a string',
    '{"data": [{"paragraphs": [{"context": "a"}]}]}': 'article 1, paragraph 1: needs "qas", a list',
    article(): 'article 1, paragraph 1, question 1: needs "question", a string',
    article(question="c"): 'question 1 (x): needs "answers", a list',
    article(question="c", answers=[{"text": "z", "answer_start": 9}]): "question 1 (x), answer 1: the answer 'z' is at",
    '{"data": []}': "contains no questions",
    '{\n"data": [\n': "is not JSON",
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_name_the_place(tmp_path, text):
    (tmp_path / "wrong.json").write_text(text, encoding="utf-8")
    with pytest.raises(TextError) as error:
        read(tmp_path / "wrong.json")
    assert WRONG[text] in str(error.value) and str(tmp_path / "wrong.json") in str(error.value)
