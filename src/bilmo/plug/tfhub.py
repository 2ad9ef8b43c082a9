"""The TF-Hub module google/elmo by its names, as a torch module; TensorFlow is not needed.

>>> from bilmo.plug.tfhub import Module
>>> elmo = Module("en")
>>> elmo(["the cat is on the mat", "dogs"], signature="default", as_dict=True)["elmo"].shape
torch.Size([2, 6, 256])

Knows: Embedder's module. Blind to: TensorFlow, sessions, graphs.
"""

# B sentences, T tokens, D one direction, L layers

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bilmo.embed.load import load
from bilmo.embed.options import Start
from bilmo.ids.batch import Sentence, listed
from bilmo.plug.usual_errors import usual_errors

SIGNATURES = ("default", "tokens")


class Module(nn.Module):
    """Calls take strings, or padded tokens with their lengths, and give the named outputs of google/elmo.

    spec: name or path of a model.
    trainable: train the weights of the layers and their scale, as versions 2 and 3 of the module do.
    start: "settled" or "zero"; the state from which every sentence starts.
    """

    def __init__(
        self,
        spec: str | PathLike[str],
        trainable: bool = False,
        name: str = "module",
        tags: Any = None,
        *,
        start: Start = "settled",
    ) -> None:
        super().__init__()
        if str(spec).startswith(("http://", "https://")):
            raise ValueError(
                f"{spec}: the files of TF-Hub are not read; give the name or path of a model, such as 'en', or "
                "elmo-original after `bilmo get elmo-original`, which has the same architecture"
            )
        with usual_errors():
            self._elmo = load(spec, start=start).module(mix="weighted")
        self.aggregation = self._elmo.mixes[0].requires_grad_(trainable)
        self.name = name

    def get_signature_names(self) -> list[str]:
        """The signatures that a call accepts."""
        return list(SIGNATURES)

    @property
    def variable_map(self) -> dict[str, Tensor]:
        """The four trainable scalars, by the names of google/elmo."""
        return {"aggregation/weights": self.aggregation.weights, "aggregation/scaling": self.aggregation.scale}  # type: ignore[dict-item]

    def forward(
        self,
        inputs: Iterable[str] | Mapping[str, Any] | None = None,
        signature: str = "default",
        as_dict: bool = False,
        **named: Any,
    ) -> Tensor | dict[str, Tensor]:
        """With `as_dict` all outputs by name, otherwise the output "default" (B, 2D).

        signature: "default" takes a list of strings, which are split at spaces; "tokens" takes a dictionary with
            `tokens` (B, T) and `sequence_len` (B,), and tokens beyond the length of a sentence are not read.

        Outputs: `word_emb` (B, T, D); `lstm_outputs1`, `lstm_outputs2` and `elmo` (B, T, 2D), zero where there is no
        token; `default` (B, 2D), the mean of `elmo` over the tokens of a sentence.
        """
        if signature not in SIGNATURES:
            raise ValueError(f"signature is {signature!r}; accepted: {', '.join(SIGNATURES)}")
        given = named if inputs is None else inputs
        with usual_errors():
            sentences, steps = _split(given) if signature == "default" else _cut(given)
            layers = self._elmo.layers(sentences).inside()
        more = steps - layers.values.shape[2]  # the input may be padded to more than its longest sentence
        values = nn.functional.pad(layers.values, (0, 0, 0, more))
        elmo = nn.functional.pad(self.aggregation(layers), (0, 0, 0, more))
        width = self._elmo.network.config.width
        tokens = layers.mask.sum(dim=1, keepdim=True).clamp(min=1)
        found = {"word_emb": values[0, ..., :width]}
        found |= {f"lstm_outputs{k}": layer for k, layer in enumerate(values) if k}
        found |= {"elmo": elmo, "default": elmo.sum(dim=1) / tokens}
        return found if as_dict else found["default"]


def _split(given: Any) -> tuple[list[Sentence], int]:
    """Sentences of strings that are split at spaces, and the length of the longest."""
    texts = given.get("text", given.get("default")) if isinstance(given, Mapping) else given
    if isinstance(texts, str) or texts is None:
        raise ValueError('the signature "default" takes a list of strings')
    if isinstance(texts, np.ndarray | torch.Tensor):
        texts = texts.tolist()
    texts = list(texts)
    wrong = [text for text in texts if not isinstance(text, str)]
    if wrong:
        raise ValueError(f'the signature "default" takes strings, found {wrong[0]!r:.40}; for tokens use "tokens"')
    sentences = [text.split() for text in texts]
    return listed(sentences), max(map(len, sentences), default=0)


def _cut(given: Any) -> tuple[list[Sentence], int]:
    """Sentences of padded tokens without their padding, and the length of a padded row."""
    if not isinstance(given, Mapping) or given.keys() != {"tokens", "sequence_len"}:
        found = ", ".join(given) if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(f'the signature "tokens" takes a dictionary with tokens and sequence_len; found {found}')
    rows = listed(given["tokens"])
    lengths = [int(length) for length in given["sequence_len"]]
    if len(rows) != len(lengths):
        raise ValueError(f"there are {len(rows)} rows of tokens, but sequence_len has {len(lengths)} lengths")
    for row, length in zip(rows, lengths, strict=True):
        if not 0 <= length <= len(row):
            raise ValueError(f"sequence_len has {length} for a row of {len(row)} tokens")
    return [row[:length] for row, length in zip(rows, lengths, strict=True)], max(map(len, rows), default=0)
