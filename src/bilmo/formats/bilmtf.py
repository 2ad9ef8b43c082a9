"""Models of bilm-tf and AllenNLP: options.json with weights in HDF5 or in a TensorFlow checkpoint.

Knows: options, ties, hdf5, checkpoint. Blind to: networks at work, other systems.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from bilmo.errors import BilmoError, CannotConvert, NotAModel, WeightsError
from bilmo.formats import checkpoint, hdf5
from bilmo.formats.options import Options, network_of
from bilmo.formats.weight_map import Array, OldSource, Source, old_weights, read_weights, ties
from bilmo.ids.vocab import Vocab
from bilmo.net.config import BOTH
from bilmo.store.atomic import new_folder
from bilmo.store.bundle import Bundle, Shape
from bilmo.store.model_folder import naming, read_json, same_length
from bilmo.text.files import lines

RECURRENT = {"RNN_0", "RNN_1", "RNN", "rnn"}
"""What a file with recurrent weights has at its top; one of these is what makes it a weights file."""


def read_hdf5(folder: Path, weights: Path | None = None) -> Bundle:
    """A folder with options and HDF5 weights; `weights` says which file where a folder has several."""
    with ExitStack() as stack:
        main, others, notes = _weights_files(folder, weights, stack)
        options = _options_file(folder, main.path.name)
        source = Joined([main, *others], prefer="char_embed")
        notes += [f"{file.path.name}: not needed, the characters make the same vectors" for file in source.left_out]
        return _read(options, source, main.path, "options.json and HDF5 weights (bilm-tf, AllenNLP)", notes)


def read_checkpoint(folder: Path, prefix: Path) -> Bundle:
    """A folder with options and a TensorFlow checkpoint; no TensorFlow is needed."""
    options = _options_file(folder, prefix.name)
    return _read(options, checkpoint.Checkpoint(prefix), prefix, f"TensorFlow checkpoint {prefix.name} (bilm-tf)", [])


def has_weights(folder: Path) -> bool:
    """Whether a folder has HDF5 files at all; which of them are weights is seen when they are read."""
    return any(hdf5.looks_like(file) for file in _files(folder))


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())


def _weights_files(
    folder: Path, chosen: Path | None, stack: ExitStack
) -> tuple[hdf5.WeightsFile, list[hdf5.WeightsFile], list[str]]:
    """The one file with recurrent weights, the files with word vectors or a softmax, and notes on the rest."""
    main: list[hdf5.WeightsFile] = []
    others: list[hdf5.WeightsFile] = []
    damaged: list[BilmoError] = []
    for path in _files(folder):
        if not hdf5.looks_like(path):
            continue
        try:
            file = stack.enter_context(hdf5.WeightsFile(path))
            top = file.top
        except BilmoError as error:
            if path == chosen:
                raise
            damaged.append(error)
            continue
        if top & RECURRENT:
            main.append(file)
        elif top & {"embedding", "softmax"}:
            others.append(file)
    if chosen:
        main = [file for file in main if file.path == chosen]
    if len(main) > 1:
        names = ", ".join(file.path.name for file in main)
        raise NotAModel(f"{folder}: {names} each hold the weights of a model. Name the file that is meant.")
    if not main and damaged:
        raise damaged[0]
    if not main:
        raise NotAModel(f"{chosen or folder}: no recurrent weights (datasets RNN_0/..., RNN_1/...) in any HDF5 file")
    return main[0], others, [f"not read: {error}" for error in damaged]


def _options_file(folder: Path, weights: str) -> Path:
    """options.json, or the JSON file that says `lstm`; published models have X_options.json for X_weights.hdf5."""
    usual = folder / "options.json"
    if usual.exists():
        return usual
    found = [file for file in _files(folder) if file.suffix == ".json" and b'"lstm"' in file.read_bytes()[:1_000_000]]
    if len(found) > 1:
        # Of A_options.json and A_B_options.json, the longer is meant by A_B_weights.hdf5.
        prefixes = {file: file.name.removesuffix("options.json") for file in found}
        matching = [file for file in found if weights.startswith(prefixes[file])]
        found = sorted(matching, key=lambda file: len(prefixes[file]))[-1:] or found
    if len(found) != 1:
        what = "no options.json" if not found else f"several options files ({', '.join(f.name for f in found)})"
        raise NotAModel(f"{folder}: {what} beside {weights}. Put the model's own options.json beside it.")
    return found[0]


class Joined:
    """The weights and what lies in files beside them, as one source: word vectors, a softmax."""

    def __init__(self, files: Sequence[hdf5.WeightsFile], *, prefer: str) -> None:
        main, *others = files
        self._where = dict.fromkeys(main.shapes, main)
        self.left_out: list[hdf5.WeightsFile] = []
        for file in others:
            if "embedding" in file.shapes and prefer in main.shapes:
                self.left_out.append(file)
                continue
            for name in file.shapes:
                if name in self._where:
                    raise WeightsError(
                        f"{file.path} and {self._where[name].path} both hold `{name}`. Keep one of them in the folder."
                    )
                self._where[name] = file

    @property
    def shapes(self) -> dict[str, Shape]:
        """All names of all files."""
        return {name: file.shapes[name] for name, file in self._where.items()}

    def read(self, name: str) -> Array:
        """The values, from whichever file has them."""
        return self._where[name].read(name)


def _read(options_path: Path, raw: Source, where: Path, layout: str, notes: list[str]) -> Bundle:
    source = OldSource(raw, str(where))
    if source.padded:
        notes.append("char_embed has 262 rows: the first, for padding, is not used")
    options = read_json(options_path, Options)
    config, decided = naming(options_path, lambda: network_of(options, source.shapes, options_path))
    notes += decided
    folder = options_path.parent
    vocab = _vocab(folder, config.words.table.rows if config.words.table else None, notes)
    words = _softmax_words(source.shapes, vocab, folder, notes)
    weights, unused = read_weights(source, ties(config, softmax_words=words), str(where))
    if unused:
        notes.append(f"not used: {', '.join(unused)}")
    return Bundle(config=config, weights=weights, layout=layout, vocab=vocab, notes=notes)


def vocab_file(folder: Path) -> Path | None:
    """vocab.txt, or the one file that is named almost so."""
    usual = [folder / name for name in ("vocab.txt", "vocab.txt.gz") if (folder / name).exists()]
    found = usual or sorted(folder.glob("vocab*.txt")) + sorted(folder.glob("vocab*.txt.gz"))
    return found[0] if len(found) == 1 or usual else None


def read_vocab(path: Path) -> Vocab:
    """An old vocabulary: a word a line, stripped; blank and repeated lines keep their ids."""
    words = (line.strip() for line in lines(path))
    return naming(path, lambda: Vocab(word for word in words if not word.startswith("!!!MAXTERMID")))


def _vocab(folder: Path, table_rows: int | None, notes: list[str]) -> Vocab | None:
    path = vocab_file(folder)
    if table_rows is not None:
        vocab = read_vocab(path) if path else None
        same_length(path or folder / "vocab.txt", len(vocab) if vocab else None, table_rows)
        return vocab
    if path is None:
        return None
    try:
        return read_vocab(path)
    except BilmoError as error:  # characters need no vocabulary, so a bad one does no harm
        notes.append(f"vocabulary not used: {error}")
        return None


def _softmax_words(shapes: Mapping[str, Shape], vocab: Vocab | None, folder: Path, notes: list[str]) -> int | None:
    """Words of the softmax, where there is one that can be used: without their names its rows say nothing."""
    if not {"softmax/W", "softmax/b"} <= shapes.keys():
        return None
    rows = shapes["softmax/W"][0] if shapes["softmax/W"] else 0
    if vocab is None:
        notes.append(f"softmax of {rows} words not used: there is no usable vocab.txt to name them")
        return None
    same_length(vocab_file(folder) or folder / "vocab.txt", len(vocab), rows)
    return rows


def write(bundle: Bundle, folder: Path) -> list[str]:
    """Save as options.json and weights.hdf5, the way bilm-tf dumps them; what could not be held is named."""
    import h5py  # here, for it takes a moment

    config = bundle.config
    _refuse_what_it_cannot_hold(bundle)
    cell, chars = config.cell, config.words.chars
    lstm = {
        "use_skip_connections": config.skip,
        "projection_dim": config.width,
        "cell_clip": cell.cell_clip,
        "proj_clip": cell.projection_clip,
        "dim": cell.cells,
        "n_layers": config.layers,
    }
    options: dict[str, object] = {"lstm": lstm}
    if chars:
        options["char_cnn"] = {
            "activation": chars.activation,
            "filters": chars.filters,
            "n_highway": chars.highways,
            "embedding": {"dim": chars.width},
            "n_characters": 262,
            "max_characters_per_token": chars.max_characters,
        }
    with new_folder(folder) as partial:
        (partial / "options.json").write_text(json.dumps(options, indent=1), encoding="utf-8")
        with h5py.File(partial / "weights.hdf5", "w") as file:
            for name, values in old_weights(bundle.weights, ties(config, softmax_words=None)).items():
                file.create_dataset(name, data=values)
        if bundle.vocab:
            text = "".join(f"{word}\n" for word in bundle.vocab.words)
            (partial / "vocab.txt").write_text(text, encoding="utf-8", newline="\n")
    dropped = ["the softmax"] if bundle.has_softmax else []
    return dropped + (["the settled start"] if bundle.start else [])


def _refuse_what_it_cannot_hold(bundle: Bundle) -> None:
    config = bundle.config
    cell, words = config.cell, config.words
    table = words.table
    reasons = {
        f"its cells are of kind {cell.kind}, not lstm": cell.kind != "lstm",
        f"its forget bias is {cell.forget_bias}, not 1": cell.forget_bias != 1,
        f"it has one direction ({config.directions[0]})": config.directions != BOTH,
        "its characters are Unicode, not bytes": words.chars is not None and words.chars.kind != "bytes",
        "its words have no greatest length": words.chars is not None and words.chars.max_characters is None,
        "it joins characters and a word table": words.chars is not None and table is not None,
        "its highways come after the projection": words.highways > 0,
        "its word vectors were given": table is not None and table.given,
        "its words are looked up in lower case": table is not None and table.lower,
        "its word table is projected": table is not None and words.chars is None and words.project,
    }
    wrong = [reason for reason, holds in reasons.items() if holds]
    if wrong:
        raise CannotConvert(
            f"options.json and HDF5 weights cannot hold this model: {'; '.join(wrong)}. Keep it in bilmo's own folder."
        )
