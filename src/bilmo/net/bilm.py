"""The network: a word encoder and a recurrent stack for each direction; trainable, or prepared for inference.

Knows: ids.batch.Batch, words, cells, the driver. Blind to: files, softmax, mixes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, cast

import torch
from torch import Tensor, nn

from bilmo.errors import ConfigError
from bilmo.ids.batch import Batch
from bilmo.net.cells import Cell, PreparedLSTM
from bilmo.net.config import BiLMConfig, Direction, Precision
from bilmo.net.kernels.int8 import need_int8
from bilmo.net.layers import PackedLayers
from bilmo.net.run import run
from bilmo.net.state import State
from bilmo.net.words import CharCNN, PreparedWords, WordEncoder, WordTable


class BiLM(nn.Module):
    """Deep forward and backward recurrent stacks over one word encoder.

    >>> layers, state = bilm(batch, state)          # doctest: +SKIP
    >>> vectors = mix(layers.padded())              # doctest: +SKIP
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.dropout = 0.0
        """While training: share of each layer's input that is set to 0; the skip connection sees the rest."""
        self.words = WordEncoder(config)
        for direction in config.directions:  # forward_stack and backward_stack
            self.add_module(
                f"{direction}_stack", nn.ModuleList(Cell(config.cell, config.width) for _ in range(config.layers))
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Random values to train from, drawn as the old systems draw them."""
        if next(self.parameters()).is_meta:  # there are no values to set, and trying to takes a second
            return
        for module in self.modules():
            if isinstance(module, CharCNN):
                nn.init.uniform_(module.table, -1.0, 1.0)
                for conv in module.convolutions():
                    if module.config.activation == "relu":
                        nn.init.uniform_(conv.weight, -0.05, 0.05)
                    else:
                        nn.init.normal_(conv.weight, std=(conv.weight[0].numel()) ** -0.5)
                    nn.init.zeros_(cast("Tensor", conv.bias))
            elif isinstance(module, WordTable):
                nn.init.normal_(module.weight, std=module.config.width**-0.5)
                if module.config.given:
                    nn.init.normal_(module.marks, std=module.config.width**-0.5)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
                nn.init.zeros_(module.bias)
            elif isinstance(module, Cell):
                module.reset_parameters()
        for name, parameter in self.named_parameters():
            if name.endswith("carry.bias"):  # at first a highway lets its input through
                nn.init.constant_(parameter, 2.0)

    @property
    def stacks(self) -> dict[Direction, list[Cell]]:
        """The recurrent layers of each direction, the one next to the words first."""
        return {d: list(cast("Iterable[Cell]", self.get_submodule(f"{d}_stack"))) for d in self.config.directions}

    def zero_state(self, rows: int) -> State:
        """The state before any text."""
        return State({d: [cell.zero_state(rows) for cell in stack] for d, stack in self.stacks.items()})

    def forward(
        self, batch: Batch, state: State, *, only_top: bool = False, separate_graphs: bool = False
    ) -> tuple[PackedLayers, State]:
        """A batch and the state before it to its layers, boundaries included, and the state after it.

        `only_top` and `separate_graphs` are those of `run`.
        """
        return run(
            self.stacks,
            self.words(batch.words),
            batch,
            state,
            skip=self.config.skip,
            dropout=self.dropout if self.training else 0.0,
            only_top=only_top,
            separate_graphs=separate_graphs,
        )

    def prepared(self, precision: Precision = "float32") -> PreparedBiLM:
        """The network ready for fast inference on the CPU; it keeps the weights of now, whatever becomes of these."""
        return PreparedBiLM(self, precision)


class PreparedBiLM:
    """A network for inference on the CPU: weights are copied and packed once, in float32 or int8.

    `words` and `stacks` take the place of a BiLM's in the driver. Only a table of words is not copied but shared.
    """

    @torch.no_grad()
    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        kinds = {(parameter.device.type, parameter.dtype) for parameter in bilm.parameters()}
        if kinds != {("cpu", torch.float32)}:
            found = ", ".join(sorted(f"{dtype} on {device}" for device, dtype in kinds))
            raise ConfigError(
                f"only weights in float32 on the CPU can be prepared; found {found}. Use the network itself, or move "
                "it first: network.to('cpu', torch.float32)"
            )
        if precision == "int8":
            if bilm.config.cell.kind != "lstm":
                raise ConfigError(
                    f"precision int8 needs LSTM cells; the cells of this model are {bilm.config.cell.kind}"
                )
            need_int8()
        self.config = bilm.config
        self.words = PreparedWords(bilm.words, precision)
        self.stacks: dict[Direction, list[Cell | PreparedLSTM]] = {
            direction: [cell.prepared(precision) for cell in stack] for direction, stack in bilm.stacks.items()
        }

    def __reduce__(self) -> NoReturn:
        raise TypeError("prepared weights are packed for this machine: copy or save the network, and prepare the copy")


SETTLING = 32
"""Empty sentences after which a state practically no longer changes."""


@torch.no_grad()
def settle(bilm: BiLM, empty: Batch) -> State:
    """The state of one row after many empty sentences (`<S> </S>`) from zero: a start for every sentence."""
    state = bilm.zero_state(1)
    words = bilm.words(empty.words)
    for _ in range(SETTLING):
        _, state = run(bilm.stacks, words, empty, state, skip=bilm.config.skip, only_top=True)
    return state
