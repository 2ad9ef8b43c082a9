"""The model that AllenNLP's two arguments mean: an options file and a weights file, or a model of bilmo.

Knows: layouts, published models. Blind to: networks.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from bilmo.errors import ConfigError, NotAModel
from bilmo.formats import bilmtf
from bilmo.formats import open as layouts
from bilmo.store.bundle import Bundle
from bilmo.store.installed import installed
from bilmo.store.published import published

Name = str | PathLike[str]
_ORIGINAL = (
    "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway"
)
DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE = f"{_ORIGINAL}_options.json", f"{_ORIGINAL}_weights.hdf5"
"""AllenNLP's defaults, which here mean the installed model `elmo-original`."""


def read(options_file: Name | None, weight_file: Name | None) -> Bundle:
    """The model of these files.

    A published address means the installed model that `bilmo get` made from it. Without a weights file, the first
    argument is the name or path of any model.
    """
    if options_file is None:
        raise ConfigError("options_file is None; give an options file and a weights file, or the name of a model")
    name = _published(str(options_file), str(weight_file))
    if name is not None:
        if name not in installed():
            raise NotAModel(f"{options_file}: is the published model {name}; install it first: bilmo get {name}")
        bundle = layouts.read(Path(name))
    elif weight_file is None:
        bundle = layouts.read(Path(options_file))
    else:
        bundle = bilmtf.read_files(Path(options_file), Path(weight_file))
    chars = bundle.config.words.chars
    if chars is None or chars.kind != "bytes":
        raise ConfigError(
            f"{options_file}: this model does not read words as bytes, so character ids of AllenNLP do not fit it. "
            "Use bilmo.load and Embedder.module instead."
        )
    return bundle


def _published(options: str, weights: str) -> str | None:
    """The name of the published model with these addresses."""
    if "://" not in options:
        return None
    for name, model in published().items():
        if {options, weights} <= set(model.urls().values()):
            return name
    raise NotAModel(f"{options}: bilmo downloads nothing here. Give local files, or the name of an installed model.")
