"""A linear-chain CRF over tags: its loss, the best legal path, and the probability of each tag.

Only legal paths exist. Illegal transitions get a large negative score in sums over paths, and decoding excludes them.

Knows: torch. Blind to: what tags mean, and why a transition is legal.
"""

# B sentences, T tokens, K tags

from __future__ import annotations

import torch
from torch import Tensor, nn

FORBIDDEN = -1e4
"""The score of an illegal transition in sums over paths, where minus infinity would have no gradient."""


class CRF(nn.Module):
    """Scores for the transition from one tag to the next, from the start and to the end; learned, or all 0."""

    legal: Tensor
    """(K + 1, K + 1): whether the column may follow the row; the last row and column are outside the sentence."""

    def __init__(self, legal: Tensor, *, learned: bool = True) -> None:
        super().__init__()
        self.register_buffer("legal", legal, persistent=False)
        self.transitions = nn.Parameter(torch.zeros(legal.shape), requires_grad=learned)

    def loss(self, emissions: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """Nats per sentence (B,): minus the log-probability of the given tags (B, T); 0 without tokens."""
        between, start, end = self._split(FORBIDDEN)
        picked = emissions.gather(2, tags.unsqueeze(-1)).squeeze(-1)  # (B, T)
        moved = between[tags[:, :-1], tags[:, 1:]]  # (B, T - 1)
        last = tags.gather(1, (mask.sum(dim=1, keepdim=True) - 1).clamp(min=0)).squeeze(1)
        ends = (start[tags[:, 0]] + end[last]) * mask[:, 0]
        score = (picked * mask).sum(dim=1) + (moved * mask[:, 1:]).sum(dim=1) + ends  # of the given path
        total = torch.logsumexp(self._forward(emissions, mask)[-1] + end, dim=1) * mask[:, 0]  # over all paths
        return total - score

    def _split(self, forbidden: float) -> tuple[Tensor, Tensor, Tensor]:
        """Scores (K, K) between tags, (K,) from the start, (K,) to the end."""
        scores = self.transitions.masked_fill(~self.legal, forbidden)
        return scores[:-1, :-1], scores[-1, :-1], scores[:-1, -1]

    def _forward(self, emissions: Tensor, mask: Tensor) -> list[Tensor]:
        """For each token (B, K): log of the sum over all paths up to each tag; unchanged on padding."""
        between, start, _ = self._split(FORBIDDEN)
        sums = [start + emissions[:, 0]]
        for t in range(1, emissions.shape[1]):
            new = torch.logsumexp(sums[-1].unsqueeze(2) + between, dim=1) + emissions[:, t]
            sums.append(torch.where(mask[:, t : t + 1], new, sums[-1]))
        return sums

    def _backward(self, emissions: Tensor, mask: Tensor) -> list[Tensor]:
        """For each token (B, K): log of the sum over all paths from each tag to the end."""
        between, _, end = self._split(FORBIDDEN)
        sums = [end.expand(len(emissions), -1)]
        for t in range(emissions.shape[1] - 1, 0, -1):
            new = torch.logsumexp((sums[0] + emissions[:, t]).unsqueeze(1) + between, dim=2)
            sums.insert(0, torch.where(mask[:, t : t + 1], new, sums[0]))
        return sums

    @torch.no_grad()
    def probabilities(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """(B, T, K): the probability of each tag at each token, over all paths."""
        both = torch.stack(self._forward(emissions, mask), 1) + torch.stack(self._backward(emissions, mask), 1)
        return torch.softmax(both, dim=2) * mask.unsqueeze(-1)

    @torch.no_grad()
    def best(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """The best legal path of each sentence (Viterbi)."""
        between, start, end = self._split(float("-inf"))
        score = start + emissions[:, 0]  # (B, K)
        scores, sources = [score], []
        for t in range(1, emissions.shape[1]):
            best, source = (score.unsqueeze(2) + between).max(dim=1)
            score = best + emissions[:, t]
            scores.append(score)
            sources.append(source)
        lengths = mask.sum(dim=1)
        at_end = torch.stack(scores, 1)[
            torch.arange(len(mask)), (lengths - 1).clamp(min=0)
        ]  # (B, K), of the last token
        last_tags = (at_end + end).argmax(dim=1).tolist()  # (B,)
        before = torch.stack(sources, 1).tolist() if sources else [[]] * len(mask)  # (B, T - 1, K), as plain numbers
        paths: list[list[int]] = []
        for tag, back, length in zip(last_tags, before, lengths.tolist(), strict=True):
            path = [tag]
            for source in reversed(back[: max(0, length - 1)]):
                path.append(source[path[-1]])
            paths.append(path[::-1] if length else [])
        return paths
