"""scikit-learn: texts to one vector each, as a transformer for pipelines.

>>> from bilmo.plug.sklearn import ElmoVectorizer                                    # doctest: +SKIP
>>> pipeline = make_pipeline(ElmoVectorizer("en"), LogisticRegression())             # doctest: +SKIP

Knows: Embedder, scikit-learn. Blind to: classifiers, files of vectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.embed.options import Start
from bilmo.errors import ConfigError, need
from bilmo.ids.batch import Sentence
from bilmo.net.config import Precision
from bilmo.net.mix import How
from bilmo.plug.usual_errors import usual_errors
from bilmo.store.model_folder import DType

need("sklearn", extra="sklearn", purpose="bilmo.plug.sklearn")
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin  # noqa: E402

POOLS = ("mean", "max")


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """One vector per text: its token vectors, mixed over the layers and pooled over the tokens.

    Like HashingVectorizer it learns nothing from the texts, so `transform` works without `fit`.

    model: name or path of a model, or an Embedder. A pickled vectorizer contains the name or path and a hash of the
        model, not its weights; an Embedder is pickled whole.
    mix: "mean", "top", "concat", or numbers of layers, as in `Embedder.embed`.
    pool: "mean" or "max".
    The other settings are those of `bilmo.load` and `Embedder.embed`; those of `load` have no effect on an Embedder.
    """

    def __init__(
        self,
        model: str | PathLike[str] | Embedder = "en",
        *,
        mix: How = "mean",
        pool: str = "mean",
        normalize: bool = False,
        dtype: DType = "float32",
        start: Start = "settled",
        lang: str = "auto",
        batch_tokens: int | None = None,
        precision: Precision = "float32",
        device: str = "cpu",
    ) -> None:
        self.model = model
        self.mix = mix
        self.pool = pool
        self.normalize = normalize
        self.dtype = dtype
        self.start = start
        self.lang = lang
        self.batch_tokens = batch_tokens
        self.precision = precision
        self.device = device

    def fit(self, X: Iterable[str] | Iterable[Sentence], y: object = None) -> Self:  # noqa: N803
        """Load the model; the texts themselves are not used."""
        _refuse_one_text(X)
        with usual_errors():
            self._embedder()
            self._width()  # refuses an unknown mix or pool
        return self

    def transform(self, X: Iterable[str] | Iterable[Sentence]) -> NDArray[np.floating[Any]]:  # noqa: N803
        """(texts, width). A text is a string or a list of tokens; one without tokens gets zeros."""
        _refuse_one_text(X)
        with usual_errors():
            elmo = self._embedder()
            self._width()
            vectors: NDArray[np.floating[Any]] = elmo.embed(
                X,
                mix=self.mix,
                pool=self.pool,  # type: ignore[call-overload]
                dtype=self.dtype,
                normalize=self.normalize,
                batch_tokens=self.batch_tokens,
            )
        return vectors

    def _embedder(self) -> Embedder:
        """The model, loaded once for the same settings."""
        if isinstance(self.model, Embedder):
            return self.model
        settings = (str(self.model), self.start, self.lang, self.precision, str(self.device))
        loaded: tuple[tuple[str, ...], Embedder] | None = self.__dict__.get("_loaded")
        if loaded is None or loaded[0] != settings:
            elmo = load(self.model, start=self.start, lang=self.lang, precision=self.precision, device=self.device)
            saved = self.__dict__.get("_saved")
            if saved and saved[0] == settings and saved[1] != elmo.bundle.identity():
                raise ConfigError(
                    f"{self.model}: is not the model that this vectorizer was saved with. "
                    "Restore that model, or fit the pipeline again."
                )
            loaded = (settings, elmo)
            self._loaded = loaded
        return loaded[1]

    def _width(self) -> int:
        if self.pool not in POOLS:
            raise ConfigError(f"pool is {self.pool!r}; accepted: {', '.join(POOLS)}")
        if str(self.mix) == "all":
            raise ConfigError("mix='all' keeps the layers apart, but a row has one vector; use mix='concat'")
        shape = self._embedder().embed([], mix=self.mix, pool="mean").shape
        return int(shape[1])

    @property
    def _n_features_out(self) -> int:
        """The number of columns, from which scikit-learn makes their names."""
        with usual_errors():
            return self._width()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        loaded = state.pop("_loaded", None)
        if loaded is not None:
            state["_saved"] = (loaded[0], loaded[1].bundle.identity())
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags


def _refuse_one_text(texts: object) -> None:
    if isinstance(texts, str):
        raise ValueError("texts is one string; accepted: a list of texts, or of sentences that are lists of words")
