"""Models of bilm-tf and AllenNLP: options.json with weights in HDF5 or in a TensorFlow checkpoint.

Knows: options, weight map, HDF5, checkpoints. Blind to: running networks, other systems.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from bilmo.errors import BilmoError, CannotConvert, NotAModel, WeightsError
from bilmo.formats import hdf5, tf_checkpoint
from bilmo.formats.bilmtf_options import Options, network_of
from bilmo.formats.weight_map import Array, CanonicalSource, Source, old_arrays, read_weights, weight_map
from bilmo.ids.vocab import Vocab
from bilmo.net.config import BOTH
from bilmo.store.atomic import new_folder
from bilmo.store.bundle import Bundle, Shape
from bilmo.store.validate import read_json, regular_file, same_length, with_path_in_error
from bilmo.text.files import lines

RECURRENT = {"RNN_0", "RNN_1", "RNN", "rnn"}
"""Top-level names of recurrent weights; a file with one of them is a weights file."""
BESIDE = {"embedding", "softmax"}
"""Top-level names of word vectors and of a softmax, which may be in files of their own."""


def read_hdf5(folder: Path, weights: Path | None = None) -> Bundle:
    """Read a folder with options and HDF5 weights; `weights` chooses the file if there are several."""
    with ExitStack() as stack:
        main, others, notes = _weights_files(folder, weights, stack)
        options = _options_file(folder, main.path.name)
        source = JoinedSource([main, *others], prefer="char_embed")
        notes += [
            f"{file.path.name}: not needed; the character CNN computes the same vectors" for file in source.left_out
        ]
        return _read(options, source, main.path, "options.json and HDF5 weights (bilm-tf, AllenNLP)", notes)


def read_files(options: Path, weights: Path) -> Bundle:
    """Read one options file and one HDF5 file of weights, wherever they are; other files are not read."""
    if not options.is_file():
        raise NotAModel(f"{options}: there is no such options file")
    with hdf5.WeightsFile(weights) as file:
        return _read(options, file, weights, "options.json and HDF5 weights (bilm-tf, AllenNLP)", [])


def read_checkpoint(folder: Path, prefix: Path) -> Bundle:
    """Read a folder with options and a TensorFlow checkpoint, without TensorFlow."""
    options = _options_file(folder, prefix.name)
    return _read(
        options, tf_checkpoint.Checkpoint(prefix), prefix, f"TensorFlow checkpoint {prefix.name} (bilm-tf)", []
    )


def has_weights(folder: Path) -> bool:
    """Whether a folder has HDF5 files; whether they are weights is checked when they are read."""
    return any(hdf5.is_hdf5(file) for file in _files(folder))


def weights_in(folder: Path) -> list[Path]:
    """The HDF5 files of a folder that contain weights, of one model or of several."""
    found = []
    for path in _files(folder):
        with suppress(BilmoError, OSError):
            if hdf5.is_hdf5(path):
                with hdf5.WeightsFile(path) as file:
                    if file.top & (RECURRENT | BESIDE):
                        found.append(path)
    return found


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())


def _weights_files(
    folder: Path, chosen: Path | None, stack: ExitStack
) -> tuple[hdf5.WeightsFile, list[hdf5.WeightsFile], list[str]]:
    """The file with recurrent weights, the files with word vectors or a softmax, and notes on the others."""
    main: list[hdf5.WeightsFile] = []
    others: list[hdf5.WeightsFile] = []
    damaged: list[BilmoError] = []
    for path in _files(folder):
        if not hdf5.is_hdf5(path):
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
        elif top & BESIDE:
            others.append(file)
    if chosen:
        main = [file for file in main if file.path == chosen]
    if len(main) > 1:
        names = ", ".join(file.path.name for file in main)
        raise NotAModel(f"{folder}: {names} each contain the weights of a model. Give the path of one of them.")
    if not main and damaged:
        raise damaged[0]
    if not main:
        raise NotAModel(f"{chosen or folder}: no recurrent weights (datasets RNN_0/..., RNN_1/...) in any HDF5 file")
    return main[0], others, [f"not read: {error}" for error in damaged]


def _options_file(folder: Path, weights: str) -> Path:
    """options.json, or the JSON file with the key `lstm`; published models have X_options.json for X_weights.hdf5."""
    usual = folder / "options.json"
    if usual.exists():
        return usual
    found = [file for file in _files(folder) if file.suffix == ".json" and b'"lstm"' in file.read_bytes()[:1_000_000]]
    if len(found) > 1:
        # A_B_weights.hdf5 belongs to A_B_options.json, not to A_options.json.
        prefixes = {file: file.name.removesuffix("options.json") for file in found}
        matching = [file for file in found if weights.startswith(prefixes[file])]
        found = sorted(matching, key=lambda file: len(prefixes[file]))[-1:] or found
    if len(found) != 1:
        what = "no options.json" if not found else f"several options files ({', '.join(f.name for f in found)})"
        raise NotAModel(f"{folder}: {what} next to {weights}. Put the model's own options.json next to it.")
    return found[0]


class JoinedSource:
    """The weights and the files beside them (word vectors, a softmax) as one source."""

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
                        f"{file.path} and {self._where[name].path} both contain `{name}`. Remove one of them."
                    )
                self._where[name] = file

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of every tensor in all files."""
        return {name: file.shapes[name] for name, file in self._where.items()}

    def read(self, name: str) -> Array:
        """The values of one tensor, from the file that holds it."""
        return self._where[name].read(name)


