"""Train a few steps with another system; run by train.py, for AllenNLP in its own environment.

allennlp: its own character encoder, ElmoLstm and sampled softmax, combined as in its language model.
torch: nn.LSTM with proj_size, a character CNN over every token, and the same sampled softmax written plainly.

Character ids are computed in advance, so reading text is not measured.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import worker_allennlp
from torch import Tensor, nn

Work = dict
BEGIN, END, STOP, PAD = 256, 257, 258, 260
"""Ids for the begin and end of a word and for padding, as in the old systems."""


def spelled(word: str) -> list[int]:
    """Fifty ids, each 1 or more."""
    bytes_ = list(word.encode())[:48]
    return [id + 1 for id in (BEGIN, *bytes_, END, *[PAD] * (48 - len(bytes_)))]


class SampledSoftmax(nn.Module):
    """The summed loss of each target against words drawn log-uniformly."""

    def __init__(self, words: int, width: int, samples: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(words, width) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(words))
        k = torch.arange(words, dtype=torch.float64)
        self.p = (torch.log((k + 2) / (k + 1)) / np.log(words + 1)).float()
        self.samples = samples

    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        drawn = torch.multinomial(self.p, self.samples)
        expected = torch.log(self.samples * self.p)
        true = (x * self.weight[targets]).sum(1) + self.bias[targets] - expected[targets]
        others = x @ self.weight[drawn].t() + self.bias[drawn] - expected[drawn]
        others = others.masked_fill(drawn == targets[:, None], -1e4)
        return -F.log_softmax(torch.cat([true[:, None], others], 1), 1)[:, 0].sum()


class PlainTorch(nn.Module):
    """A straightforward implementation."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        width, cells = work["width"], work["cells"]
        self.table = nn.Embedding(262, work["char_width"])
        self.filters = nn.ModuleList(nn.Conv1d(work["char_width"], n, w) for w, n in work["filters"])
        outputs = sum(n for _, n in work["filters"])
        self.highway = nn.Linear(outputs, 2 * outputs)
        self.project = nn.Linear(outputs, width)
        self.stacks = nn.ModuleList(
            nn.LSTM(width, cells, num_layers=2, proj_size=width, batch_first=True) for _ in range(2)
        )
        self.softmax = SampledSoftmax(work["words"], width, work["samples"])

    def forward(self, chars: Tensor, targets: Tensor) -> Tensor:
        rows, steps, most = chars.shape
        x = self.table(chars.view(-1, most)).transpose(1, 2)
        x = torch.cat([F.relu(conv(x).amax(2)) for conv in self.filters], 1)
        new, gate = self.highway(x).chunk(2, 1)
        gate = torch.sigmoid(gate)
        x = self.project(gate * x + (1 - gate) * F.relu(new)).view(rows, steps, -1)
        forward = self.stacks[0](x)[0]
        backward = self.stacks[1](x.flip(1))[0].flip(1)
        return both(self.softmax, forward, backward, targets)


def allennlp(work: Work, model: str) -> nn.Module:
    """The parts of AllenNLP, as its language model uses them."""
    worker_allennlp.install()
    from allennlp.modules.elmo import _ElmoCharacterEncoder
    from allennlp.modules.elmo_lstm import ElmoLstm
    from allennlp.modules.sampled_softmax_loss import SampledSoftmaxLoss

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = _ElmoCharacterEncoder(f"{model}/options.json", f"{model}/weights.hdf5", requires_grad=True)
            width = work["width"]
            self.lstm = ElmoLstm(width, width, work["cells"], 2, True, 0.0, 3.0, 3.0)
            self.softmax = SampledSoftmaxLoss(work["words"], width, work["samples"])

        def forward(self, chars: Tensor, targets: Tensor) -> Tensor:
            found = self.words(chars[:, 1:-1])  # it adds the boundaries itself
            top = self.lstm(found["token_embedding"], found["mask"])[-1]
            return both(self.softmax, *top.chunk(2, dim=-1), targets)

    return Model()


def both(softmax: nn.Module, forward: Tensor, backward: Tensor, targets: Tensor) -> Tensor:
    """Mean loss per word; each direction predicts the next word in its reading order."""
    losses = [
        softmax(forward[:, :-1].reshape(-1, forward.shape[-1]), targets[:, 1:].reshape(-1)),
        softmax(backward[:, 1:].reshape(-1, forward.shape[-1]), targets[:, :-1].reshape(-1)),
    ]
    return (losses[0] + losses[1]) / (2 * targets[:, 1:].numel())


def timed(step: Callable[[int], None], steps: int, warm_up: int) -> dict[str, float]:
    """Median seconds of a step, peak memory, and the memory that a step needs temporarily.

    After the first steps, weights, gradients and the state of the optimizer are allocated. What a step needs beyond
    them is for its text.
    """
    found = []
    for number in range(warm_up):
        step(number)
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = memory("VmRSS")
    for number in range(warm_up, warm_up + steps):
        began = time.perf_counter()
        step(number)
        found.append(time.perf_counter() - began)
    return {"seconds": float(np.median(found)), "peak": memory("VmHWM"), "step": memory("VmHWM") - before}


def memory(what: str) -> float:
    """Bytes of this process, now (VmRSS) or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith(what))


def main(peer: str, model: str, task: str, out: str) -> None:
    work = json.loads(Path(task).read_text(encoding="utf-8"))
    torch.set_num_threads(work["threads"])
    torch.manual_seed(1)
    net = allennlp(work, model) if peer == "allennlp" else PlainTorch(work)
    net.train()
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.01, initial_accumulator_value=1.0)
    chars = [torch.tensor([[spelled(word) for word in row] for row in batch]) for batch in work["batches"]]
    targets = [torch.tensor(batch) for batch in work["targets"]]

    def step(number: int) -> None:
        optimizer.zero_grad()
        net(chars[number], targets[number]).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        optimizer.step()

    Path(out).write_text(json.dumps(timed(step, work["steps"], work["warm_up"])), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
