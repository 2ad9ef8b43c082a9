"""Marks and spans say the same, and find their tokens; missing and crossing marks are errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.errors import TextError
from bilmo.tasks.data.splitting import split_texts
from bilmo.tasks.relate.marks import Marked, marked_of, token_spans, with_marks


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("a <e1>b</e1> c <e2>d</e2>.", Marked("a b c d.", (2, 3), (6, 7))),
        ("<e2>x y</e2><e1>z</e1>", Marked("x yz", (3, 4), (0, 3))),
        ("<e1> Thom Yorke </e1> of <e2> Radiohead </e2> .", Marked(" Thom Yorke  of  Radiohead  .", (1, 11), (17, 26))),
        ("<e1>the <e2>queen</e2></e1> of x", Marked("the queen of x", (0, 9), (4, 9))),
        ("<e2><e1>a</e1> b</e2>", Marked("a b", (0, 1), (0, 3))),
        ("<e1>北京</e1>是<e2>中国</e2>的首都", Marked("北京是中国的首都", (0, 2), (3, 5))),
    ],
)
def test_a_string_with_marks(text, marked):
    assert marked_of(text) == marked and with_marks(text) == text


@st.composite
def marked_texts(draw):
    """A text of visible characters, or tokens, and two spans that do not cross."""
    length = draw(st.integers(1, 8))
    first, second = (
        draw(st.tuples(st.integers(0, length - 1), st.integers(1, length)).filter(lambda s: s[0] < s[1])) for _ in "12"
    )
    (_, end), (start, last) = sorted([first, second], key=lambda span: (span[0], -span[1]))
    if start < end < last:
        second = first
    letters = draw(st.lists(st.sampled_from("ab漢é."), min_size=length, max_size=length))
    return Marked(draw(st.sampled_from(["".join(letters), letters])), first, second)


@given(marked_texts())
def test_marks_and_spans_say_the_same(marked):
    assert marked_of(marked) == marked
    found = marked_of(with_marks(marked))
    tokens = list(marked.text)
    if not isinstance(marked.text, str):
        assert found.text == " ".join(marked.text)
        assert token_spans(found, tokens) == (marked.first, marked.second)
    elif marked.first != marked.second:
        assert found == marked


@given(st.lists(st.sampled_from(["don't", "U.S.", "a", "(b)", "漢字", "x."]), min_size=1, max_size=6), st.data())
def test_a_span_becomes_the_tokens_that_it_touches(words, data):
    text = "  ".join(words)
    starts = [k for k, character in enumerate(text) if not character.isspace()]
    spans = [
        data.draw(st.sampled_from(starts).flatmap(lambda k: st.tuples(st.just(k), st.integers(k + 1, len(text)))))
        for _ in "12"
    ]
    for lang in ("spaces", "en", "zh"):
        (sentences,) = split_texts([text], lang, ())
        tokens = [token for sentence in sentences for token in sentence]
        place, positions = 0, []
        for token in tokens:  # the characters of each token, found one after the other
            found = []
            for character in token:
                place = text.index(character, place)
                found.append(place)
                place += 1
            positions.append(set(found))
        expected = [[k for k, some in enumerate(positions) if some & set(range(*span))] for span in spans]
        found = token_spans(Marked(text, *spans), tokens)
        assert [list(range(*span)) for span in found] == expected


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("a b", "the mark <e1> is missing: 'a b'"),
        ("<e1>a</e1> b", "the mark <e2> is missing"),
        ("<e1>a</e1> <e2>b", "the mark </e2> is missing"),
        ("a</e1> <e2>b</e2>", "the mark </e1> has no <e1> before it"),
        ("<e1>a <e2>b</e1> c</e2>", "the marks of e1 and e2 cross each other"),
        ("<e1>a</e1> <e1>b</e1> <e2>c</e2>", "the mark <e1> occurs twice"),
        ("<e1> </e1> <e2>c</e2>", "there is nothing between <e1> and </e1>"),
        (("a b c", (0, 3), (2, 5)), r"e1 is \[0, 3\] and e2 is \[2, 5\]; they cross each other"),
        (("a b", (0, 1), (2, 4)), r"e2 is \[2, 4\]; it must be a part of the text, which has 3 characters"),
        ((["a", "b"], (0, 1), (1, 3)), r"e2 is \[1, 3\]; it must be a part of the text, which has 2 tokens"),
        (("a b", (-1, 1), (2, 3)), r"e1 is \[-1, 1\]; it must be a part"),
        (("a b", (1, 1), (2, 3)), r"e1 is \[1, 1\]; it must be a part"),
        (("a b", (1, 2), (2, 3)), r"e1 is \[1, 2\]; there is only white space in it"),
        (("a b", "01", (2, 3)), "e1 is '01'; it must be two integers"),
        (("a b", (0, True), (2, 3)), r"e1 is \(0, True\); it must be two integers"),
        (("a b", (0, 1)), "it must be a string with the marks"),
        (3, "is 3; it must be a string with the marks"),
    ],
)
def test_mistakes(example, message):
    with pytest.raises(TextError, match=message):
        marked_of(example)
