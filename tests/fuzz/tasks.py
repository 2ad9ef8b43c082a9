"""The tasks beside classifiers and taggers: their data in every form, and their saved folders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bilmo.embed.load import load
from bilmo.generate.all import all_tasks
from bilmo.generate.folder import load as load_task
from bilmo.store import model_folder
from bilmo.tasks import folder as task_folders
from bilmo.tasks.core.settings import check_settings
from bilmo.tasks.core.spec import AnyTask, Dataset
from bilmo.tasks.data.splitting import ModelSplit
from bilmo.tasks.data.squad import Question
from fuzz import damage
from fuzz.seal import sealed
from fuzz.target import Box, EachFile

import generate_data
import task_data

TASKS: dict[str, AnyTask] = {task.name: task for task in all_tasks() if task.name not in ("classify", "tag")}
SMALL: dict[str, dict[str, Any]] = {name: {"hidden": 4, "epochs": 1} for name in TASKS}
SMALL["translate"] |= {"target_width": 4, "subwords": 40}
SMALL["summarise"] |= {"target_width": 4}


def data(task: str) -> Dataset[Any, Any]:
    """Examples to train a task with."""
    made: Mapping[str, Any] = {
        "entail": task_data.pairs,
        "relate": task_data.related,
        "roles": task_data.clauses,
        "answer": task_data.questions,
        "coref": task_data.documents,
        "translate": generate_data.sentences,
        "summarise": generate_data.news,
    }
    examples, answers = made[task](12)
    if task == "summarise":
        examples = ["\n".join(paragraphs) for paragraphs in examples]
    return Dataset(examples, answers)


def lines(*rows: Mapping[str, Any]) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


CAT = "The <e1>cat</e1> saw a <e2>red</e2> cow"
CONLL = """#begin document (a); part 000
a 0 0 The DT * - - - - * (1
a 0 1 cat NN * - - - - * 1)
a 0 2 ran V * - - - - * -

#end document
"""
ROLES = """a 0 0 The DT * - - - - * (A0* -
a 0 1 cat NN * - - - - * *) -
a 0 2 ran V * run 01 - - * (V*) -

"""
ASKED = {"id": "a", "question": "Who ran?", "answers": [{"text": "cat", "answer_start": 4}]}
FILES: dict[str, dict[str, str]] = {
    "entail": {
        "a.tsv": "text1\ttext2\tlabel\na cat\tno cat\tno\nthe dog\ta dog\tyes\n",
        "a.csv": 'sentence1,sentence2,gold_label\n"a cat, red",no cat,no\nthe dog,a dog,-\nx,y,yes\n',
        "a.jsonl": lines(
            {"premise": "a cat", "hypothesis": ["the", "dog"], "label": "no"},
            {"text1": "a", "text2": "b", "label": "yes"},
        ),
    },
    "relate": {
        "semeval.txt": f'1\t"{CAT}"\nHas(e1,e2)\nComment:\n\n2\t"{CAT}."\nOther\nComment: x\n\n',
        "tab.txt": f"Has(e1,e2)\t{CAT}\nOther\t{CAT}.\n",
        "a.csv": f'text,label\n"{CAT}",Other\n',
        "a.jsonl": lines(
            {"text": CAT, "label": "x"}, {"tokens": ["a", "cat", "b"], "e1": [0, 1], "e2": [2, 3], "label": "y"}
        ),
    },
    "roles": {
        "a.jsonl": lines({"words": ["The", "cat", "ran"], "verbs": [{"index": 2, "tags": ["B-A0", "I-A0", "B-V"]}]}),
        "a.2005": "The DT - (A0*\ncat NN - *)\nran V run (V*)\n\nHi UH -\n",
        "a.2012": ROLES,
    },
    "answer": {
        "squad.json": json.dumps({"data": [{"paragraphs": [{"context": "The cat ran.", "qas": [ASKED, ASKED]}]}]}),
        "a.jsonl": lines(ASKED | {"context": "The cat ran."}, {"context": "x", "question": "y", "answers": []}),
    },
    "coref": {
        "a.conll": CONLL,
        "a.jsonl": lines({"sentences": [["The", "cat", "ran"], ["It", "sat"]], "clusters": [[[0, 1], [3, 3]]]}),
        "text.txt": "The cat ran.\nIt sat.\n",
    },
    "translate": {
        "tab.txt": "the cat\tder Kater\na dog\tein Hund\n",
        "a.tsv": "source\ttarget\nthe cat\tder Kater\n",
        "a.csv": 'source,target\n"the ""cat""",der Kater\n',
        "a.jsonl": lines({"source": "the cat", "target": "der Kater"}, {"source": ["a", "b c"], "target": ["x", "y"]}),
        "two/a.txt": "the cat\n\na dog\n",
        "two/b.txt": "der Kater\n\nein Hund\n",
    },
    "summarise": {
        "a.jsonl": lines({"text": "Two\nlines.", "summary": "2"}, {"text": ["a b.", "c"], "summary": "x"}),
        "a.tsv": "text\tsummary\na long text\tshort\n",
    },
}
"""By task: its forms of files with answers, and where it has one, a form without."""


