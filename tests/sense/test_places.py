"""The sentences of a text, with file and line."""

import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.embed.embedder import Embedder
from bilmo.sense.places import in_files, in_line, is_word

from task_data import made

BY_LANG = {lang: Embedder(made(0), lang=lang) for lang in ("en", "zh", "spaces")}
ELMO = BY_LANG["en"]


def test_each_sentence_has_its_file_and_line(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("He sat. She didn't!\n\n \nThe end.\n", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "texts" / "b.zip", "w") as archive:
        archive.writestr("x.txt", "One.\n")
        archive.writestr("y.txt", "\nTwo.\n")
    found = list(in_files(ELMO, [tmp_path / "texts"]))
    text, packed = f"{tmp_path}/texts/a.txt", f"{tmp_path}/texts/b.zip"
    assert [(place.file, place.line) for place in found] == [
        (text, 1),
        (text, 1),
        (text, 4),
        (f"{packed}: x.txt", 1),
        (f"{packed}: y.txt", 2),
    ]
    assert found[1].tokens == ["She", "did", "n't", "!"] and found[1].words == [0, 1, 2]
    assert found[1].marked(1) == "She [did]n't!"


@pytest.mark.parametrize("lang", BY_LANG)
@given(st.text())
def test_a_sentence_is_shown_as_it_is_written(lang, line):
    line = " ".join(line.split())
    shown = [place.marked(-1) for place in in_line(BY_LANG[lang], line)]
    assert "".join(shown).replace(" ", "") == line.replace(" ", "")
    rest = line
    for sentence in shown:
        assert rest.startswith(sentence)
        rest = rest[len(sentence) :].lstrip()
    assert not rest


def test_a_word_has_a_letter_or_a_digit():
    assert all(map(is_word, ["bank", "n't", "银行", "3.5", "é"]))
    assert not any(map(is_word, [".", "--", "“", "、", "😀"]))
