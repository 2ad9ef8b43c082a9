"""Predictions as HTML: nothing of a text is lost or taken for HTML, and spans are where they belong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.tasks.answer.task import PreparedAnswer
from bilmo.tasks.classify.task import PreparedClassify
from bilmo.tasks.core import html
from bilmo.tasks.core.html import Mark
from bilmo.tasks.coref.task import PreparedCoref
from bilmo.tasks.data.documents import Document
from bilmo.tasks.data.frames import Frame
from bilmo.tasks.data.squad import Question, Span
from bilmo.tasks.entail.task import PreparedEntail
from bilmo.tasks.relate.task import PreparedRelate
from bilmo.tasks.roles.task import PreparedRoles
from bilmo.tasks.tag.task import PreparedTag
from html_page import Article, Page

HOSTILE = '</p><script>alert("x")</script> <!-- &amp; \'">'
hostile = st.text(st.sampled_from("<>&\"'/!-;#a &\0\r\n\t \u202e汉ع🙂")) | st.text()


def page(*articles: str) -> list[Article]:
    return Page("\n".join([html.header("made"), *articles, html.FOOTER]) + "\n").articles


def lines(prepared, examples, answers, shares=None) -> list[Article]:
    return page(*prepared.lines(examples, answers, shares, "html", 1))


def kept(text: str) -> str:
    return text.replace("\0", "\ufffd")


@st.composite
def nested(draw, length: int) -> list[Mark]:
    """Spans that do not cross."""
    found: list[Mark] = []
    place = st.integers(0, length)
    for begin, end in draw(st.lists(st.tuples(place, place).map(sorted), max_size=8)):
        if not any(a < begin < b < end or begin < a < end < b for a, b, *_ in found):
            found.append(Mark(begin, end, len(found), draw(hostile), draw(st.none() | st.just(0.5)), draw(hostile)))
    return found


def in_order(marks: list[Mark]) -> list[Mark]:
    return sorted(marks, key=lambda mark: (mark.begin, -mark.end))


@given(hostile, st.data())
def test_a_text_is_kept_whole_and_spans_are_those_that_were_given(text, data):
    marks = data.draw(nested(len(text)))
    (found,) = page(html.article([html.marked(text, marks)], heading=text))
    assert found.paragraphs == [kept(text)] and found.heading == kept(text)
    assert [mark.text for mark in found.marks] == [kept(text[mark.begin : mark.end]) for mark in in_order(marks)]
    for mark, shown in zip(in_order(marks), found.marks, strict=True):
        probability = [] if mark.probability is None else ["0.50"]
        assert shown.label == kept(" ".join([mark.label, *probability] if mark.label else probability))
        assert shown.title == (kept(mark.title) or None)


@given(st.lists(hostile, max_size=6), st.data())
def test_spans_of_tokens(tokens, data):
    marks = [mark for mark in data.draw(nested(len(tokens))) if mark.begin < mark.end]
    (found,) = page(html.article([html.marked(tokens, marks)]))
    assert found.paragraphs == [kept(" ".join(tokens))]
    wanted = [kept(" ".join(tokens[mark.begin : mark.end])) for mark in in_order(marks)]
    assert [mark.text for mark in found.marks] == wanted


def test_the_same_number_is_the_same_colour_and_others_differ():
    (found,) = page(html.article([html.marked("x" * 60, [Mark(k, k + 1, k % 30) for k in range(60)])]))
    hues = [mark.hue for mark in found.marks]
    assert hues[:30] == hues[30:] and len(set(hues)) == 30


def test_a_page_without_examples_is_a_page_and_needs_no_other_file():
    whole = f"{html.header(HOSTILE)}\n{html.FOOTER}\n"
    empty = Page(whole)
    assert empty.articles == [] and "prefers-color-scheme: dark" in empty.style
    assert not any(found in whole for found in ("http", "url(", "@import", "src=", "href=", "<script"))


def test_answers():
    asked = [Question(f"Anna lives in <b>. {HOSTILE}", HOSTILE), Question("Oslo", "Who?")]
    prepared = PreparedAnswer(lang="en", no_answer=True)
    found = lines(prepared, asked, [[Span(14, 17, "<b>")], []])
    assert [(a.heading, a.spans) for a in found] == [(HOSTILE, [("<b>", "")]), ("Who?", [("no answer", "")])]
    assert found[0].paragraphs == [asked[0].context] and found[1].paragraphs == ["no answer", "Oslo"]
    found = lines(prepared, asked, [[Span(14, 17, "<b>")], []], [[0.875], [0.25]])
    assert [a.spans for a in found] == [[("<b>", "0.88")], [("no answer", "0.25")]]


def test_roles_have_one_row_per_predicate():
    prepared = PreparedRoles(roles=("A0", "A1", "V"))
    tokens = ["cats", "see", "<i>", "dogs", "run"]
    frames = [Frame(1, ["B-A0", "B-V", "B-A1", "I-A1", "O"]), Frame(4, ["O", "O", "O", "B-A0", "B-V"])]
    two, none = lines(prepared, [tokens, ["no", "verb"]], [frames, []])
    assert two.paragraphs == ["cats see <i> dogs run"] * 2
    assert two.spans == [("cats", "A0"), ("see", "V"), ("<i> dogs", "A1"), ("dogs", "A0"), ("run", "V")]
    assert two.marks[0].hue == two.marks[3].hue != two.marks[1].hue
    assert (none.paragraphs, none.spans) == (["no verb"], [])
    (sure,) = lines(prepared, [tokens], [frames], [[0.9, 0.8, 0.7, 0.6, 0.5, *[0.4] * 5]])
    assert sure.spans[2] == ("<i> dogs", "A1 0.60")


def test_clusters_have_colours_and_mentions_may_be_nested():
    prepared = PreparedCoref(singletons=False, lang="en")
    text = "Anna saw her  cat.\nShe saw <it>."
    clusters = [[(0, 0), (2, 2), (5, 5)], [(2, 3), (7, 9)]]
    (found,) = lines(prepared, [text], [clusters])
    assert found.paragraphs == [text]
    assert found.spans == [("Anna", "1"), ("her  cat", "2"), ("her", "1"), ("She", "1"), ("<it>", "2")]
    assert [mark.title for mark in found.marks] == ["Anna", "her  cat", "Anna", "Anna", "her  cat"]
    assert found.marks[0].hue == found.marks[2].hue == found.marks[3].hue != found.marks[1].hue == found.marks[4].hue
    (sure,) = lines(prepared, [text], [clusters], [[0.5, 0.75, 1.0, 0.25, 0.125]])
    assert [label for _, label in sure.spans] == ["1 0.50", "2 0.25", "1 0.75", "1 1.00", "2 0.12"]
    (split,) = lines(prepared, [Document([["Anna", "sat"], [], ["She", "ran"]], "<name>")], [[[(0, 0), (2, 2)]]])
    assert (split.heading, split.paragraphs) == ("<name>", ["Anna sat\n\nShe ran"])
    assert split.spans == [("Anna", "1"), ("She", "1")]
    assert lines(prepared, [""], [[]]) == [Article(paragraphs=[""])]


@given(st.lists(st.lists(hostile, max_size=4), max_size=4))
def test_every_token_of_a_document_is_shown(sentences):
    tokens = [token for sentence in sentences for token in sentence]
    clusters = [[(k, k)] for k in range(len(tokens))]
    (found,) = lines(PreparedCoref(singletons=True, lang="en"), [Document(sentences)], [clusters])
    assert found.paragraphs == [kept("\n".join(map(" ".join, sentences)))]
    assert sorted(mark.text for mark in found.marks) == sorted(map(kept, tokens))


@pytest.mark.parametrize(
    ("scheme", "labels", "tags", "wanted"),
    [
        ("BIO", ("O", "B-PER", "I-PER"), ["B-PER", "I-PER", "O"], [("Anna Lee", "PER 0.25")]),
        ("BIO", ("O", "B", "I"), ["B", "I", "O"], [("Anna Lee", "0.25")]),  # spans without a type
        ("plain", ("O", "N", "V"), ["N", "O", "V"], [("Anna", "N 0.50"), ("</p>", "V 0.75")]),
    ],
)
def test_tags(scheme, labels, tags, wanted):
    prepared = PreparedTag(labels=labels, scheme=scheme)
    (found,) = lines(prepared, [["Anna", "Lee", "</p>"]], [tags], [[0.5, 0.25, 0.75]])
    assert found.paragraphs == ["Anna Lee </p>"] and found.spans == wanted


def test_labels_are_shown_above_their_texts():
    known = {"labels": ("<a>", "b"), "lang": "en"}
    (text,) = lines(PreparedClassify(**known), [HOSTILE], ["<a>"], [[0.75, 0.25]])
    assert (text.paragraphs, text.spans) == (["<a>", HOSTILE], [("<a>", "0.75")])
    (pair,) = lines(PreparedEntail(**known), [("one", ["t", "w", "o"])], ["b"])
    assert (pair.paragraphs, pair.spans) == (["b", "one", "t w o"], [("b", "")])
    related = ["a <e1>red <e2>cow</e2></e1> & dog", (["a", "red", "cow"], (1, 2), (2, 3))]
    nested, tokens = lines(PreparedRelate(**known), related, ["<a>", "b"])
    assert nested.paragraphs == ["<a>", "a red cow & dog"] and nested.spans[1:] == [("red cow", "e1"), ("cow", "e2")]
    assert tokens.paragraphs == ["b", "a red cow"] and tokens.spans[1:] == [("red", "e1"), ("cow", "e2")]
