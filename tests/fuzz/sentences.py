"""Sentences alone, in batches, in any order, with any cache, number of threads and batch size: the same vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from bilmo.embed import word_cache
from bilmo.embed.embedder import Embedder
from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts
from fuzz.damage import TEXTS
from fuzz.target import SAME, Box, Failure, Target

import old_models
from strategies import sentences

ALLOWED = 1e-5
"""Of the largest value of all layers."""
CACHES = (0, 600, 20_000, 1 << 26)


class Sentences(Target):
    """Lists of tokens, with models of three kinds."""

    name, share = "sentences", 50

    def prepare(self, box: Box) -> None:
        old_models.write_hdf5(box.good / "h")
        old_models.write_checkpoint(box.good / "c")
        old_models.write_manylangs(box.good / "m")
        self.bundles = [settled(layouts.read(box.good / name)) for name in "hcm"]

    def cases(self) -> st.SearchStrategy[Any]:
        return st.fixed_dictionaries(
            {
                "model": st.integers(0, len(self.bundles) - 1),
                "sentences": st.lists(sentences(12), min_size=1, max_size=12),
                "cache": st.sampled_from(CACHES),
                "threads": st.integers(1, 4),
                "batch_tokens": st.sampled_from((1, 7, 30, 4096)),
                "reversed": st.booleans(),
            }
        )

    def check(self, box: Box, case: Any) -> str:
        text = case["sentences"]
        word_cache.CACHE_BYTES = CACHES[-1]
        torch.set_num_threads(1)
        alone = Embedder(self.bundles[case["model"]])
        expected = [alone.layers([sentence])[0] for sentence in text]
        word_cache.CACHE_BYTES = case["cache"]
        torch.set_num_threads(case["threads"])
        other = Embedder(self.bundles[case["model"]], batch_tokens=case["batch_tokens"])
        step = -1 if case["reversed"] else 1
        for found in (other.layers(text[::step])[::step], list(other.layers(text))):  # the second time from the cache
            for a, b in zip(found, expected, strict=True):
                if a.shape != b.shape or not np.abs(a - b).max(initial=0) <= ALLOWED * max(1, np.abs(b).max(initial=0)):
                    raise Failure("silent difference: a sentence alone and in a batch")
        return SAME


class Texts(Sentences):
    """Raw text: tokens and vectors of a text do not depend on the texts beside it, and nothing of it is lost."""

    name, share = "texts", 30

    def cases(self) -> st.SearchStrategy[Any]:
        return st.fixed_dictionaries(
            {
                "model": st.integers(0, len(self.bundles) - 1),
                "texts": st.lists(TEXTS, min_size=1, max_size=6),
                "lang": st.sampled_from(("auto", "en", "west", "zh", "spaces")),
            }
        )

    def check(self, box: Box, case: Any) -> str:
        elmo = Embedder(self.bundles[case["model"]], lang=case["lang"])
        together = elmo.embed(case["texts"])
        streamed = list(elmo.embed_stream(iter(case["texts"])))
        for text, *found in zip(case["texts"], together, streamed, strict=True):
            alone = elmo.embed(text)
            if "".join(alone.tokens) != "".join(text.split()):
                raise Failure("the tokens are not the text")
            for other in found:
                if other.tokens != alone.tokens or not np.allclose(other.vectors, alone.vectors, atol=ALLOWED):
                    raise Failure("silent difference: a text alone and among others")
        return SAME
