"""A chain of tags: scores of whole paths, the best legal one, and how likely each tag is.

Only legal paths exist: while learning an illegal step costs so much that it has no share, and while decoding it
cannot be taken at all.

Knows: torch. Blind to: what tags mean, and why a step is legal.
"""

# B sentences, T tokens, K tags

from __future__ import annotations

import torch
from torch import Tensor, nn

FORBIDDEN = -1e4
"""The cost of an illegal step in sums over paths, where minus infinity would have no gradient."""


class CRF(nn.Module):
    """Scores for the step from one tag to the next, from the begin, and to the end; learned, or all 0."""

    legal: Tensor
    """(K + 1, K + 1): whether column may follow row; the last of both is outside the sentence."""

    def __init__(self, legal: Tensor, *, learned: bool = True) -> None:
        super().__init__()
        self.register_buffer("legal", legal, persistent=False)
        self.steps = nn.Parameter(torch.zeros(legal.shape), requires_grad=learned)

    def _parts(self, forbidden: float) -> tuple[Tensor, Tensor, Tensor]:
        """Scores (K, K) of steps, (K,) from the begin, (K,) to the end."""
        steps = self.steps.masked_fill(~self.legal, forbidden)
        return steps[:-1, :-1], steps[-1, :-1], steps[:-1, -1]

    def loss(self, emissions: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """Nats a sentence (B,): minus the log-probability of these tags (B, T), 0 where there are no tokens."""
        return self._total(emissions, mask) - self._score(emissions, mask, tags)

    def _score(self, emissions: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """The score (B,) of given paths."""
        steps, begin, end = self._parts(FORBIDDEN)
        picked = emissions.gather(2, tags.unsqueeze(-1)).squeeze(-1)  # (B, T)
        between = steps[tags[:, :-1], tags[:, 1:]]  # (B, T - 1)
        last = tags.gather(1, _last(mask)).squeeze(1)
        ends = (begin[tags[:, 0]] + end[last]) * mask[:, 0]
        return (picked * mask).sum(dim=1) + (between * mask[:, 1:]).sum(dim=1) + ends

    def _total(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Log of the sum (B,) over all paths."""
        _, _, end = self._parts(FORBIDDEN)
        alpha = self._forward(emissions, mask)[-1]
        return torch.logsumexp(alpha + end, dim=1) * mask[:, 0]

    def _forward(self, emissions: Tensor, mask: Tensor) -> list[Tensor]:
        """For each token (B, K): log of the sum over all beginnings that end in a tag; it stands still on padding."""
        steps, begin, _ = self._parts(FORBIDDEN)
        sums = [begin + emissions[:, 0]]
        for t in range(1, emissions.shape[1]):
            new = torch.logsumexp(sums[-1].unsqueeze(2) + steps, dim=1) + emissions[:, t]
            sums.append(torch.where(mask[:, t : t + 1], new, sums[-1]))
        return sums

    def _backward(self, emissions: Tensor, mask: Tensor) -> list[Tensor]:
        """For each token (B, K): log of the sum over all ways to go on after a tag."""
        steps, _, end = self._parts(FORBIDDEN)
        sums = [end.expand(len(emissions), -1)]
        for t in range(emissions.shape[1] - 1, 0, -1):
            new = torch.logsumexp((sums[0] + emissions[:, t]).unsqueeze(1) + steps, dim=2)
            sums.insert(0, torch.where(mask[:, t : t + 1], new, sums[0]))
        return sums

    @torch.no_grad()
    def probabilities(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """(B, T, K): how likely each tag is at each token, over all paths."""
        both = torch.stack(self._forward(emissions, mask), 1) + torch.stack(self._backward(emissions, mask), 1)
        return torch.softmax(both, dim=2) * mask.unsqueeze(-1)

    @torch.no_grad()
    def best(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """The best legal path of each sentence (Viterbi)."""
        steps, begin, end = self._parts(float("-inf"))
        score = begin + emissions[:, 0]  # (B, K)
        scores, from_ = [score], []
        for t in range(1, emissions.shape[1]):
            best, where = (score.unsqueeze(2) + steps).max(dim=1)
            score = best + emissions[:, t]
            scores.append(score)
            from_.append(where)
        at_end = torch.stack(scores, 1).gather(1, _last(mask).unsqueeze(-1).expand(-1, 1, len(end))).squeeze(1)
        best_end = (at_end + end).argmax(dim=1).tolist()  # (B,)
        before = torch.stack(from_, 1).tolist() if from_ else [[]] * len(mask)  # (B, T - 1, K), as plain numbers
        paths: list[list[int]] = []
        for tag, steps_back, length in zip(best_end, before, mask.sum(dim=1).tolist(), strict=True):
            path = [tag]
            for where in reversed(steps_back[: max(0, length - 1)]):
                path.append(where[path[-1]])
            paths.append(path[::-1] if length else [])
        return paths


def _last(mask: Tensor) -> Tensor:
    """(B, 1): the place of each sentence's last token."""
    return (mask.sum(dim=1, keepdim=True) - 1).clamp(min=0)
