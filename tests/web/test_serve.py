"""The routes of the server, compared with the same functions in Python."""

import base64
import io
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest

import bilmo
from bilmo.embed.probability import scored
from bilmo.generate.folder import load as load_task
from bilmo.sense.index import Index

TEXTS = ["He sat on the bank. It was late.", "", "味道很好。", "a \ud800 b"]


@pytest.fixture(scope="module")
def elmo():
    return bilmo.load("en")


@pytest.fixture(scope="module")
def uses(fitted):
    """The lines of the text that is indexed."""
    return (fitted / "uses.txt").read_text().splitlines()


def asked(server, route, **body):
    answer = server.post(route, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mix": "top"},
        {"mix": 0},
        {"mix": [0, 2]},
        {"mix": "concat", "normalize": True},
        {"pool": "mean"},
        {"pool": "max", "normalize": True},
        {"layers": True},
        {"layers": True, "pool": "mean"},
    ],
    ids=str,
)
@pytest.mark.parametrize("encoding", ["numbers", "base64"])
def test_vectors_are_those_of_embed(server, elmo, options, encoding):
    found = asked(server, "/embed", text=TEXTS[:3], encoding=encoding, **options)
    assert found["model"] == "en"
    given = {name: value for name, value in options.items() if name != "layers"}
    given["mix"] = "all" if "layers" in options else options.get("mix", "mean")
    for text, one in zip(TEXTS, found["results"], strict=False):
        tokens, _ = elmo.embed(text)
        vectors = elmo.embed([text], **given)[0]
        vectors = vectors if "pool" in options else vectors.vectors
        values = one["vectors"]
        if encoding == "base64":
            values = np.frombuffer(base64.b64decode(values), dtype="<f4").reshape(one["shape"])
        assert one["tokens"] == tokens
        assert one["shape"] == list(vectors.shape)
        assert sum(one["sentences"]) == len(tokens)
        assert [text[begin:end] for begin, end in one["offsets"]] == tokens
        np.testing.assert_allclose(np.array(values).reshape(vectors.shape), vectors, atol=1e-5)


def test_tokens_are_used_as_they_are(server, elmo):
    found = asked(server, "/embed", tokens=[["a b", "c"], []])["results"]
    assert (found[0]["tokens"], found[0]["offsets"], found[1]["shape"]) == (["a b", "c"], None, [0, 512])
    np.testing.assert_allclose(found[0]["vectors"], elmo.embed([["a b", "c"]])[0], atol=1e-5)
    assert asked(server, "/embed", tokens=["a", "b"])["results"][0]["tokens"] == ["a", "b"]


def test_arrays_and_arrow(server, elmo):
    body = {"text": ["He sat.", "", "Yes"]}
    answer = server.post("/embed", json=body, headers={"Accept": "application/x-npy"})
    tokens = [len(elmo.embed(text).tokens) for text in body["text"]]
    assert answer.headers["bilmo-tokens"] == ",".join(map(str, tokens))
    whole = np.concatenate([elmo.embed(text).vectors for text in body["text"]])
    np.testing.assert_allclose(np.load(io.BytesIO(answer.content)), whole, atol=1e-5)
    answer = server.post("/embed", json=body | {"pool": "mean"}, headers={"Accept": "application/x-npy"})
    np.testing.assert_allclose(np.load(io.BytesIO(answer.content)), elmo.embed(body["text"], pool="mean"), atol=1e-5)
    arrow = {"Accept": "application/vnd.apache.arrow.stream"}
    table = pa.ipc.open_stream(server.post("/embed", json=body | {"layers": True}, headers=arrow).content).read_all()
    assert table.column_names == ["tokens", "layer_0", "layer_1", "layer_2"]
    assert [len(row) for row in table["layer_2"].to_pylist()] == tokens
    np.testing.assert_allclose(table["layer_1"][0].as_py(), elmo.embed("He sat.", mix="all").vectors[1], atol=1e-5)
    table = pa.ipc.open_stream(server.post("/embed", json=body | {"pool": "max"}, headers=arrow).content).read_all()
    np.testing.assert_allclose(table["vector"].to_pylist(), elmo.embed(body["text"], pool="max"), atol=1e-5)


def test_text_embeddings_inference(server, elmo):
    for texts in ("He sat.", ["He sat.", "Yes"]):
        found = asked(server, "/embed", inputs=texts)
        wanted = elmo.embed([texts] if isinstance(texts, str) else texts, pool="mean", normalize=True)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    plain = asked(server, "/embed", inputs="He sat.", normalize=False)
    np.testing.assert_allclose(plain, elmo.embed(["He sat."], pool="mean"), atol=1e-5)


def test_words(server, elmo):
    first, second = asked(server, "/words", words=["bank", "é"])["results"]
    assert first["id"] == elmo.bundle.vocab.ids(["bank"])[0]
    assert first["characters"] == ["<bow>", "b", "a", "n", "k", "<eow>"]
    assert second["character_ids"] == [258, 0xC3, 0xA9, 259] and second["characters"][1:3] == ["c3", "a9"]
    (chinese,) = asked(server, "/words", model="zh", words=["好人"])["results"]
    assert chinese["characters"] == ["<bow>", "好", "人", "<eow>"]


