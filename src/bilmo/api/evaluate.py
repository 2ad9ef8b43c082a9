"""`bilmo.evaluate`: how well a model predicts text files.

Knows: Embedder, perplexity, text files. Blind to: the command line.
"""

from __future__ import annotations

import logging
from os import PathLike

import torch

from bilmo import progress as bars
from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.embed.options import Start
from bilmo.embed.perplexity import Perplexity, score
from bilmo.embed.texts import splitter_for
from bilmo.errors import ConfigError, TextError
from bilmo.text.files import Paths, listed_paths

log = logging.getLogger("bilmo")


def evaluate(
    model: str | PathLike[str] | Embedder,
    texts: Paths,
    *,
    start: Start | None = None,
    lang: str = "auto",
    dictionary: str | PathLike[str] | None = None,
    device: str | torch.device = "cpu",
    progress: bool = False,
) -> Perplexity:
    """Measure how well a model predicts text files, as `bilmo evaluate` does: perplexity with the full softmax.

    model: the name or the path of a model with a softmax, or a loaded model.
    texts: a text file, a folder of text files, or several of them.
    start: the state from which a sentence starts, as in `bilmo.load`; a loaded model keeps its own.
    lang: how the text is split into tokens, as in `bilmo.load`.
    dictionary: a file of words that are never split, as in `bilmo.load`; a loaded model keeps its own.
    device: where the network computes, as in `bilmo.load`; a loaded model keeps its own.
    progress: show a progress bar on a terminal or in a notebook.
    """
    paths = listed_paths(texts)
    if isinstance(model, Embedder):
        if start not in (None, model.start):
            raise ConfigError(f"start is {start!r}, but the model was loaded with start={model.start!r}; load it again")
        if dictionary is not None:
            raise ConfigError("a loaded model keeps its own dictionary; load the model again with dictionary=FILE")
        elmo = model
    else:
        with bars.working("loading the model", show=progress):
            elmo = load(model, start=start or "settled", lang=lang, dictionary=dictionary, device=device)
    shown = elmo.bundle.lang or lang if lang == "auto" else lang
    split = splitter_for(lang, elmo.bundle.lang, elmo.bundle.vocab, elmo.bundle.dictionary)
    with bars.lines(paths, show=progress) as lines:
        found = score(elmo, (sentence for line in lines if line.strip() for sentence in split(line)), lang=shown)
    if not found.sentences:
        raise TextError(f"{', '.join(map(str, paths))}: no sentences to evaluate; every line is blank")
    if found.warning:
        log.warning("%s", found.warning)
    return found
