"""Keras 3 with the torch backend: ELMo as a layer.

>>> layer = ElmoLayer("en")                                                          # doctest: +SKIP
>>> vectors = layer(layer.ids(["the cat sat", "dogs"]))                              # doctest: +SKIP

Knows: Embedder's module, id arrays, Keras. Blind to: TensorFlow, JAX.
"""

# B sentences, T tokens, C characters, D one direction

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bilmo.embed.load import load
from bilmo.embed.module import ElmoModule
from bilmo.embed.options import Start
from bilmo.errors import ConfigError, need
from bilmo.ids.batch import Sentence, each_text
from bilmo.ids.chars import Ids
from bilmo.net.layers import Layers
from bilmo.net.mix import How
from bilmo.plug.id_arrays import IdArrays, id_array
from bilmo.plug.usual_errors import usual_errors

TORCH = "bilmo's network is a torch module: set the environment variable KERAS_BACKEND=torch before Keras is imported"
try:
    import keras
except ImportError as error:
    if error.name == "keras":
        need("keras", extra="keras", purpose="bilmo.plug.keras")
    # Keras is there, but not the library of the backend that it chose.
    raise ConfigError(f"Keras cannot load its backend ({error}); {TORCH}") from error
if keras.backend.backend() != "torch":
    raise ConfigError(f"the backend of Keras is {keras.backend.backend()}, but {TORCH}")
HINT = "Keras on torch has no strings; turn texts into ids first: layer(layer.ids(texts))"


class _Held:
    """Keeps the network out of Keras's sight, so that its weights are neither trained nor saved."""

    def __init__(self, module: ElmoModule) -> None:
        self.module = module


@keras.saving.register_keras_serializable(package="bilmo")
class ElmoLayer(keras.layers.Layer):
    """Character ids (B, T, C), made by `ids`, to vectors (B, T, width), with Keras's mask.

    model: name or path of a model. A saved Keras model contains this name, the hash of the model and the trained
        weights of the mix, not the network, unless it is tuned.
    mix: "weighted" is trained with the Keras model; the others are those of `Embedder.embed`.
    tune: train the network too; a saved Keras model then contains all its weights.
    """

    def __init__(
        self,
        model: str | PathLike[str] = "en",
        mix: How = "weighted",
        tune: bool = False,
        start: Start = "settled",
        identity: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        with usual_errors():
            elmo = load(model, start=start)
            found = elmo.bundle.identity()
            if identity is not None and identity != found:
                raise ConfigError(
                    f"{model}: is not the model that this layer was saved with. Restore that model under this name."
                )
            module = elmo.module(mix=mix, tune=tune).to(torch.empty(0, device=_device()).device)
        self._settings = {"model": str(model), "mix": mix, "tune": tune, "start": start, "identity": found}
        self._indexer, self._split = elmo.bundle.indexer(), elmo.split
        self._arrays = IdArrays.of(self._indexer)
        self._held = _Held(module)
        self.width = module.output_width
        self.mix = keras.layers.TorchModuleWrapper(module.mixes[0])
        self.network = keras.layers.TorchModuleWrapper(module.network) if tune else None
        self.built = True

    def ids(self, texts: Iterable[str] | Iterable[Sentence]) -> Ids:
        """(B, T, C): the ids of texts, which are split into tokens, or of lists of tokens; 0 is padding."""
        if isinstance(texts, str):
            raise ValueError("texts is one string; give a list of texts, or of sentences that are lists of words")
        with usual_errors():
            rows = [
                list(chain.from_iterable(self._split(text))) if isinstance(text, str) else text
                for text in each_text(texts)
            ]
            return id_array(self._indexer, rows)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Refuse strings before Keras tries to make a tensor of them."""
        if _has_strings(inputs):
            raise TypeError(HINT)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """(B, T, C) to (B, T, width), zero where there is no token."""
        ids = inputs.detach().cpu().numpy()
        if ids.ndim != 3:
            raise ValueError(f"ids have the shape {ids.shape}; it must be (sentences, tokens, characters). {HINT}")
        module = self._held.module
        with usual_errors():
            layers = module.batch_layers(self._arrays.batch(ids.astype(np.int64))).inside()
        more = ids.shape[1] - layers.values.shape[2]
        values = torch.nn.functional.pad(layers.values, (0, 0, 0, more))
        mask = torch.nn.functional.pad(layers.mask, (0, more))
        mixed: Tensor = self.mix.module(Layers(values, mask))
        return mixed

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """(B, T), True on real tokens."""
        return keras.ops.any(keras.ops.not_equal(inputs, 0), axis=-1)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """(B, T, width)."""
        return (*input_shape[:2], self.width)

    def compute_output_spec(self, inputs: Any, **kwargs: Any) -> Any:
        """The same for symbolic inputs, without computing anything."""
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """The settings, with the hash of the model."""
        config = super().get_config()
        config.pop("autocast", None)
        return {**config, **self._settings}


def _device() -> str:
    return str(keras.ops.zeros(()).device)


def _has_strings(inputs: Any) -> bool:
    if isinstance(inputs, np.ndarray):
        return inputs.dtype.kind in "USO"
    if isinstance(inputs, list | tuple):
        return any(map(_has_strings, inputs))
    return isinstance(inputs, str | bytes)
