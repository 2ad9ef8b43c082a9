"""sentence-transformers: ELMo as the first module of a SentenceTransformer.

>>> from sentence_transformers import SentenceTransformer                            # doctest: +SKIP
>>> elmo = ElmoModule("en")                                                          # doctest: +SKIP
>>> model = SentenceTransformer(modules=[elmo, Pooling(elmo.get_embedding_dimension())])  # doctest: +SKIP

Knows: Embedder's module, id arrays, sentence-transformers. Blind to: pooling, losses.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bilmo.embed.load import load
from bilmo.embed.options import Start
from bilmo.errors import need
from bilmo.net.layers import Layers
from bilmo.net.mix import How
from bilmo.plug.id_arrays import IdArrays, id_array
from bilmo.plug.usual_errors import usual_errors
from bilmo.store import model_folder

need("sentence_transformers", extra="sentence-transformers", purpose="bilmo.plug.sentence_transformers")
from sentence_transformers.base.modules import InputModule  # noqa: E402

MODEL_FOLDER = "bilmo"


class ElmoModule(InputModule):
    """Texts to `token_embeddings` (texts, tokens, width) and `attention_mask`.

    model: name or path of a model. A saved SentenceTransformer contains the whole model.
    mix: "mean", "top", "concat", numbers of layers, or "weighted", which is trained with the SentenceTransformer.
    tune: train the network too.
    """

    save_in_root = False
    config_keys = ["mix", "tune", "start"]  # noqa: RUF012 (the name and type that sentence-transformers expects)

    def __init__(
        self, model: str | PathLike[str] = "en", mix: How = "mean", tune: bool = False, start: Start = "settled"
    ) -> None:
        super().__init__()
        with usual_errors():
            elmo = load(model, start=start)
            self.elmo = elmo.module(mix=mix, tune=tune)
        self.mix, self.tune, self.start = mix, tune, start
        self._bundle, self._split = replace(elmo.bundle, start=elmo.start_state), elmo.split
        self._indexer = elmo.bundle.indexer()
        self._arrays = IdArrays.of(self._indexer)

    def preprocess(self, inputs: Any, prompt: str | None = None, **kwargs: Any) -> dict[str, Tensor]:
        """Texts, which are split, or lists of tokens, to ids and a mask."""
        texts = [(prompt or "") + text if isinstance(text, str) else text for text in inputs]
        rows = [list(chain.from_iterable(self._split(t))) if isinstance(t, str) else list(t) for t in texts]
        ids = torch.from_numpy(id_array(self._indexer, rows))
        return {"input_ids": ids, "attention_mask": (ids != 0).any(dim=2).long()}

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add the vectors of the tokens to the features."""
        ids = features["input_ids"].detach().cpu().numpy().astype(np.int64)
        inside = self.elmo.batch_layers(self._arrays.batch(ids)).inside()
        more = ids.shape[1] - inside.values.shape[2]
        values = torch.nn.functional.pad(inside.values, (0, 0, 0, more))
        mask = torch.nn.functional.pad(inside.mask, (0, more))
        features["token_embeddings"] = self.elmo.mixes[0](Layers(values, mask))
        return features

    def get_embedding_dimension(self) -> int:
        """Width of a vector."""
        return self.elmo.output_width

    get_word_embedding_dimension = get_embedding_dimension

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the settings, the weights of the mix, and the model as a folder of bilmo."""
        self.save_config(output_path)
        weights = {name: value.detach().cpu().clone() for name, value in self.elmo.network.state_dict().items()}
        model_folder.write(replace(self._bundle, weights=weights), Path(output_path) / MODEL_FOLDER)
        mix = {name: value.detach().cpu().clone() for name, value in self.elmo.mixes.state_dict().items()}
        torch.save(mix, Path(output_path) / "mix.pt")

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> ElmoModule:
        """Read what `save` wrote."""
        known = {
            name: kwargs[name] for name in ("token", "cache_folder", "revision", "local_files_only") if name in kwargs
        }
        folder = Path(str(cls.load_dir_path(model_name_or_path, subfolder=subfolder, **known)))
        config = cls.load_config(model_name_or_path, subfolder=subfolder, **known)
        made = cls(folder / MODEL_FOLDER, **config)
        made.elmo.mixes.load_state_dict(torch.load(folder / "mix.pt", weights_only=True))
        return made