def _read(options_path: Path, raw: Source, where: Path, layout: str, notes: list[str]) -> Bundle:
    source = CanonicalSource(raw, str(where))
    if source.padded:
        notes.append("char_embed has 262 rows: the first, for padding, is not used")
    options = read_json(options_path, Options)
    config, decided = with_path_in_error(options_path, lambda: network_of(options, source.shapes, options_path))
    notes += decided
    folder = options_path.parent
    vocab = _vocab(folder, config.words.table.rows if config.words.table else None, notes)
    words = _softmax_words(source.shapes, vocab, folder, notes)
    weights, unused = read_weights(source, weight_map(config, softmax_words=words), str(where))
    if unused:
        notes.append(f"not used: {', '.join(unused)}")
    return Bundle(config=config, weights=weights, layout=layout, vocab=vocab, notes=notes)


def vocab_file(folder: Path) -> Path | None:
    """vocab.txt, or the only file with a similar name."""
    usual = [folder / name for name in ("vocab.txt", "vocab.txt.gz") if (folder / name).exists()]
    found = usual or sorted(folder.glob("vocab*.txt")) + sorted(folder.glob("vocab*.txt.gz"))
    return found[0] if len(found) == 1 or usual else None


def read_vocab(path: Path) -> Vocab:
    """Read an old vocabulary: one word per line, stripped; blank and repeated lines keep their ids."""
    words = (line.strip() for line in lines(regular_file(path)))
    return with_path_in_error(path, lambda: Vocab(word for word in words if not word.startswith("!!!MAXTERMID")))


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
    except BilmoError as error:  # a character model does not need its vocabulary, so a bad one is not an error
        notes.append(f"vocabulary not used: {error}")
        return None


def _softmax_words(shapes: Mapping[str, Shape], vocab: Vocab | None, folder: Path, notes: list[str]) -> int | None:
    """Number of words in a usable softmax; without a vocabulary its rows cannot be used."""
    if not {"softmax/W", "softmax/b"} <= shapes.keys():
        return None
    rows = shapes["softmax/W"][0] if shapes["softmax/W"] else 0
    if vocab is None:
        notes.append(f"softmax of {rows} words not used: there is no usable vocab.txt for its words")
        return None
    same_length(vocab_file(folder) or folder / "vocab.txt", len(vocab), rows)
    return rows


def write(bundle: Bundle, folder: Path) -> list[str]:
    """Write options.json and weights.hdf5 as bilm-tf dumps them; returns what the layout cannot hold."""
    from bilmo.store.hdf5_file import HDF5Writer  # imported here, because h5py takes a moment

    config = bundle.config
    _check_it_fits(bundle)
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
        with HDF5Writer(partial / "weights.hdf5") as new:
            for name, values in old_arrays(bundle.weights, weight_map(config, softmax_words=None)).items():
                with new.writing() as file:
                    file.create_dataset(name, data=values)
        if bundle.vocab:
            text = "".join(f"{word}\n" for word in bundle.vocab.words)
            (partial / "vocab.txt").write_text(text, encoding="utf-8", newline="\n")
    dropped = ["the softmax"] if bundle.has_softmax else []
    dropped += ["the settled start"] if bundle.start else []
    return dropped + (["the dictionary"] if bundle.dictionary else [])


def _check_it_fits(bundle: Bundle) -> None:
    config = bundle.config
    cell, words = config.cell, config.words
    table = words.table
    reasons = {
        f"its cells are of kind {cell.kind}, not lstm": cell.kind != "lstm",
        f"its forget bias is {cell.forget_bias}, not 1": cell.forget_bias != 1,
        f"it has one direction ({config.directions[0]})": config.directions != BOTH,
        "its characters are Unicode, not bytes": words.chars is not None and words.chars.kind != "bytes",
        "its words have no maximum length": words.chars is not None and words.chars.max_characters is None,
        "it joins characters and a word table": words.chars is not None and table is not None,
        "its highway layers follow the projection": words.highways > 0,
        "it uses pretrained word vectors": table is not None and table.given,
        "it changes words to lower case": table is not None and table.lower,
        "its word table is projected": table is not None and words.chars is None and words.project,
    }
    wrong = [reason for reason, holds in reasons.items() if holds]
    if wrong:
        raise CannotConvert(
            f"options.json and HDF5 weights cannot hold this model: {'; '.join(wrong)}. Use bilmo's own folder."
        )
