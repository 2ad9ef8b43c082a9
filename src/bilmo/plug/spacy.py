"""spaCy 3: the component `bilmo`, which gives vectors to tokens, and the architecture `bilmo.Tok2Vec.v1`.

>>> import spacy                                                                     # doctest: +SKIP
>>> nlp = spacy.blank("en")                                                          # doctest: +SKIP
>>> nlp.add_pipe("bilmo", config={"model": "en"})                                    # doctest: +SKIP

The entry points of the package register both, so nothing needs to be imported.

Knows: Embedder, spaCy, thinc. Blind to: other components.
"""

# T tokens, D one direction, L layers

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.errors import ConfigError, need
from bilmo.net.mix import How
from bilmo.plug.usual_errors import usual_errors

need("spacy", extra="spacy", purpose="bilmo.plug.spacy")
import srsly  # noqa: E402
from spacy import registry  # noqa: E402
from spacy.language import Language  # noqa: E402
from spacy.tokens import Doc  # noqa: E402
from spacy.util import minibatch  # noqa: E402
from thinc.api import Linear, Model, chain, deserialize_attr, serialize_attr, with_array  # noqa: E402

Vectors = NDArray[np.float32]


@Language.factory(
    "bilmo",
    assigns=["doc.tensor"],
    default_config={
        "model": "en",
        "mix": "mean",
        "start": "settled",
        "precision": "float32",
        "device": "cpu",
        "batch_size": 128,
    },
)
def make_component(
    nlp: Language,
    name: str,
    model: str,
    mix: str | int | list[int],
    start: str,
    precision: str,
    device: str,
    batch_size: int,
) -> BilmoComponent:
    """The component with these settings, which are those of `bilmo.load` and `Embedder.embed`."""
    return BilmoComponent(name, model, mix=mix, batch_size=batch_size, start=start, precision=precision, device=device)


