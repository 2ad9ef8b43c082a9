"""flair: ELMo as TokenEmbeddings, alone or in a stack with other embeddings.

>>> embeddings = BilmoEmbeddings("en")                                               # doctest: +SKIP
>>> embeddings.embed(Sentence("He sat on the bank ."))                               # doctest: +SKIP

Knows: Embedder and its module, flair. Blind to: flair's models and training.
"""

# B sentences, T tokens

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import torch

from bilmo.embed.load import load
from bilmo.embed.module import ElmoModule
from bilmo.embed.options import Start
from bilmo.errors import ConfigError, need
from bilmo.net.mix import How
from bilmo.plug.usual_errors import usual_errors

need("flair", extra="flair", purpose="bilmo.plug.flair")
import flair  # noqa: E402
from flair.data import Sentence  # noqa: E402
from flair.embeddings import TokenEmbeddings  # noqa: E402
from flair.embeddings.base import register_embeddings  # noqa: E402


@register_embeddings
class BilmoEmbeddings(TokenEmbeddings):
    """One vector per token. flair's tokens are used as they are.

    model: name or path of a model. A saved flair model contains this name and the hash of the model, not the network,
        unless it is tuned.
    mix: "mean", "top", "concat" or numbers of layers are fixed, as in `Embedder.embed`, and flair may keep the vectors
        between epochs; "weighted" is trained with the flair model.
    tune: train the network too; a saved flair model then contains all its weights.
    """

    def __init__(
        self,
        model: str | PathLike[str] = "en",
        mix: How = "mean",
        tune: bool = False,
        start: Start = "settled",
        identity: str | None = None,
        name: str | None = None,
    ) -> None:
        self.name = name or f"bilmo-{model}-{mix}"
        self.static_embeddings = not tune and mix != "weighted"
        super().__init__()
        with usual_errors():
            elmo = load(model, start=start, device=flair.device)
            found = elmo.bundle.identity()
            if identity is not None and identity != found:
                raise ConfigError(
                    f"{model}: is not the model that these embeddings were saved with. Restore that model."
                )
            module = elmo.module(mix=mix, tune=tune)
        self._settings = {"model": str(model), "mix": mix, "tune": tune, "start": start, "identity": found}
        self._elmo, self._mix = elmo, mix
        self._held = [module]  # in a list, so that the fixed network is neither trained nor saved
        self.trained: ElmoModule | torch.nn.Module | None = None
        if not self.static_embeddings:
            self.trained = module if tune else module.mixes
        self._length = module.output_width

    @property
    def embedding_length(self) -> int:
        """Width of a vector."""
        return self._length

    def _add_embeddings_internal(self, sentences: list[Sentence]) -> list[Sentence]:
        rows = [[token.text for token in sentence] for sentence in sentences]
        if self.static_embeddings:
            vectors: Any = self._elmo.embed(rows, mix=self._mix, as_tensor=True)
        else:
            vectors, _ = self._held[0](rows)  # (B, T, width)
        for sentence, values in zip(sentences, vectors, strict=True):
            for token, vector in zip(sentence, values, strict=False):  # rows may be padded
                token.set_embedding(self.name, vector)
        return sentences

    def to_params(self) -> dict[str, Any]:
        """The settings, with the hash of the model, and the name: a stack orders its vectors by name."""
        return {**self._settings, "name": self.name}

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Self:
        """Embeddings with these settings; the model must be the same."""
        return cls(**params)

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return ", ".join(f"{name}={self._settings[name]!r}" for name in ("model", "mix", "tune"))
