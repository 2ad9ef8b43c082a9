"""`bilmo predict -o FILE.html` for every task: the page shows what JSONL says."""

from __future__ import annotations

import json
import re

import pytest

from bilmo.cli.tasks import predict
from bilmo.tasks import all as tasks
from bilmo.tasks.data import spans
from html_page import Page

from task_data import clauses, documents, pairs, questions, related, sentences, texts

QUICK = ("--hidden", 6, "--rate", 0.02, "--epochs", 2, "--vectors", "scratch")
HOSTILE = "the</p><script>alert('x')</script>"


def rows(task):
    """Twelve examples for JSONL."""
    if task == "classify":
        return [{"text": text, "label": label} for text, label in zip(*texts(12), strict=True)]
    if task == "tag":
        return [{"tokens": tokens, "tags": tags} for tokens, tags in zip(*sentences(12), strict=True)]
    if task == "entail":
        return [{"text1": a, "text2": b, "label": label} for (a, b), label in zip(*pairs(12), strict=True)]
    if task == "relate":
        return [{"text": text, "label": label} for text, label in zip(*related(12), strict=True)]
    if task == "roles":
        return [
            {"words": tokens, "verbs": [{"index": frame.predicate, "tags": frame.tags} for frame in frames]}
            for tokens, frames in zip(*clauses(12), strict=True)
        ]
    if task == "coref":
        return [{"sentences": text, "clusters": clusters} for text, clusters in zip(*documents(12), strict=True)]
    return [
        {
            "context": asked.context,
            "question": asked.question,
            "answers": [{"text": span.text, "answer_start": span.begin} for span in answers],
        }
        for asked, answers in zip(*questions(12, answered=0.6), strict=True)
    ]


def shown(row):
    """What a page should show of a prediction in JSONL: heading, paragraphs, texts and labels of spans, as sets."""
    if "question" in row:
        answer = row["answer"]
        above = [] if answer else ["no answer"]
        return row["question"], [*above, row["context"]], {(answer or "no answer", "")}
    if "tags" in row:
        found = {(" ".join(row["tokens"][a : b + 1]), kind) for kind, a, b in spans.spans(row["tags"])}
        return "", [" ".join(row["tokens"])], found
    if "verbs" in row:
        words = row["words"]
        found = [(kind, a, b) for verb in row["verbs"] for kind, a, b in spans.spans(verb["tags"])]
        marked = {(" ".join(words[a : b + 1]), kind) for kind, a, b in found}
        return "", [" ".join(words)] * max(1, len(row["verbs"])), marked
    if "clusters" in row:
        tokens = [token for sentence in row["sentences"] for token in sentence]
        clusters = enumerate(row["clusters"], start=1)
        found = {(" ".join(tokens[a : b + 1]), str(k)) for k, cluster in clusters for a, b in cluster}
        return "", ["\n".join(map(" ".join, row["sentences"]))], found
    label = row.pop("label")
    plain = [re.sub(r"</?e[12]>", "", text) for text in row.values()]
    found = {(text, name) for name, text in re.findall(r"<(e[12])>(.*?)</\1>", row.get("text", ""))}
    return "", [label, *plain], {(label, ""), *found}


def ok(result):
    assert result.code == 0, result.err
    return result


@pytest.mark.parametrize("task", [task.name for task in tasks.TASKS])
def test_a_page_shows_the_predictions(run, model, tmp_path, monkeypatch, task):
    monkeypatch.setattr(predict, "BATCH_EXAMPLES", 5)
    train, out, file = tmp_path / "a.jsonl", tmp_path / "out", tmp_path / "a.html"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows(task)), encoding="utf-8")
    ok(run("fit", task, model, "--train", train, "-o", out, *QUICK))
    asked = tmp_path / "asked.jsonl"
    asked.write_text(train.read_text("utf-8").replace("the", HOSTILE).replace("The", HOSTILE), encoding="utf-8")
    assert ok(run("predict", out, asked, "-o", file)).out == f"{file}: 12 predictions\n"
    page = file.read_text("utf-8")
    articles = Page(page).articles
    predicted = [json.loads(line) for line in ok(run("predict", out, asked, "--to", "jsonl")).out.splitlines()]
    found = [(article.heading, article.paragraphs, set(article.spans)) for article in articles]
    assert found == [shown(row) for row in predicted]
    assert any(article.marks for article in articles)
    assert HOSTILE in str(found) and HOSTILE not in page
    assert ok(run("predict", out, asked, "--to", "html")).out == page
    sure = Page(ok(run("predict", out, asked, "--to", "html", "--probabilities")).out).articles
    assert [article.paragraphs for article in sure] == [article.paragraphs for article in articles]
    labels = [label for article in sure for _, label in article.spans if label not in ("e1", "e2")]
    assert all(0 <= float(label.split(" ")[-1]) <= 1 for label in labels)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")
    nothing = run("predict", out, empty, "--to", "html")
    assert Page(ok(nothing).out).articles == []