class BilmoComponent:
    """Sets `doc.tensor`, and the vectors and similarities of tokens, spans and documents.

    spaCy's tokens are used as they are. Each sentence is embedded separately if an earlier component has set sentences;
    otherwise the document is one sentence.
    """

    def __init__(self, name: str, model: str, *, mix: Any, batch_size: int, **settings: Any) -> None:
        self.name = name
        self.mix: How = mix
        self.batch_size = batch_size
        self._model = model
        with usual_errors():
            self._elmo: Embedder = load(model, **settings)
            self._elmo.embed([["a"]], mix=mix)  # an unknown mix is reported now
        self._identity = self._elmo.bundle.identity()

    def __call__(self, doc: Doc) -> Doc:
        """Give vectors to one document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int | None = None) -> Iterator[Doc]:
        """Give vectors to a stream of documents, some at a time."""
        for docs in minibatch(stream, size=batch_size or self.batch_size):
            rows = [_sentences(doc) for doc in docs]
            vectors = self._elmo.embed([sentence for row in rows for sentence in row], mix=self.mix)
            remaining = iter(vectors)
            for doc, row in zip(docs, rows, strict=True):
                parts = [next(remaining) for _ in row]
                width = self._elmo.embed([], mix=self.mix, pool="mean").shape[1]
                doc.tensor = np.concatenate(parts) if parts else np.zeros((0, width), dtype=np.float32)
                _set_hooks(doc)
                yield doc

    def to_disk(self, path: Any, *, exclude: Sequence[str] = ()) -> None:
        """Save the name and hash of the model; the weights stay where they are."""
        Path(path).mkdir(parents=True, exist_ok=True)
        srsly.write_json(Path(path) / "bilmo.json", {"model": self._model, "identity": self._identity})

    def from_disk(self, path: Any, *, exclude: Sequence[str] = ()) -> BilmoComponent:
        """Check that the model is the one that the pipeline was saved with."""
        return self._check(srsly.read_json(Path(path) / "bilmo.json"))

    def to_bytes(self, *, exclude: Sequence[str] = ()) -> bytes:
        """As `to_disk`."""
        return bytes(srsly.json_dumps({"model": self._model, "identity": self._identity}), "utf-8")

    def from_bytes(self, data: bytes, *, exclude: Sequence[str] = ()) -> BilmoComponent:
        """As `from_disk`."""
        return self._check(srsly.json_loads(data))

    def _check(self, saved: dict[str, str]) -> BilmoComponent:
        _same_model(self._model, saved["identity"], self._identity)
        return self


def _same_model(name: str, saved: str, found: str) -> None:
    if saved != found:
        raise ValueError(f"{name}: is not the model that this pipeline was saved with; restore that model")


def _sentences(doc: Doc) -> list[list[str]]:
    """The tokens of each sentence."""
    if not len(doc):
        return []
    parts = doc.sents if doc.has_annotation("SENT_START") else [doc]
    return [[token.text for token in part] for part in parts]


def _part(thing: Any) -> Vectors:
    """The vectors (T, width) of a document or a span."""
    found: Vectors = thing.tensor if isinstance(thing, Doc) else thing.doc.tensor[thing.start : thing.end]
    return found


def _mean(thing: Any) -> Vectors:
    vectors = _part(thing)
    return np.asarray(vectors.mean(axis=0) if len(vectors) else np.zeros(vectors.shape[1], dtype=np.float32))


def _token(token: Any) -> Vectors:
    return np.asarray(token.doc.tensor[token.i])


def _cosine(one: Any, other: Any) -> float:
    a, b = one.vector, other.vector
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / norms if norms else 0.0


def _norm(thing: Any) -> float:
    return float(np.linalg.norm(thing.vector))


def _set_hooks(doc: Doc) -> None:
    for hooks, vector in (
        (doc.user_hooks, _mean),
        (doc.user_span_hooks, _mean),
        (doc.user_token_hooks, _token),
    ):
        hooks.update(vector=vector, vector_norm=_norm, has_vector=lambda thing: True, similarity=_cosine)


@registry.architectures("bilmo.Tok2Vec.v1")
def tok2vec(model: str = "en", width: int | None = None, start: str = "settled") -> Any:
    """Documents to one array (T, width) each, for the `tok2vec` of a training config.

    The weights of the layers and their scale are trained; the network itself is not.
    width: project the vectors to this width; without it they have the width of the model.
    """
    with usual_errors():
        elmo = load(model, start=start)  # type: ignore[arg-type]
        if elmo.start == "carry":
            raise ConfigError("a pipeline cannot carry a state; use start='settled' or 'zero'")
    own = elmo.config.vector_width
    mixed: Any = Model(
        "bilmo",
        _forward,
        init=_initialize,
        dims={"nO": own},
        params={"weights": None, "scale": None},
        attrs={"elmo": _Loaded(elmo), "model": model},
    )
    if width is None or width == own:
        return mixed
    projected = chain(mixed, with_array(Linear(nO=width, nI=own)))
    projected.set_dim("nO", width)
    return projected


class _Loaded:
    """A loaded model as an attribute of a thinc model, which saves only the identity beside it."""

    def __init__(self, elmo: Embedder) -> None:
        self.elmo = elmo
        self.identity = elmo.bundle.identity()


@serialize_attr.register(_Loaded)
def _save_loaded(_: Any, value: _Loaded, name: str, model: Any) -> bytes:
    return value.identity.encode()


@deserialize_attr.register(_Loaded)
def _restore_loaded(_: Any, value: bytes, name: str, model: Any) -> _Loaded:
    held: _Loaded = model.attrs[name]
    _same_model(str(model.attrs["model"]), value.decode(), held.identity)
    return held


def _initialize(model: Any, X: Any = None, Y: Any = None) -> None:  # noqa: N803
    layers = model.attrs["elmo"].elmo.config.layers + 1
    model.set_param("weights", model.ops.alloc1f(layers))
    model.set_param("scale", model.ops.alloc1f(1) + 1)


def _forward(model: Any, docs: Sequence[Doc], is_train: bool) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """scale * sum of softmax(weights)_j * layer_j, and the gradients of both."""
    elmo: Embedder = model.attrs["elmo"].elmo
    rows = [_sentences(doc) for doc in docs]
    found = iter(elmo.layers([sentence for row in rows for sentence in row]))
    empty = np.zeros((elmo.config.layers + 1, 0, elmo.config.vector_width), dtype=np.float32)
    layers = [np.concatenate([empty, *(next(found) for _ in row)], axis=1) for row in rows]  # (L+1, T, 2D) each
    weights, scale = np.asarray(model.get_param("weights")), float(model.get_param("scale")[0])
    shares = np.exp(weights - weights.max())
    shares /= shares.sum()
    mixed = [np.tensordot(shares, one, axes=1) for one in layers]  # (T, 2D) each

    def backward(gradients: list[Any]) -> list[Any]:
        pairs = list(zip(gradients, layers, strict=True))
        by_share = np.array([sum(float((g * one[j]).sum()) for g, one in pairs) for j in range(len(shares))]) * scale
        by_weight = shares * (by_share - (by_share * shares).sum())
        by_scale = sum(float((g * one).sum()) for g, one in zip(gradients, mixed, strict=True))
        model.inc_grad("weights", model.ops.asarray1f(by_weight.astype(np.float32)))
        model.inc_grad("scale", model.ops.asarray1f([by_scale]))
        return []

    return [model.ops.asarray2f(scale * one) for one in mixed], backward