def test_similar_words_and_uses(server, elmo):
    (found,) = asked(server, "/similar", words=["river"], n=4)["results"]
    near = [(one["word"], one["cosine"]) for one in found["similar"]]
    assert near == [(word, pytest.approx(cosine)) for word, cosine in elmo.most_similar("river", topn=4)]
    among = ["They robbed the bank.", "", "The bank of the river."]
    found = asked(server, "/similar", text="He sat on the [bank].", among=among, n=30)
    here = elmo.embed("He sat on the bank.", normalize=True).vectors[4]
    wanted = []
    for number, text in enumerate(among):
        tokens, vectors = elmo.embed(text, normalize=True)
        wanted += [(float(row @ here), number, at, tokens[at]) for at, row in enumerate(vectors)]
    wanted.sort(reverse=True)
    uses = found["uses"]
    assert [(one["among"], one["position"], one["word"]) for one in uses] == [tuple(place) for _, *place in wanted]
    np.testing.assert_allclose([one["cosine"] for one in uses], [cosine for cosine, *_ in wanted], atol=1e-5)
    body = {"tokens": ["He", "sat"], "position": 1, "among": [["He", "sat"], ["sat", "sat"]], "same_word": True}
    assert [one["word"] for one in asked(server, "/similar", **body)["uses"]] == ["sat"] * 3


def test_uses_in_an_index(server, elmo, fitted, uses):
    body = {"text": "They sat by the [bank] of a stream.", "n": 5}
    found = asked(server, "/similar", **body)
    assert (found["tokens"][found["position"]], len(found["uses"])) == ("bank", 5)
    wanted = [asdict(use) for use in Index.open(fitted / "uses").search(elmo, body["text"], 5)]
    assert found["uses"] == [use | {"cosine": pytest.approx(use["cosine"], abs=1e-5)} for use in wanted]
    assert uses[wanted[0]["line"] - 1] == wanted[0]["text"].replace("[", "").replace("]", "")
    assert asked(server, "/similar", text="an [absent] word", same_word=True)["uses"] == []


def test_senses_of_texts(server, elmo, fitted, uses):
    wanted = bilmo.Senses.find(elmo, "bank", fitted / "uses.txt")
    found = asked(server, "/senses", word="bank", among=uses, n=100)
    check_senses(found, wanted, lambda use: uses[use["among"]])
    sentences = [sentence for line in uses for sentence in elmo.split(line)]
    of_tokens = asked(server, "/senses", word="bank", among=[*sentences, []], n=2)
    assert [len(sense["uses"]) for sense in of_tokens["senses"]] == [2] * len(found["senses"])
    assert of_tokens["silhouettes"] == pytest.approx(found["silhouettes"], abs=1e-4)
    nothing = {"model": "en", "word": "absent", "uses": 0, "silhouettes": {}, "senses": []}
    assert asked(server, "/senses", word="absent", among=uses) == nothing
    assert asked(server, "/senses", word="absent", among=[]) == asked(server, "/senses", word="absent") == nothing


def test_senses_in_an_index(server, fitted, uses):
    wanted = bilmo.Senses.in_index("bank", Index.open(fitted / "uses"))
    found = asked(server, "/senses", word="BANK ", n=100)
    check_senses(found, wanted, lambda use: uses[use["line"] - 1])
    assert {use["file"] for sense in found["senses"] for use in sense["uses"]} == {"uses.txt"}


def check_senses(found, wanted, line_of):
    assert (found["uses"], len(found["senses"])) == (wanted.total, len(wanted.senses)) and len(wanted.senses) > 1
    for sense, other in zip(found["senses"], wanted.senses, strict=True):
        assert (sense["typical_words"], sense["number_of_uses"]) == (other.typical_words, len(other.uses))
        assert {use["text"] for use in sense["uses"]} == {use.text for use in other.uses}
        for use in sense["uses"]:
            assert use["tokens"][use["position"]] == "bank"
            assert line_of(use) == use["text"].replace("[", "").replace("]", "")
    points = sorted((use["text"], abs(use["x"]), abs(use["y"])) for sense in found["senses"] for use in sense["uses"])
    others = sorted((use.text, abs(use.x), abs(use.y)) for sense in wanted.senses for use in sense.uses)
    np.testing.assert_allclose([p[1:] for p in points], [p[1:] for p in others], atol=1e-3)


def test_fill(server, elmo):
    wanted = elmo.fill("The cat sat on the [mat].", topn=3)
    found = asked(server, "/fill", text="The cat sat on the [mat].", n=3)
    assert [one["word"] for one in found["candidates"]] == [one.word for one in wanted.candidates]
    assert (found["rank"], found["position"]) == (wanted.rank, 5)
    tokens = asked(server, "/fill", tokens=wanted.sentence, position=5, n=3)
    assert tokens["candidates"] == found["candidates"]


