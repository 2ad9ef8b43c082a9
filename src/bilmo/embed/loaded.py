"""A loaded model: layers, probabilities and vectors of words, as numpy arrays; and the model as a torch module.

Knows: Bundle, running networks. Blind to: raw text, files of vectors, tasks, the command line.
"""

# D one direction, L layers

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from bilmo.embed.module import ElmoModule
from bilmo.embed.options import Start, check_batch_tokens, check_precision, check_start
from bilmo.embed.runner import Runner, Vectors
from bilmo.embed.texts import splitter_for
from bilmo.embed.word_cache_file import WordVectors
from bilmo.errors import ConfigError, NoSoftmax
from bilmo.formats import open as layouts
from bilmo.ids.batch import Sentence, listed
from bilmo.ids.vocab import Vocab
from bilmo.net.bilm import settle
from bilmo.net.config import Precision
from bilmo.net.device import device_of
from bilmo.net.kernels.threads import caller_threads
from bilmo.net.mix import How, Mix, Norm
from bilmo.net.softmax import Softmax
from bilmo.store.bundle import Bundle
from bilmo.store.model_folder import DType


class LoadedModel:
    """The part of `Embedder` that works on sentences as lists of tokens."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        start: Start = "settled",
        lang: str = "auto",
        batch_tokens: int | None = None,
        precision: Precision = "float32",
        device: str | torch.device = "cpu",
        word_vectors: WordVectors | None = None,
    ) -> None:
        """`word_vectors`: words whose vectors were computed beforehand, and those vectors."""
        check_start(start)
        check_precision(precision)
        check_batch_tokens(batch_tokens)
        bundle = settled(bundle) if start == "settled" else bundle
        self.bundle = bundle
        self.config = bundle.config
        self.start = start
        self.precision = precision
        self.lang = lang
        self.split = splitter_for(lang, bundle.lang, bundle.vocab, bundle.dictionary)
        self.batch_tokens = batch_tokens
        """Maximum number of tokens in a batch; None chooses it automatically."""
        settled_start = bundle.start if start == "settled" else None
        self.start_state = bundle.shared_network().zero_state(1) if settled_start is None else settled_start
        """What a sentence starts from: the state of one row."""
        self._place(device)
        if word_vectors is not None:
            self._runner.preload(*word_vectors)

    def _place(self, device: str | torch.device) -> None:
        """Put everything that computes on a device."""
        place = device_of(device)
        self._runner = Runner(
            self.bundle, self.start_state, carry=self.start == "carry", precision=self.precision, device=place
        )
        softmax = self.bundle.softmax()
        self._softmax = None if softmax is None else softmax.to(place)

    def __getstate__(self) -> dict[str, Any]:
        """The constructor's arguments: packed weights are machine-specific and rebuilt on unpickling."""
        names = ("bundle", "start", "lang", "precision")
        made = {name: getattr(self, name) for name in names} | {"device": str(self.device)}
        return {"made": made | {"batch_tokens": self.batch_tokens}, "preloaded": self._runner.words.preloaded()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        LoadedModel.__init__(self, **state["made"])
        self._runner.words.preload(*state["preloaded"])

    def __repr__(self) -> str:
        """The model and the settings with which it was loaded."""
        vocab = self.bundle.vocab
        shown = {
            "layout": self.bundle.layout,
            "layers": self.config.layers,
            "vector_width": self.config.vector_width,
            "words": None if vocab is None else len(vocab),
            "start": self.start,
            "lang": self.lang,
            "precision": self.precision,
            "device": str(self.device),
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def device(self) -> torch.device:
        """Where the network computes."""
        return self._runner.device

    def to(self, device: str | torch.device) -> Self:
        """Move the model to another device, "cpu", "cuda", "cuda:1" or "mps"; returns the model itself."""
        before = self._runner
        self._place(device)
        self._runner.words.preload(*before.words.preloaded())
        self._runner.set_carried(before.carried())
        return self

    def save(self, folder: str | PathLike[str], *, dtype: DType = "float32") -> None:
        """Save the model as a new model folder, which appears when it is complete.

        dtype: "float16" takes half the space and keeps about three digits of each weight.
        """
        layouts.write(settled(self.bundle), Path(folder), "bilmo", dtype)

    def layers(self, sentences: Iterable[Sentence]) -> list[Vectors]:
        """For each sentence (L+1, tokens, 2D): layer 0 is the word alone, the others see its context.

        With start="carry", the call is one batch, and sentence k continues where sentence k of the last call ended.
        """
        return self._runner.vectors(listed(sentences), None, self.batch_tokens)

    def carried(self) -> dict[str, Vectors]:
        """The state that the next call starts from, by name; empty if there is none."""
        return self._runner.carried()

    def set_carried(self, carried: Mapping[str, Vectors]) -> None:
        """Let the next call start from a state that `carried` returned."""
        self._runner.set_carried(carried)

    def reset(self) -> None:
        """Drop the carried state: the next call starts from zero."""
        self._runner.set_carried({})

    def log_probs(self, sentences: Iterable[Sentence]) -> list[Vectors]:
        """For each sentence (2, tokens + 1): natural logarithms of probabilities, with the full softmax.

        Row 0, forward: each word given those before it, then `</S>`. Row 1, backward: `<S>`, then each word, given
        those after it. A network of one direction has only its row.
        """
        vocab, softmax = self._predicting()
        width = self.config.width
        sentences = listed(sentences)
        out: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(sentences)
        with torch.inference_mode():
            for numbers, lengths, values in self._runner.run(sentences, self.config.layers + 1, self.batch_tokens):
                words = [id for k in numbers for id in (vocab.begin, *vocab.ids(sentences[k]), vocab.end)]
                ids = torch.tensor(words, device=self.device)
                ends = np.cumsum(lengths)
                others = np.delete(np.arange(len(ids)), ends - 1)  # all but the last of each sentence
                before = torch.from_numpy(others).to(self.device)
                scores = []
                for half, direction in enumerate(self.config.directions):
                    read, predicted = (before, before + 1) if direction == "forward" else (before + 1, before)
                    output = values[-1, read, half * width : (half + 1) * width]  # of all sentences at once
                    scores.append(softmax.log_probs(output, ids[predicted]))
                parts = torch.stack(scores).split([length - 1 for length in lengths], dim=1)
                for k, part in zip(numbers, parts, strict=True):
                    out[k] = part.cpu().numpy().copy()  # a copy does not keep the others in memory
        return out

    def log_probs_at(self, sentence: Sentence, position: int) -> Vectors:
        """(2, V): natural log-probability of every word of the vocabulary at a position of a sentence.

        Row 0, forward: given the words before the position. Row 1, backward: given the words after it. The word at the
        position itself changes nothing. A network of one direction has only its row.
        """
        _, softmax = self._predicting()
        width = self.config.width
        with torch.inference_mode():
            ((_, _, values),) = self._runner.run(listed([sentence]), self.config.layers + 1, self.batch_tokens)
            before, after = position, position + 2  # the begin mark comes first
            outputs = [
                values[-1, before if direction == "forward" else after, half * width : (half + 1) * width]
                for half, direction in enumerate(self.config.directions)
            ]
            found: Vectors = softmax.all_log_probs(torch.stack(outputs)).cpu().numpy()
        return found

    def _predicting(self) -> tuple[Vocab, Softmax]:
        """The vocabulary and the softmax, without which nothing can be predicted."""
        if self._softmax is None or self.bundle.vocab is None:
            raise NoSoftmax(
                f"this model ({self.bundle.layout}) has no softmax, so it gives vectors but no probabilities. "
                "Of the old layouts, only TensorFlow checkpoints have one."
            )
        return self.bundle.vocab, self._softmax

    def word_vectors(self, words: Sequence[str]) -> Vectors:
        """(words, D): the vector of each word without context, which is each half of layer 0."""
        return self._runner.word_vectors(words)

    def module(
        self,
        mixes: int = 1,
        tune: bool = False,
        *,
        mix: How = "weighted",
        own: bool = False,
        norm: Norm | None = None,
        dropout: float = 0.0,
        word: bool = False,
    ) -> ElmoModule:
        """The model as a torch module: token lists in, (B, T, width) and mask out.

        mixes: number of mixes, each with its own weights; more than one gives a tuple of tensors.
        tune: train the network too; otherwise its parameters do not require gradients.
        The other settings are those of `bilmo.Mix`, where `mix` is its `how`.

        The module is on the device of this Embedder. It has its own copy of the network, so this Embedder never
        changes.
        """
        if self.start == "carry":
            raise ConfigError("a module cannot carry a state; load the model with start='settled' or 'zero'")
        if mixes < 1:
            raise ConfigError(f"mixes is {mixes}; it must be 1 or more")
        network = self.bundle.network()
        made = [self._mix(mix, own=own, norm=norm, dropout=dropout, word=word) for _ in range(mixes)]
        network = network if tune else network.requires_grad_(False)
        return ElmoModule(network, self._runner.indexer, self.start_state, made).to(self.device)

    def _mix(
        self, how: How, *, own: bool = False, norm: Norm | None = None, dropout: float = 0.0, word: bool = False
    ) -> Mix:
        return Mix.for_network(self.config, how, own=own, norm=norm, dropout=dropout, word=word)


def settled(bundle: Bundle) -> Bundle:
    """The same model with its settled start, which is computed if the model has none."""
    if bundle.start is not None:
        return bundle
    with caller_threads(1):
        return replace(bundle, start=settle(bundle.shared_network(), bundle.indexer().batch([[]])))
