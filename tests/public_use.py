"""Every public function as a user's program calls it, with the types that it gets back.

`make check` checks this file with `mypy --strict`, and tests/test_public.py runs it in a folder with the files that it
names: `model` and `text.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import torch
from numpy.typing import NDArray

import bilmo
from bilmo.api.convert import Conversion
from bilmo.api.models import InstalledModel
from bilmo.embed.fill import Filled
from bilmo.embed.job import Event as EmbedEvent
from bilmo.embed.job import Finished
from bilmo.embed.module import ElmoModule
from bilmo.embed.perplexity import Perplexity
from bilmo.embed.texts import Embedded
from bilmo.generate.network.head import Hypothesis
from bilmo.net.state import State
from bilmo.sense.labelled.disambiguator import WordSense
from bilmo.sense.senses import Sense
from bilmo.tasks.core.measure import Score
from bilmo.tasks.data.frames import Frame, Marked
from bilmo.tasks.data.squad import Question, Span
from bilmo.training.events import Event
from sense_data import write_sense_files

Floats = NDArray[np.floating[Any]]
Vectors = NDArray[np.float32]


def embedding() -> None:
    """Texts and sentences to vectors."""
    elmo = bilmo.load("model", start="settled", lang="en", batch_tokens=512, precision="float32", device="cpu")
    assert_type(elmo, bilmo.Embedder)
    assert_type(elmo.embed("a cat"), Embedded[Floats])
    assert_type(elmo.embed(["a cat", "a dog"], mix="top", dtype="float16"), list[Embedded[Floats]])
    assert_type(elmo.embed([["a", "cat"]], mix=(0, 1), batch_tokens=64), list[Floats])
    assert_type(elmo.embed(["a cat", "a dog"], pool="mean", normalize=True), Floats)
    assert_type(elmo.embed("a cat", pool="max", progress=True), Floats)
    assert_type(elmo.embed("a cat", as_tensor=True), Embedded[torch.Tensor])
    assert_type(elmo.embed(["a cat"], as_tensor=True), list[Embedded[torch.Tensor]])
    assert_type(elmo.embed([["a", "cat"]], as_tensor=True), list[torch.Tensor])
    assert_type(elmo.embed([["a", "cat"]], pool="mean", as_tensor=True), torch.Tensor)
    elmo.embed(np.array(["a cat", "a dog"]))
    tokens, vectors = elmo.embed("a cat", mix="all")
    assert_type(tokens, list[str])
    assert vectors.shape[1] == len(tokens)
    assert_type(elmo.embed_stream(iter(["a cat"])), Iterator[Embedded[Floats]])
    assert_type(elmo.embed_stream([["a", "cat"]], mix="concat"), Iterator[Floats])
    assert_type(elmo.embed_stream(["a cat"], pool="mean", normalize=True), Iterator[Floats])
    assert_type(elmo.offsets("a cat"), list[tuple[int, int]])
    assert_type(elmo.layers([["a", "cat"]]), list[Vectors])
    assert_type(elmo.log_probs([["a", "cat"]]), list[Vectors])
    assert_type(elmo.log_probs_at(["a", "cat"], 1), Vectors)
    assert_type(elmo.word_vectors(["cat"]), Vectors)
    assert_type(elmo.to("cpu"), bilmo.Embedder)
    elmo.save(Path("saved"), dtype="float16")
    elmo.reset()


def files() -> None:
    """Text files to files of vectors."""
    assert_type(bilmo.word_cache("model", "text.txt", "words.safetensors", progress=True), int)
    done = bilmo.embed_files("model", "text.txt", "vectors.npy", pool="mean", word_cache="words.safetensors", lang="en")
    assert_type(done, Finished)
    events = bilmo.embed_files(bilmo.load("model"), [Path("text.txt")], "vectors.h5", mix=(0, 1), events=True)
    assert_type(events, Iterator[EmbedEvent])
    assert_type(list(events), list[EmbedEvent])


def words() -> None:
    """Words compared with words."""
    elmo = bilmo.load("model")
    assert_type("cat" in elmo, bool)
    assert_type(elmo["cat"], Vectors)
    assert_type(elmo.similarity("cat", ["the", "dog"]), float)
    assert_type(elmo.most_similar("cat", topn=3, candidates=100), list[tuple[str, float]])
    assert_type(elmo.most_similar(positive=["cat"], negative=["dog"]), list[tuple[str, float]])
    assert_type(elmo.doesnt_match(["cat", "dog", "mat"]), str)
    assert_type(elmo.fill("the [cat] sat", topn=3), Filled)


def modules() -> None:
    """The model as a part of a network of torch."""
    elmo = bilmo.load("model")
    module = elmo.module(mixes=2, tune=True, mix="weighted", own=True, norm="allennlp", dropout=0.1, word=True)
    assert_type(module, ElmoModule)
    mixed, mask = module([["a", "cat"]])
    assert len(mixed) == 2 and mask.shape == (1, 2)
    mix = bilmo.Mix(layers=2, width=8, how="top")
    values = bilmo.Layers(torch.zeros(3, 1, 2, 16), torch.ones(1, 2, dtype=torch.bool))
    assert mix(values).shape == (1, 2, 16)
    network = bilmo.BiLM(bilmo.BiLMConfig(width=elmo.config.width, words=elmo.config.words, cell=elmo.config.cell))
    assert_type(network.zero_state(1), State)


def training() -> None:
    """Text to a model."""
    assert_type(bilmo.train("text.txt", "new", recipe="tiny", epochs=0.2, seed=3, progress=True), bilmo.Embedder)
    events = bilmo.finetune("new", [Path("text.txt")], "finer", add_words=1, epochs=0.2, events=True)
    assert_type(events, Iterator[Event])
    assert_type(list(events), list[Event])
    assert_type(bilmo.evaluate("new", "text.txt", lang="spaces"), Perplexity)
    assert_type(bilmo.convert("new", "old", to="allennlp"), Conversion)
    assert_type(bilmo.models(), list[InstalledModel])
    try:
        bilmo.get("no such model")
    except bilmo.BilmoError as error:
        assert "no such model" in str(error)


def tasks() -> None:
    """Labels and tags."""
    elmo = bilmo.load("model")
    classifier = bilmo.Classifier(elmo, epochs=1, hidden=4, cache="layers")
    classifier.fit(["a cat", "a dog"] * 8, ["cat", "dog"] * 8)
    assert_type(classifier.predict(["a cat"]), NDArray[np.generic])
    assert_type(classifier.predict_proba(["a cat"]), NDArray[np.float64])
    assert_type(classifier.score(["a cat"], ["cat"]), float)
    tagger = bilmo.Tagger(elmo, epochs=1, hidden=4, cache="layers")
    tagger.fit([["a", "cat"], ["the", "dog"]] * 8, [["O", "B-PET"]] * 16)
    assert_type(tagger.predict([["a", "cat"]]), list[Sequence[str]])
    entailment = bilmo.Entailment(elmo, epochs=1, hidden=4, cache="layers")
    entailment.fit([("a cat", "a pet"), ("a dog", "a cat")] * 8, [True, False] * 8)
    assert_type(entailment.predict([("a cat", "a dog")]), NDArray[np.generic])
    reader = bilmo.Reader(elmo, epochs=1, hidden=4, cache="layers").fit(
        [(f"a cat {k}", "who?") for k in range(8)], ["cat"] * 8
    )
    reader.score([("a dog", "who?")], ["dog"])
    assert_type(reader.predict([("a dog", "who?"), Question("a dog", "who?")]), list[Span | None])
    relations = bilmo.Relations(elmo, epochs=1, hidden=4, cache="layers")
    relations.fit(["<e1>Cats</e1> eat <e2>mice</e2>", ("a cat", (0, 1), (2, 5))] * 8, ["Eats(e1,e2)", "Other"] * 8)
    assert_type(relations.predict([(["a", "cat"], (0, 1), (1, 2))]), NDArray[np.generic])
    frames = [[Frame(1, ["B-A0", "B-V"])], []] * 8
    labeler = bilmo.RoleLabeler(elmo, epochs=1, hidden=4, cache="layers").fit(
        [["cat", "sat"], ["a", "cat"]] * 8, frames
    )
    assert_type(labeler.predict([["dog", "sat"], Marked(["dog", "sat"], [1])]), list[list[Frame]])
    stories = [[["cat", "sat"], ["it", "ran"]], [["a", "dog"], ["it", "sat"]]] * 8
    coreference = bilmo.Coreference(elmo, epochs=1, hidden=4, cache="layers")
    coreference.fit(stories, [[[(0, 0), (2, 2)]], [[(0, 1), (2, 2)]]] * 8)
    assert_type(coreference.predict([stories[0], "A cat sat."]), list[Sequence[Sequence[tuple[int, int]]]])
    assert_type(coreference.tokens(["A cat sat."]), list[list[list[str]]])
    translator = bilmo.Translator(elmo, epochs=1, hidden=4, cache="layers").fit(
        ["a cat", ["a", "dog"]] * 8, ["eine Katze"] * 16
    )
    assert_type(translator.predict(["a dog"]), list[str])
    assert_type(translator.hypotheses(["a dog"], beam=2, best=2), list[list[Hypothesis]])
    assert_type(translator.log_probability(["a dog"], ["eine Katze"]), list[float])
    summariser = bilmo.Summariser(elmo, epochs=1, hidden=4, cache="layers").fit(
        ["A cat sat. It ran."] * 8 + ["b"], ["cat"] * 9
    )
    assert_type(summariser.predict(["A dog sat."]), list[str])
    assert_type(tagger.set_params(epochs=2).get_params(), dict[str, Any])


def senses() -> None:
    """Labelled text to senses."""
    write_sense_files(Path())
    found = bilmo.Disambiguator(bilmo.load("model"), mix="mean", prior=0.2)
    assert_type(found.fit("semcor.jsonl", Path("index.sense"), progress=True), bilmo.Disambiguator)
    assert_type(found.predict(["a cat sat"]), list[list[WordSense]])
    assert_type(found.score("test.xml", "test.key"), Score)
    assert_type(bilmo.Senses.find(bilmo.load("model"), "cat", "text.txt", mix="top").senses, list[Sense])
    found.save("senses", model="model")
    assert_type(bilmo.Disambiguator.load("senses").predict([["he", "sat"]]), list[list[WordSense]])


if __name__ == "__main__":
    for part in (embedding, files, words, modules, training, tasks, senses):
        part()
