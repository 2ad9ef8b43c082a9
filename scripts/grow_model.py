"""Make a model larger without changing what it computes, as the start of more training.

The larger network is wider, and may read word vectors beside the characters; everything else is the same. The new
inputs of every old unit have weight 0, so the first part of the new vectors is equal to the old vectors, and old words
keep their probabilities. New words share the probability of `<UNK>`.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilmo.ids.vocab import Vocab
from bilmo.net.state import State
from bilmo.store.bundle import Bundle
from bilmo.training.build import plan_model
from bilmo.training.corpus import Corpus
from bilmo.training.recipe import Recipe


def place(new: Tensor, old: Tensor, first_input: int = 0) -> Tensor:
    """Put old weights into the corner of larger ones; the other inputs of the old outputs get weight 0."""
    new = new.clone()
    new[: len(old)] = 0
    if old.dim() == 1:
        new[: len(old)] = old
    else:
        new[: len(old), first_input : first_input + old.shape[1]] = old
    return new


def grown_softmax(old: Bundle, vocab: Vocab, counts: NDArray[np.int64], width: int) -> dict[str, Tensor]:
    """The rows of known words, and for new words that of `<UNK>`, whose probability they share by their counts."""
    assert old.vocab is not None
    ids = torch.tensor(old.vocab.ids(vocab.words))
    weight = torch.zeros(len(vocab), width)
    weight[:, : old.config.width] = old.weights["softmax.weight"][ids]
    unknown = (ids == old.vocab.unknown).numpy()
    shares = np.where(unknown, np.maximum(counts[: len(vocab)], 1), 1).astype(np.float64)
    shares[vocab.unknown] = max(1, counts[len(vocab) :].sum())  # words that stay unknown
    shares[unknown] /= shares[unknown].sum()
    return {
        "softmax.weight": weight,
        "softmax.bias": old.weights["softmax.bias"][ids] + torch.from_numpy(np.log(shares)).float(),
    }


def grow(old: Bundle, recipe: Recipe, corpus: Corpus) -> Bundle:
    """The larger model: the network of the recipe, and the most frequent words of the corpus."""
    plan = plan_model(recipe.network, recipe.text, corpus.words, corpus.counts)
    model = plan.model(recipe.train.seed)
    table = plan.config.words.table
    weights = {name: value.detach() for name, value in model.bilm.state_dict().items()}
    for name, value in old.weights.items():
        if name == "words.project.weight":  # the characters come after the word vectors
            weights[name] = place(weights[name], value, table.width if table else 0)
        elif not name.startswith("softmax."):
            weights[name] = place(weights[name], value)
    weights |= grown_softmax(old, plan.vocab, corpus.counts, plan.config.width)
    start = model.bilm.zero_state(1).named()
    assert old.start is not None
    for name, part in old.start.named().items():
        start[name][:, : part.shape[1]] = part
    return Bundle(
        plan.config,
        weights,
        "trained by bilmo",
        vocab=plan.vocab,
        chars=plan.chars,
        start=State.from_named(start),
        lang=corpus.facts.lang,
        card=old.card,
    )
