"""The CRF agrees with an enumeration of all paths, and with pytorch-crf."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
import torch
import torchcrf
from hypothesis import given
from hypothesis import strategies as st

from bilmo.tasks.data import spans
from bilmo.tasks.network.crf import CRF

from strategies import seeds

BIOES = spans.bioes_tags(["A"])
OUTSIDE = [*BIOES, "O"]
LEGAL = torch.tensor([[spans.may_follow(a, b) for b in OUTSIDE] for a in OUTSIDE])


def drawn(
    seed: int, legal: torch.Tensor, lengths: list[int], size: float = 1.0
) -> tuple[CRF, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    crf = CRF(legal)
    with torch.no_grad():
        crf.transitions.copy_(torch.randn(legal.shape, generator=generator))
    emissions = torch.randn(len(lengths), max(lengths), len(legal) - 1, generator=generator) * size
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return crf, emissions, mask


def paths(crf: CRF, emissions: torch.Tensor, length: int) -> dict[tuple[int, ...], float]:
    """The score of every legal path of one sentence."""
    tags = len(crf.legal) - 1
    legal, step, emit = crf.legal.tolist(), crf.transitions.tolist(), emissions.tolist()
    found = {}
    for path in product(range(tags), repeat=length):
        steps = list(pairwise((tags, *path, tags)))
        if all(legal[a][b] for a, b in steps):
            found[path] = sum(emit[t][k] for t, k in enumerate(path)) + sum(step[a][b] for a, b in steps)
    return found


@pytest.mark.parametrize("legal", [LEGAL, torch.ones(4, 4, dtype=torch.bool)], ids=["bioes", "all"])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_an_enumeration_of_all_paths(legal, seed):
    lengths = [4, 1, 3]
    crf, emissions, mask = drawn(seed, legal, lengths)
    best = crf.best(emissions, mask)
    likely = crf.probabilities(emissions, mask)
    for row, length in enumerate(lengths):
        scores = paths(crf, emissions[row], length)
        total = torch.logsumexp(torch.tensor(list(scores.values())), 0)
        assert tuple(best[row]) == max(scores, key=lambda path: scores[path])
        for path in list(scores)[:3]:
            tags = torch.zeros(1, max(lengths), dtype=torch.long)
            tags[0, :length] = torch.tensor(path)
            loss = crf.loss(emissions[row : row + 1], mask[row : row + 1], tags)
            assert loss.item() == pytest.approx(float(total) - scores[path], abs=1e-4)
        for t, k in product(range(length), range(len(legal) - 1)):
            share = sum(torch.exp(torch.tensor(score) - total) for path, score in scores.items() if path[t] == k)
            assert float(likely[row, t, k]) == pytest.approx(float(share), abs=1e-4)
        assert not likely[row, length:].any()


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_pytorch_crf_where_all_is_legal(seed):
    crf, emissions, mask = drawn(seed, torch.ones(6, 6, dtype=torch.bool), [5, 2, 4, 1])
    theirs = torchcrf.CRF(5, batch_first=True)
    with torch.no_grad():
        theirs.transitions.copy_(crf.transitions[:-1, :-1])
        theirs.start_transitions.copy_(crf.transitions[-1, :-1])
        theirs.end_transitions.copy_(crf.transitions[:-1, -1])
    tags = torch.randint(0, 5, mask.shape, generator=torch.Generator().manual_seed(seed))
    ours = crf.loss(emissions, mask, tags)
    reference = -theirs(emissions, tags, mask=mask, reduction="none")
    torch.testing.assert_close(ours, reference, atol=1e-4, rtol=1e-4)
    assert crf.best(emissions, mask) == theirs.decode(emissions, mask)
    ours.sum().backward()
    reference.sum().backward()
    torch.testing.assert_close(crf.transitions.grad[:-1, :-1], theirs.transitions.grad, atol=1e-4, rtol=1e-4)


@given(seeds(), st.lists(st.integers(0, 7), min_size=1, max_size=4), st.sampled_from((1.0, 1e3, 1e7)))
def test_only_legal_paths_are_predicted(seed, lengths, size):
    crf, emissions, mask = drawn(seed, LEGAL, [*lengths, 1], size)
    for path, length in zip(crf.best(emissions, mask), [*lengths, 1], strict=True):
        assert len(path) == length
        tags = ["O", *(BIOES[k] for k in path), "O"]
        assert all(spans.may_follow(a, b) for a, b in pairwise(tags))


def test_a_sentence_without_tokens_has_loss_0():
    crf, emissions, mask = drawn(0, LEGAL, [3, 1])
    mask[1] = False
    loss = crf.loss(emissions, mask, torch.zeros(2, 3, dtype=torch.long))
    assert loss[1].item() == 0
    assert crf.best(emissions, mask)[1] == []
