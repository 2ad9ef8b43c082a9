"""The network: a word encoder and a recurrent stack for each direction; trainable, or prepared for inference.

Knows: ids.batch.Batch, words, cells, the driver. Blind to: files, softmax, mixes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, cast

import torch
from torch import Tensor, nn

from bilmo.errors import ConfigError
from bilmo.ids.batch import Batch, Places
from bilmo.net.cells import Cell, PreparedLSTM
from bilmo.net.config import BiLMConfig, Direction, Precision
from bilmo.net.kernels.int8 import need_int8
from bilmo.net.layers import PackedLayers
from bilmo.net.run import Part, run
from bilmo.net.state import State
from bilmo.net.words import PreparedWords, WordEncoder


class BiLM(nn.Module):
    """Deep forward and backward recurrent stacks over one word encoder.

    >>> layers, state = bilm(batch, state)          # doctest: +SKIP
    >>> vectors = mix(layers.padded())              # doctest: +SKIP
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.words = WordEncoder(config)
        for direction in config.directions:  # forward_stack and backward_stack
            self.add_module(
                f"{direction}_stack", nn.ModuleList(Cell(config.cell, config.width) for _ in range(config.layers))
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weights with the distributions that bilm-tf uses."""
        if next(self.parameters()).is_meta:  # meta tensors have no values, and initializing them takes a second
            return
        self.words.reset_parameters()
        for stack in self.stacks.values():
            for cell in stack:
                cell.reset_parameters()

    @property
    def stacks(self) -> dict[Direction, list[Cell]]:
        """The recurrent layers of each direction, bottom layer first."""
        return {d: list(cast("Iterable[Cell]", self.get_submodule(f"{d}_stack"))) for d in self.config.directions}

    def zero_state(self, rows: int) -> State:
        """The state before any text."""
        return State({d: [cell.zero_state(rows) for cell in stack] for d, stack in self.stacks.items()})

    def forward(
        self,
        batch: Batch,
        state: State,
        *,
        dropout: float = 0.0,
        only_top: bool = False,
        separate_graphs: bool = False,
        part: Part | None = None,
    ) -> tuple[PackedLayers, State]:
        """A batch and the state before it to its layers, boundaries included, and the state after it.

        The settings are those of `run`; `dropout` is used in training mode only.
        """
        return run(
            self.stacks,
            self.words(batch.words),
            batch,
            state,
            skip=self.config.skip,
            dropout=dropout if self.training else 0.0,
            only_top=only_top,
            separate_graphs=separate_graphs,
            part=part,
        )

    def layers(self, words: Tensor, places: Places, state: State, out: Tensor) -> State:
        """As `PreparedBiLM.layers`, on the device of this network."""
        return run(self.stacks, words, places, state, skip=self.config.skip, out=out)[1]

    def prepared(self, precision: Precision = "float32") -> PreparedBiLM:
        """A copy for fast inference on the CPU; later changes to this network do not affect it."""
        return PreparedBiLM(self, precision)


class PreparedBiLM:
    """A network for inference on the CPU: weights are copied and packed once, in float32 or int8.

    All weights are copied except the word table, which is shared.
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

    def layers(self, words: Tensor, places: Places, state: State, out: Tensor) -> State:
        """Word vectors (U, D) and the state before a batch to the state after it; layers are written to `out`.

        `out` is that of `run`. Needs gradients to be off.
        """
        return run(self.stacks, words, places, state, skip=self.config.skip, out=out)[1]

    def __reduce__(self) -> NoReturn:
        raise TypeError("prepared weights are packed for this machine: copy or save the network, and prepare the copy")


SETTLING = 32
"""Empty sentences after which a state practically no longer changes."""


@torch.no_grad()
def settle(bilm: BiLM, empty: Batch) -> State:
    """The state of one row after many empty sentences (`<S> </S>`) from zero: a start for every sentence."""
    state = bilm.zero_state(1)
    for _ in range(SETTLING):
        _, state = bilm(empty, state, only_top=True)
    return state
