"""AllenNLP's Elmo, ElmoTokenEmbedder, ScalarMix and batch_to_ids.

Knows: the language model of this folder. Blind to: files, raw text.
"""

# B sentences, T tokens, C characters, D one direction

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from bilmo.errors import ConfigError
from bilmo.ids.batch import Sentence, listed
from bilmo.plug.allennlp.files import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, Name
from bilmo.plug.allennlp.network import Start, _ElmoBiLm, padded_ids

CHARACTERS = 50
"""Characters of a word in AllenNLP."""
EPSILON = {torch.float16: 1e-4, torch.bfloat16: 1e-4}
"""AllenNLP's tiny values by precision; for the others 1e-13."""


def batch_to_ids(batch: Sequence[Sentence]) -> Tensor:
    """Sentences as character ids (B, T, 50); 0 where there is no token."""
    sentences = listed(batch)
    ids = torch.zeros(len(sentences), max(map(len, sentences), default=0), CHARACTERS, dtype=torch.long)
    known: dict[str, Tensor] = {}
    for row, sentence in enumerate(sentences):
        for place, word in enumerate(sentence):
            if word not in known:
                known[word] = torch.from_numpy(padded_ids(word, CHARACTERS))
            ids[row, place] = known[word]
    return ids


class ScalarMix(nn.Module):
    """gamma * sum of softmax(weights)_j * tensor_j, optionally of normalized tensors."""

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        self.mixture_size = mixture_size
        self.do_layer_norm = do_layer_norm
        weights = [0.0] * mixture_size if initial_scalar_parameters is None else list(initial_scalar_parameters)
        if len(weights) != mixture_size:
            raise ConfigError(f"scalar_mix_parameters are {weights}; there must be {mixture_size}, one for each layer")
        self.scalar_parameters = nn.ParameterList(
            nn.Parameter(torch.tensor([float(weight)]), requires_grad=trainable) for weight in weights
        )
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)

    def forward(self, tensors: Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Tensors (B, T, W) and, with do_layer_norm, their mask (B, T) to one (B, T, W)."""
        if len(tensors) != self.mixture_size:
            raise ConfigError(f"this mix needs {self.mixture_size} layers; it got {len(tensors)}")
        shares = torch.softmax(torch.cat(list(self.scalar_parameters)), dim=0)
        if self.do_layer_norm:
            if mask is None:
                raise ConfigError("do_layer_norm needs the mask of the tokens")
            tensors = [_normed(tensor, mask) for tensor in tensors]
        mixed = shares[0] * tensors[0]
        for share, tensor in zip(shares[1:], tensors[1:], strict=True):
            mixed = mixed + share * tensor
        return self.gamma * mixed


def _normed(tensor: Tensor, mask: Tensor) -> Tensor:
    """Mean 0 and variance 1 over all values of real tokens; padding is not set to zero, as in AllenNLP."""
    real = mask.unsqueeze(-1)
    number = mask.sum() * tensor.shape[-1]
    mean = (tensor * real).sum() / number
    variance = (((tensor - mean) * real) ** 2).sum() / number
    return (tensor - mean) / torch.sqrt(variance + EPSILON.get(tensor.dtype, 1e-13))


class Elmo(nn.Module):
    """Character ids in; one or more mixes of the layers, and the mask, out.

    The arguments are those of AllenNLP 2.10.1. Instead of two files, `options_file` may be the name or path of a model
    of bilmo, with `weight_file=None`.

    start: "carry", the default, is AllenNLP's behaviour: row k of a call continues where row k of the previous call
        ended. With "settled", a sentence always gets the same vectors.
    """

    def __init__(
        self,
        options_file: Name | None,
        weight_file: Name | None,
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: list[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Sequence[float] | None = None,
        module: nn.Module | None = None,
        *,
        start: Start = "carry",
    ) -> None:
        super().__init__()
        if module is not None and (options_file is not None or weight_file is not None):
            raise ConfigError("with module, options_file and weight_file must be None")
        network: Any = module or _ElmoBiLm(
            options_file, weight_file, requires_grad=requires_grad, vocab_to_cache=vocab_to_cache, start=start
        )
        self._elmo_lstm = network
        self._has_cached_vocab = vocab_to_cache is not None
        self._keep_sentence_boundaries = keep_sentence_boundaries
        self._dropout = nn.Dropout(p=dropout)
        self._scalar_mixes = []
        for k in range(num_output_representations):
            mix = ScalarMix(
                self._elmo_lstm.num_layers,
                do_layer_norm,
                scalar_mix_parameters,
                trainable=scalar_mix_parameters is None,
            )
            self.add_module(f"scalar_mix_{k}", mix)
            self._scalar_mixes.append(mix)

    @classmethod
    def from_params(cls, params: Mapping[str, Any], **extras: object) -> Self:
        """The module with these arguments: `Params` of AllenNLP, or a dictionary. A `vocab` is not used."""
        return cls(**{name: value for name, value in params.items() if name != "type"})

    def get_output_dim(self) -> int:
        """Width of a vector, 2D."""
        return int(cast("Any", self._elmo_lstm).get_output_dim())

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """`elmo_representations`, a list of (..., T, 2D), one for each mix, and `mask` (..., T).

        inputs: character ids (..., T, C). word_inputs: numbers (..., T) of the words in `vocab_to_cache`.
        """
        leading = inputs.shape[:-2] if word_inputs is None else word_inputs.shape[:-1]
        if word_inputs is not None:
            word_inputs = word_inputs.reshape(-1, word_inputs.shape[-1]) if self._has_cached_vocab else None
        found = self._elmo_lstm(inputs.reshape(-1, *inputs.shape[-2:]), word_inputs)
        layers, mask = found["activations"], found["mask"]
        mixed = [getattr(self, f"scalar_mix_{k}")(layers, mask) for k in range(len(self._scalar_mixes))]
        if not self._keep_sentence_boundaries:
            mask = mask[:, 2:]  # a row of n tokens had n + 2
            mixed = [vectors[:, 1:-1] * mask.unsqueeze(-1) for vectors in mixed]
        shaped = [self._dropout(vectors).unflatten(0, leading) for vectors in mixed]
        return {"elmo_representations": shaped, "mask": mask.unflatten(0, leading)}


class ElmoTokenEmbedder(nn.Module):
    """One mix of the layers as the vectors of tokens, optionally projected; the arguments are those of AllenNLP."""

    def __init__(
        self,
        options_file: Name = DEFAULT_OPTIONS_FILE,
        weight_file: Name | None = DEFAULT_WEIGHT_FILE,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        requires_grad: bool = False,
        projection_dim: int | None = None,
        vocab_to_cache: list[str] | None = None,
        scalar_mix_parameters: Sequence[float] | None = None,
        *,
        start: Start = "carry",
    ) -> None:
        super().__init__()
        self._elmo = Elmo(
            options_file,
            weight_file,
            1,
            do_layer_norm=do_layer_norm,
            dropout=dropout,
            requires_grad=requires_grad,
            vocab_to_cache=vocab_to_cache,
            scalar_mix_parameters=scalar_mix_parameters,
            start=start,
        )
        width = self._elmo.get_output_dim()
        self._projection = nn.Linear(width, projection_dim) if projection_dim else None
        self.output_dim = projection_dim or width

    @classmethod
    def from_params(cls, params: Mapping[str, Any], **extras: object) -> Self:
        """The module with these arguments: `Params` of AllenNLP, or a dictionary. A `vocab` is not used."""
        return cls(**{name: value for name, value in params.items() if name != "type"})

    def get_output_dim(self) -> int:
        """Width of a vector."""
        return self.output_dim

    def forward(self, elmo_tokens: Tensor, word_inputs: Tensor | None = None) -> Tensor:
        """Character ids (..., T, C) to vectors (..., T, width)."""
        vectors: Tensor = self._elmo(elmo_tokens, word_inputs)["elmo_representations"][0]
        return vectors if self._projection is None else self._projection(vectors)
