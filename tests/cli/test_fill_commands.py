"""`bilmo fill` and `bilmo probability`, as they are typed."""

import json

import pytest

import bilmo


def test_fill_shows_candidates_and_the_rank_of_the_word(run):
    found = run("fill", "en", "The cat sat on the [mat].", "-n", 3)
    assert found.code == 0, found
    rows = [line.split() for line in found.out.splitlines()]
    assert rows[0] == ["word", "rank", "both", "forward", "backward"]
    assert [row[1] for row in rows[1:4]] == ["1", "2", "3"]
    wanted = bilmo.load("en").fill("The cat sat on the [mat].", topn=3)
    assert [row[0] for row in rows[1:]] == [*(one.word for one in wanted.candidates), "mat"]
    assert rows[4][1] == f"{wanted.rank:,}"


def test_fill_as_json_and_an_unknown_word(run):
    found = run("fill", "en", "The zzxq sat [zzxqy] there.", "--json", "-n", 2)
    value = json.loads(found.out)
    assert value["position"] == 3 and value["rank"] is None and len(value["candidates"]) == 2
    assert "not in the vocabulary" in found.err


@pytest.mark.parametrize("text", ["no brackets", "[two] [brackets]", "[two words]", "[]", ""])
def test_fill_refuses_a_text_without_one_marked_word(run, text):
    found = run("fill", "en", text)
    assert found.code == 1 and "square brackets" in found.err and found.err.count("\n") == 1


def test_probability_by_word_and_by_sentence_agree(run, tmp_path):
    (tmp_path / "text.txt").write_text("He sat down. She zzxq left.\n\nThe end.\n", encoding="utf-8")
    words = run("probability", "en", tmp_path / "text.txt", "-o", tmp_path / "w.jsonl")
    sentences = run("probability", "en", tmp_path / "text.txt", "--by", "sentence")
    assert words.code == sentences.code == 0, (words, sentences)
    rows = [json.loads(line) for line in (tmp_path / "w.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["line"], row["sentence"]) for row in rows] == [(1, 1)] * 4 + [(1, 2)] * 4 + [(3, 1)] * 3
    assert [row["word"] for row in rows if row["unknown"]] == ["zzxq"]
    header, *lines = [line.split("\t") for line in sentences.out.splitlines()]
    table = [dict(zip(header, line, strict=True)) for line in lines]
    assert [row["text"] for row in table] == ["He sat down .", "She zzxq left .", "The end ."]
    for row in table:
        mine = [one for one in rows if (str(one["line"]), str(one["sentence"])) == (row["line"], row["sentence"])]
        rest = float(row["forward"]) - sum(one["forward"] for one in mine)  # the boundary
        assert -10 < rest < 0
        assert float(row["forward_bits"]) == pytest.approx(-float(row["forward"]) * 1.442695, rel=1e-4)


def test_probability_refuses_other_extensions_blank_text_its_own_input_and_models_without_a_softmax(
    run, tmp_path, model
):
    text = tmp_path / "text.txt"
    text.write_text("\n", encoding="utf-8")
    assert ".tsv, .jsonl" in run("probability", "en", text, "-o", tmp_path / "x.csv").err
    blank = run("probability", "en", text, "-o", tmp_path / "x.tsv")
    assert blank.code == 1 and "no sentence" in blank.err and not (tmp_path / "x.tsv").exists()
    text.write_text("a b\n", encoding="utf-8")
    table = tmp_path / "table.tsv"
    table.write_text("id\ttext\n1\ta b\n", encoding="utf-8")
    assert run("probability", "en", table, "--field", "text", "-o", tmp_path / "y.tsv").code == 0
    assert len((tmp_path / "y.tsv").read_text(encoding="utf-8").splitlines()) == 3
    own = run("probability", "en", table, "--field", "text", "-o", table)
    assert own.code == 1 and "is the input" in own.err and table.read_text(encoding="utf-8").startswith("id")
    without = run("probability", model, text)
    assert without.code == 1 and "no softmax" in without.err
