"""Word sense disambiguation by the nearest sense."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import Whitening, unit
from bilmo.errors import ConfigError, DamagedFile, TextError
from bilmo.sense.labelled import corpus, folder
from bilmo.sense.labelled import learn as module
from bilmo.sense.labelled.corpus import Use
from bilmo.sense.labelled.disambiguator import Disambiguator
from bilmo.sense.labelled.inventory import Inventory, Lemma
from bilmo.sense.labelled.learn import Learning
from bilmo.sense.labelled.measure import sense_score
from sense_data import INVENTORY, write_sense_files

from task_data import made

ELMO = Embedder(made(0), lang="en")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    write_sense_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fitted(files):
    return Disambiguator(ELMO).fit("semcor.jsonl", "index.sense")


@pytest.mark.parametrize("whiten", [True, False])
def test_the_nearest_sense_is_that_of_a_direct_computation(files, whiten):
    found = Disambiguator(ELMO, mix="mean", whiten=whiten, prior=0.3).fit("semcor.jsonl", "index.sense")
    uses = {}
    train = corpus.read(files / "semcor.jsonl")
    for sentence in train:
        values = ELMO.embed([sentence.tokens])[0]
        for use in sentence.uses:
            uses.setdefault(use.senses[0], []).append(values[use.begin : use.end].mean(axis=0))
    space = Whitening.of(np.stack([vector for vectors in uses.values() for vector in vectors]))
    apply = space.apply if whiten else (lambda vectors: vectors)
    means = {key: unit(apply(np.stack(vectors)).sum(axis=0)) for key, vectors in uses.items()}
    asked = unit(apply(ELMO.embed([["The", "bank", "sat"]])[0][1:2]))[0]
    keys = ["bank%1:14:00::", "bank%1:17:01::"]
    scores = [means[key] @ asked + 0.3 * np.log(len(uses[key])) for key in keys]
    ((sat,),) = ([one for one in senses if one.text == "bank"] for senses in found.predict([["The", "bank", "sat"]]))
    assert sat.sense == keys[int(np.argmax(scores))] and not sat.fallback


def test_a_prior_without_end_gives_the_most_frequent_sense(files):
    found = Disambiguator(ELMO, prior=1e6).fit("semcor.jsonl", "index.sense")
    senses = found.predict(["The bank. The bank was closed.", "A bank!"])
    assert {one.sense for text in senses for one in text if one.lemma == "bank"} == {"bank%1:17:01::"}


def test_positions_count_the_tokens_of_a_text_and_words_without_uses_fall_back(fitted):
    text = "He sat. Then he took off to the benches."
    (senses,) = fitted.predict([text])
    tokens = ELMO.embed(text).tokens
    assert [" ".join(tokens[one.begin : one.end]) for one in senses] == [one.text for one in senses]
    assert [(one.text, one.fallback) for one in senses] == [("sat", False), ("took off", False), ("benches", True)]
    assert senses[2].sense == "bench%1:06:00::" and senses[2].topic == "noun.artifact"
    assert fitted.predict([]) == [] and fitted.predict(["", "xyz"]) == [[], []]


def test_texts_beside_a_text_change_nothing(fitted):
    texts = ["He sat on the bank.", "The bank was closed.", "She went fast.", ""]
    assert fitted.predict(texts) == [fitted.predict([text])[0] for text in texts]
    assert fitted.predict(texts[::-1]) == fitted.predict(texts)[::-1]


def test_the_score_counts_as_the_official_scorer(fitted):
    found = fitted.score("test.xml", "test.key")
    assert found.name == "F1" and [row.true for row in found.labels] == [2, 1, 1]
    details = dict(found.details)
    assert details["precision"] == pytest.approx(2 / 3) and details["recall"] == pytest.approx(2 / 4)
    assert found.value == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    assert details["always the first sense, F1"] == 2 / 4
    assert found.notes == ["1 of 4 words are not in the training text and got their first sense"]
    with pytest.raises(TextError, match="give the file of gold keys"):
        fitted.score("test.xml")
    assert fitted.score("semcor.jsonl").value > 0.5


@given(st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.sampled_from("abcd") | st.none()), max_size=20))
def test_f1_is_that_of_the_scorers_formulas(words):
    uses = [Use(0, 1, Lemma("x", "n"), tuple(gold)) for gold, _ in words]
    found = sense_score(uses, [(key, False) for _, key in words], Inventory([]))
    with_gold = [(gold, key) for gold, key in words if gold]
    ok = sum(key in gold for gold, key in with_gold)
    answered = sum(key is not None for _, key in with_gold)
    precision, recall = ok / answered if answered else 0, ok / len(with_gold) if with_gold else 0
    assert found.value == pytest.approx(2 * precision * recall / (precision + recall) if ok else 0)


def test_groups_of_sentences_and_a_stop_change_nothing(files, monkeypatch):
    sentences = corpus.read(files / "semcor.jsonl")
    whole = Learning(ELMO, sentences, Disambiguator(ELMO).settings)
    list(whole.steps())
    monkeypatch.setattr(module, "BATCH_SENTENCES", 2)
    parts = Learning(ELMO, sentences, Disambiguator(ELMO).settings)
    assert list(parts.steps()) == [2, 4, 5]
    assert np.allclose(whole.sums, parts.sums, atol=1e-5) and (whole.counts == parts.counts).all()


def test_a_run_that_stopped_is_resumed_with_the_same_result(files, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SENTENCES", 1)
    monkeypatch.setattr(folder, "CHECKPOINT_STEPS", 2)
    given = (files / "semcor.jsonl", files / "index.sense", None)
    for done, _ in folder.fit(Disambiguator(ELMO), files / "S", *given, model=""):
        if done == 3:
            break  # as if it were killed: the last checkpoint has two sentences
    with pytest.raises(ConfigError, match=r"prior was 0\.1 and is now 0\.5"):
        next(folder.fit(Disambiguator(ELMO, prior=0.5), files / "S", *given, model=""))
    seen = [done for done, _ in folder.fit(Disambiguator(ELMO), files / "S", *given, model="")]
    assert seen == [2, 3, 4, 5]
    once = Disambiguator(ELMO).fit(*given[:2])
    again = folder.load(files / "S", elmo=ELMO)
    assert again.learned.keys == once.learned.keys
    assert np.allclose(again.learned.vectors, once.learned.vectors, atol=1e-3)
    texts = ["He sat on the bank.", "They went fast."]
    assert again.predict(texts) == once.predict(texts)
    assert not (files / "S" / "training").exists()


@pytest.mark.parametrize("name", ["config.json", "vectors.safetensors", "senses.txt", "forms.tsv", "index.sense"])
def test_a_damaged_folder_is_refused(fitted, files, name):
    fitted.save(files / "S")
    content = (files / "S" / name).read_bytes()
    (files / "S" / name).write_bytes(content.replace(b"1", b"2", 1) if name == "config.json" else content[:-3])
    with pytest.raises((DamagedFile, ConfigError)) as error:
        Disambiguator.load(files / "S", elmo=ELMO)
    assert "\n" not in str(error.value)


def test_settings_are_checked_and_nothing_is_predicted_before_fit():
    with pytest.raises(ConfigError, match="prior is -1"):
        Disambiguator(ELMO, prior=-1)
    with pytest.raises(ConfigError, match="call fit first"):
        Disambiguator(ELMO).predict(["a"])
    assert Inventory.parse(INVENTORY.splitlines(), "").longest == 2
