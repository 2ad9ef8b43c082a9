"""Contextual word vectors (ELMo): embed text, train on your own text, use every old ELMo model.

>>> import bilmo
>>> elmo = bilmo.load("en")                                     # an installed model, or the path of any ELMo model
>>> tokens, vectors = elmo.embed("He sat on the bank.")         # one vector per token: the mean of all layers
>>> len(tokens), vectors.shape
(6, (6, 512))
>>> layers = elmo.layers([["The", "cat", "sat"], ["Hello"]])    # one array per sentence
>>> layers[0].shape                                             # (layers, tokens, width)
(3, 3, 512)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bilmo.api.convert import convert as convert
    from bilmo.api.embed import embed_files as embed_files
    from bilmo.api.embed import word_cache as word_cache
    from bilmo.api.evaluate import evaluate as evaluate
    from bilmo.api.get import get as get
    from bilmo.api.models import models as models
    from bilmo.api.train import finetune as finetune
    from bilmo.api.train import train as train
    from bilmo.embed.embedder import Embedder as Embedder
    from bilmo.embed.load import load as load
    from bilmo.errors import BilmoError as BilmoError
    from bilmo.generate.summariser import Summariser as Summariser
    from bilmo.generate.translator import Translator as Translator
    from bilmo.net.bilm import BiLM as BiLM
    from bilmo.net.config import BiLMConfig as BiLMConfig
    from bilmo.net.layers import Layers as Layers
    from bilmo.net.mix import Mix as Mix
    from bilmo.sense.index import Index as Index
    from bilmo.sense.labelled.disambiguator import Disambiguator as Disambiguator
    from bilmo.sense.senses import Senses as Senses
    from bilmo.tasks.answer.reader import Reader as Reader
    from bilmo.tasks.classify.classifier import Classifier as Classifier
    from bilmo.tasks.coref.coreference import Coreference as Coreference
    from bilmo.tasks.entail.entailment import Entailment as Entailment
    from bilmo.tasks.relate.relations import Relations as Relations
    from bilmo.tasks.roles.labeler import RoleLabeler as RoleLabeler
    from bilmo.tasks.tag.tagger import Tagger as Tagger

__version__ = "0.1.0.dev0"

_HOMES = {
    "BiLM": "bilmo.net.bilm",
    "BiLMConfig": "bilmo.net.config",
    "BilmoError": "bilmo.errors",
    "Classifier": "bilmo.tasks.classify.classifier",
    "Coreference": "bilmo.tasks.coref.coreference",
    "Disambiguator": "bilmo.sense.labelled.disambiguator",
    "Embedder": "bilmo.embed.embedder",
    "Entailment": "bilmo.tasks.entail.entailment",
    "Index": "bilmo.sense.index",
    "Layers": "bilmo.net.layers",
    "Mix": "bilmo.net.mix",
    "Reader": "bilmo.tasks.answer.reader",
    "Relations": "bilmo.tasks.relate.relations",
    "RoleLabeler": "bilmo.tasks.roles.labeler",
    "Senses": "bilmo.sense.senses",
    "Summariser": "bilmo.generate.summariser",
    "Tagger": "bilmo.tasks.tag.tagger",
    "Translator": "bilmo.generate.translator",
    "convert": "bilmo.api.convert",
    "embed_files": "bilmo.api.embed",
    "evaluate": "bilmo.api.evaluate",
    "finetune": "bilmo.api.train",
    "get": "bilmo.api.get",
    "load": "bilmo.embed.load",
    "models": "bilmo.api.models",
    "train": "bilmo.api.train",
    "word_cache": "bilmo.api.embed",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `bilmo --help` never waits for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'bilmo' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
