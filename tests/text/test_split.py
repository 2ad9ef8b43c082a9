"""Splitting of text: English, other Western languages, Chinese, tokenized text, and detection."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.errors import TextError
from bilmo.text.simplified import simplified
from bilmo.text.split import at_spaces, chinese, detect, english, splitter, western


@pytest.mark.parametrize(
    "text, sentences",
    [
        ("He didn't go. She did!", [["He", "did", "n't", "go", "."], ["She", "did", "!"]]),
        ('"Really?" he asked.', [['"', "Really", "?", '"', "he", "asked", "."]]),
        ("Mr. Smith of the U.S. Army left.", [["Mr.", "Smith", "of", "the", "U.S.", "Army", "left", "."]]),
        ("It costs $3.14, i.e. little.", [["It", "costs", "$", "3.14", ",", "i.e.", "little", "."]]),
        ("John's well-known idea...", [["John", "'s", "well-known", "idea", "..."]]),
        ("Go to http://a.b/c?d=1. Or me@x.org!", [["Go", "to", "http://a.b/c?d=1", "."], ["Or", "me@x.org", "!"]]),
        ("He said “No.” Then left.", [["He", "said", "“", "No", ".", "”"], ["Then", "left", "."]]),
        ("version 2.0 is here", [["version", "2.0", "is", "here"]]),
        ("", []),
        (" \t ", []),
    ],
)
def test_english_text_is_split_as_a_reader_would(text, sentences):
    assert english(text) == sentences


@pytest.mark.parametrize(
    "text, sentences",
    [
        ("宝玉听了，笑道。黛玉不语！", [["宝玉", "听", "了", "，", "笑", "道", "。"], ["黛玉", "不语", "！"]]),
        ("“我不去。”他说。", [["“", "我", "不", "去", "。", "”"], ["他", "说", "。"]]),
        ("用 GPU 3.5 好？！是", [["用", "GPU", "3.5", "好", "？", "！"], ["是"]]),
    ],
)
def test_chinese_text_is_split_into_words_and_sentences(text, sentences):
    assert chinese(text) == sentences


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("話說天下大勢，分久必合，合久必分。", "話 說 天下 大勢 ， 分久必合 ， 合久必分 。"),
        ("我們在圖書館學習漢語語法。", "我們 在 圖書館 學習 漢語 語法 。"),
        ("他發現了頭髮的問題", "他 發現 了 頭髮 的 問題"),
        ("臺灣的經濟發展很快", "臺灣 的 經濟 發展 很快"),
        ("隨後趕來", "隨後 趕來"),
    ],
)
def test_traditional_text_keeps_its_characters_and_has_the_words_of_simplified_text(text, words):
    assert [token for sentence in chinese(text) for token in sentence] == words.split()
    assert [token for sentence in chinese(simplified(text)) for token in sentence] == simplified(words).split()


def test_sentences_of_traditional_text_end_after_its_quotation_marks():
    text = "玄德曰：「備乃織席小輩。」操笑曰：「使君知龍之變化否？」"
    assert ["".join(sentence) for sentence in chinese(text)] == [
        "玄德曰：「備乃織席小輩。」",
        "操笑曰：「使君知龍之變化否？」",
    ]


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=())))
def test_a_simplified_copy_has_the_same_length(text):
    assert len(simplified(text)) == len(text)


def test_characters_that_simplified_text_has_too_stay_as_they_are():
    assert simplified("乾坤哪吒著名皇后") == "乾坤哪吒著名皇后"


@settings(max_examples=200)
@given(
    st.one_of(st.text(), st.text(alphabet="ab.!?'\"’ -A1…\n宝玉。”\u3000\u0301\U0001f468\u200d")),
    st.sampled_from(["en", "west", "zh", "spaces"]),
)
def test_nothing_is_lost_and_nothing_is_changed(text, how):
    tokens = [token for sentence in splitter(how)(text) for token in sentence]
    assert "".join(tokens) == "".join(text.split())
    assert all(tokens)


def test_other_languages_keep_their_apostrophes():
    assert western("L'homme est né libre.") == [["L'homme", "est", "né", "libre", "."]]


def test_tokenized_text_is_one_sentence_per_line():
    assert at_spaces("The cat . The\u3000dog .") == [["The", "cat", ".", "The", "dog", "."]]


@pytest.mark.parametrize(
    "lines, how",
    [
        (["The cat sat on the mat, and it was glad. Then it left."] * 3, "en"),
        (["The cat sat on the mat , and it was glad . Then it left ."] * 3, "spaces"),
        (["Der Hund bellt, die Katze schläft. Das ist alles."] * 3, "west"),
        (["宝玉听了，忙笑道：“好姐姐，你别生气。”黛玉冷笑了一声。"] * 3, "zh"),
        (["宝玉 听 了 ， 忙 笑 道 ： 好 姐姐 ， 你 别 生气 。"] * 3, "spaces"),
        (["卻說張飛引數人來到門前，見玄德與關公說話，便大笑道：「哥哥何不同去？」"] * 3, "zh"),
        ([], "west"),
        (["", "  "], "west"),
    ],
)
def test_the_way_to_split_is_detected_from_the_text(lines, how):
    assert detect(lines) == how


def test_an_unknown_way_to_split_is_refused_with_the_accepted_ones():
    with pytest.raises(TextError, match="'klingon'; accepted: auto, spaces, en, west, zh"):
        splitter("klingon")