class OtherTaskData(EachFile):
    """The data of these tasks, for training and for prediction."""

    name, share = "data of other tasks", 110

    def make(self, folder: Path) -> None:
        self.settings = {name: check_settings(SMALL[name], task.settings) for name, task in TASKS.items()}
        self.prepared = {
            name: task.prepare(data(name), self.settings[name], ModelSplit("west"))[0] for name, task in TASKS.items()
        }
        for task, files in FILES.items():
            for name, text in files.items():
                place, _, inside = name.partition("/")
                path = folder / f"{task}-{place}" / inside if inside else folder / f"{task}-{place}"
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")

    def read(self, path: Path) -> object:
        name = path.name.partition("-")[0]
        task, settings = TASKS[name], self.settings[name]
        if path.name.endswith("-two"):
            return repr(task.read_files([path / "a.txt", path / "b.txt"], "auto", settings))
        asked = self.prepared[name].read(path, "auto", settings)
        shown = repr((asked.form, list(asked.examples)))
        return shown if path.suffix == ".txt" and name == "coref" else (shown, repr(task.read(path, "auto", settings)))


EXAMPLES: dict[str, list[Any]] = {
    "entail": [("a cat", "no cat"), ("", "x")],
    "relate": [CAT],
    "roles": [["The", "cat", "saw", "a", "cow"], []],
    "answer": [Question("The cat is red.", "What is the cat?", "a")],
    "coref": [[["The", "cat", "ran"], ["It", "sat"]]],
    "translate": ["the red cat saw a dog 7.", ""],
    "summarise": ["Today a red cat was found. Its name is Name7."],
}


class OtherTasks(EachFile):
    """Saved tasks of these kinds."""

    name, share = "other saved tasks", 40
    noticed = True

    def make(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        model_folder.write(task_data.made(0), folder.parent / "good" / "bilm")
        self.elmo = load(folder.parent / "good" / "bilm")
        for name, task in TASKS.items():
            found = data(name)
            fitted = task.estimator()(self.elmo, **SMALL[name]).fit(found.examples, found.answers)
            task_folders.save(fitted, folder / name, model=str(folder.parent / "good" / "bilm"))

    def read(self, path: Path) -> object:
        found = load_task(path, elmo=self.elmo)
        return repr(found.predict(EXAMPLES[path.name]))


class OtherForgedTasks(OtherTasks):
    """The same, changed by somebody who also wrote the right hashes."""

    name, share = "other forged tasks", 40
    noticed = False

    def cases(self) -> st.SearchStrategy[Any]:
        kinds = ("flip", "write", "insert", "cut", "delete", "value", "raw", "drop", "key", "line", "repeat")
        return st.sampled_from(list(self.groups)).flatmap(
            lambda top: st.tuples(st.just(top), damage.edits(list(self.groups[top]), kinds=kinds)).map(list)
        )

    def check(self, box: Box, case: Any) -> str:
        top, edits = case
        damage.write(box.case, sealed(damage.apply(self.groups[top], edits)))
        self.expected = self.expected_of[top]
        return self.compared(lambda: self.read(box.case / top))