def test_probability(server, elmo):
    found = asked(server, "/probability", text=["He sat. Yes.", ""])["results"]
    wanted = list(scored(elmo, ["He sat. Yes."]))
    assert found[1] == {"sentences": []}
    assert [one["tokens"] for one in found[0]["sentences"]] == [one.tokens for one in wanted]
    for one, other in zip(found[0]["sentences"], wanted, strict=True):
        np.testing.assert_allclose(one["words"]["backward"], other.words["backward"], atol=1e-5)
        assert one["totals"] == pytest.approx(other.totals, abs=1e-4)


def test_predictions(server, fitted):
    found = asked(server, "/predict/my-tag", text=["Anna saw Oslo. The cat.", ""], probabilities=True)
    assert (found["kind"], [one["input"] for one in found["results"]]) == ("tag", [0, 0, 1])
    sentences = [["Anna", "saw", "Oslo", "."], ["The", "cat", "."], []]
    assert [one["tokens"] for one in found["results"]] == sentences
    assert [one["tags"] for one in found["results"]] == load_task(fitted / "my-tag").predict(sentences)
    found = asked(server, "/predict/labels", text=["the cat", "a dog"] * 20)
    assert len(found["results"]) == 40 and {one["label"] for one in found["results"]} <= {"good", "bad"}


def test_state(server, elmo, uses):
    assert server.get("/health").json()["status"] == "ok"
    assert server.get("/ready").json() == {"ready": True}
    assert server.get("/").headers["content-type"].startswith("text/html")
    info = server.get("/info").json()
    words = sum(token.isalpha() for line in uses for token in elmo.embed(line).tokens)
    assert [(model["name"], model["index"]) for model in info["models"]] == [("en", {"uses": words}), ("zh", None)]
    assert [(task["name"], task["kind"], task["model"]) for task in info["tasks"]] == [
        ("my-tag", "tag", "en"),
        ("labels", "classify", "en"),
        ("my-answer", "answer", "en"),
    ]
    assert [model["id"] for model in server.get("/v1/models").json()["data"]] == ["en", "zh"]
    assert server.get("/v1/models/zh").json()["id"] == "zh"


@pytest.mark.parametrize(
    ("route", "body", "status", "message"),
    [
        ("/embed", {}, 422, "either text or tokens"),
        ("/embed", {"text": "a", "tokens": ["a"]}, 422, "either text or tokens"),
        ("/embed", {"text": "a", "mix": 7}, 422, "0 (the word) to 2"),
        ("/embed", {"text": "a", "mixed": 1}, 422, "mixed"),
        ("/embed", {"text": "a", "model": "../../etc/passwd"}, 404, "there is no model"),
        ("/embed", {"text": ["a"] * 1025}, 413, "1,024"),
        ("/embed", {"text": "a " * 4097}, 413, "4,096"),
        ("/embed", {"tokens": ["a" * 300_000]}, 413, "4,096"),
        ("/embed", {"text": ["a b c d e f g h i j k l m n o p "] * 512, "layers": True}, 413, "would take"),
        ("/v1/embeddings", {"model": "en", "input": [1, 2, 3]}, 422, "string"),
        ("/v1/embeddings", {"model": "en", "input": "a", "dimensions": 5}, 422, "have 512"),
        ("/v1/embeddings", {"model": "no", "input": "a"}, 404, "there is no model"),
        ("/similar", {"words": [" "]}, 422, "empty"),
        ("/similar", {"text": "a [b]", "model": "zh"}, 422, "there is no index of 'zh'"),
        ("/similar", {"text": "a [b]", "mix": "top"}, 422, "leave out mix"),
        ("/similar", {"text": "a [b]", "index": "/etc"}, 422, "index: Extra inputs"),
        ("/senses", {}, 422, "word"),
        ("/senses", {"word": "two words"}, 422, "give one word"),
        ("/senses", {"word": "a", "model": "zh"}, 422, "there is no index of 'zh'"),
        ("/senses", {"word": "a", "mix": "top"}, 422, "leave out mix"),
        ("/senses", {"word": "a", "among": ["a"], "mix": 9}, 422, "0 (the word) to 2"),
        ("/senses", {"word": "a", "among": ["a"] * 1024}, 413, "1,023"),
        ("/senses", {"word": "a", "among": ["a " * 4097]}, 413, "4,096"),
        ("/fill", {"text": "no brackets"}, 422, "square brackets"),
        ("/fill", {"tokens": ["a"], "position": 1}, 422, "below that of the tokens (1)"),
        ("/fill", {"text": "a [b]", "n": 0}, 422, "greater than or equal to 1"),
        ("/predict/nothing", {"text": "a"}, 404, "there is no task"),
        ("/predict/labels", {"pairs": [["a", "b"]]}, 422, "needs text or tokens"),
        ("/nothing", {}, 405, "Not Allowed"),
    ],
)
def test_a_wrong_request_is_answered_with_what_is_wrong(server, route, body, status, message):
    answer = server.post(route, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, status)
    assert message in answer.json()["error"]["message"]
