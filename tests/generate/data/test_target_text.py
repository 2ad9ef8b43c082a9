"""Target text is put back together as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.generate.data.subwords import train_subwords
from bilmo.generate.data.target_text import JOIN, TargetText

WRITTEN = [
    "Ein Mann fährt Fahrrad.",
    '"Well-known" (I think): it cannot be, can it? Yes... it\'s $5.50!',
    "Don't -- really: a/b, 50%; see www.example.org/x.",
    "«Non», dit-il … (non !)",
    "",
]


@pytest.mark.parametrize("lang", ["en", "west"])
@pytest.mark.parametrize("text", WRITTEN)
def test_text_is_put_back_together(text, lang):
    target = TargetText(lang)
    assert target.text(target.tokens(text)) == text


@given(st.text(alphabet="ab1 .,\"()'-$é字", max_size=30))
def test_any_text_with_single_spaces_is_put_back_together(text):
    text = " ".join(text.split())
    for lang in ("en", "west"):
        assert TargetText(lang).text(TargetText(lang).tokens(text)) == text
    assert TargetText("spaces").text(TargetText("spaces").tokens(text)) == text


def test_words_have_no_marks():
    tokens = TargetText("en").tokens('The man (Bob) said: "no".')
    assert [token for token in tokens if JOIN not in token] == ["The", "man", "Bob", "said", "no"]
    assert tokens[2] == f"({JOIN}" and tokens[4] == f"{JOIN})"


def test_chinese_is_written_without_spaces():
    target = TargetText("zh")
    text = "我在北京，喜欢 Python 和 deep learning。"
    assert target.text(target.tokens(text)) == "我在北京，喜欢Python和deep learning。"


def test_marks_in_given_text_are_removed_and_lines_are_joined():
    target = TargetText("west")
    assert target.text(target.tokens(f"a{JOIN}b c{JOIN} d\ne.")) == "ab c d e."


def test_source_tokens_are_copied_in_the_form_of_the_target():
    english, chinese = TargetText("en"), TargetText("zh")
    sentences = [["Bob", "(", "7", ")", "."]]
    assert english.copies("Bob (7).", sentences, "west") == ["Bob", f"({JOIN}", "7", f"{JOIN})", f"{JOIN}."]
    assert english.copies(["Bob", "(", "7", ")", "."], sentences, "spaces") == sentences[0]
    assert chinese.copies("Bob (7).", sentences, "en") == sentences[0]
    assert english.copies("我在北京。", [["我", "在", "北京", "。"]], "zh") == ["我", "在", "北京", "。"]


def test_subwords_are_put_back_together_and_learned_the_same_way_twice():
    texts = ["Zwei junge Männer sind im Freien.", "Ein Mann (jung) fährt!", "我在北京。"] * 3
    learned = train_subwords(texts, 60)
    assert learned == train_subwords(texts, 60)
    target = TargetText("west", subwords=learned)
    for text in texts:
        assert target.text(target.tokens(text)) == text
    assert target.tokens(["Ein", "Mann"]) == target.tokens("Ein  Mann") and target.tokens(" ") == []
    assert "<unk>" in target.tokens("Ω")
