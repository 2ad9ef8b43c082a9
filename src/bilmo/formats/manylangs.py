"""Model folders of ELMoForManyLangs: config.json, char.dic, word.dic, token_embedder.pkl, encoder.pkl.

Knows: the names in those files, the weight map. Blind to: bilm-tf, running networks.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from bilmo.errors import BilmoError, ConfigError, DamagedFile, UnsafeFile, VocabError
from bilmo.formats import archive
from bilmo.formats.weight_map import Array, TensorMap, read_weights, reorder, same
from bilmo.ids.chars import MARKS as CHARACTER_MARKS
from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END, UNKNOWN, CharTable
from bilmo.ids.vocab import MARKS, Vocab
from bilmo.net.config import BiLMConfig, CellConfig, CharsConfig, TableConfig, WordsConfig
from bilmo.store.bundle import Bundle, Shape
from bilmo.store.tensors_file import finite_weights
from bilmo.store.validate import parse_json, read_json, regular_file, with_path_in_error
from bilmo.text.files import lines

NEEDS = ("encoder.pkl", "token_embedder.pkl")


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """The recurrent part."""

    name: Literal["elmo"]
    projection_dim: int
    dim: int
    n_layers: int
    cell_clip: float | None = 3.0
    proj_clip: float | None = 3.0


@dataclass(frozen=True, kw_only=True)
class TokenEmbedder:
    """The word encoder; a width of 0 switches a part off."""

    name: Literal["cnn"]
    activation: Literal["relu", "tanh"] = "relu"
    filters: tuple[tuple[int, int], ...] = ()
    n_highway: int = 0
    word_dim: int = 0
    char_dim: int = 0
    max_characters_per_token: int = 50


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The architecture file that config.json names."""

    encoder: Encoder
    token_embedder: TokenEmbedder


def read(folder: Path) -> Bundle:
    """Read a folder; both pickles are loaded as plain tensors, and no code in them is run."""
    source = Pickles(folder)
    notes: list[str] = []
    shape = _architecture(folder, source.shapes, notes)
    embedder = shape.token_embedder
    chars = _char_table(folder / "char.dic", embedder, source.shapes, notes) if embedder.char_dim else None
    vocab = _vocab(folder / "word.dic", source.shapes, notes) if embedder.word_dim else None
    config = with_path_in_error(folder, lambda: _network(shape, chars, vocab))
    weights, unused = read_weights(source, _weight_map(config), str(folder))
    if unused:
        notes.append(f"not used: {', '.join(unused)}")
    if (folder / "classifier.pkl").exists():
        notes.append("not used: classifier.pkl")
    return Bundle(config=config, weights=weights, layout="ELMoForManyLangs", vocab=vocab, chars=chars, notes=notes)


def _network(shape: Architecture, chars: CharTable | None, vocab: Vocab | None) -> BiLMConfig:
    embedder = shape.token_embedder
    return BiLMConfig(
        words=WordsConfig(
            chars=CharsConfig(
                kind="unicode",
                rows=chars.rows,
                width=embedder.char_dim,
                filters=embedder.filters,
                activation=embedder.activation,
                highways=embedder.n_highway,
                max_characters=embedder.max_characters_per_token,
            )
            if chars
            else None,
            table=TableConfig(rows=len(vocab), width=embedder.word_dim) if vocab else None,
        ),
        cell=CellConfig(
            kind="lstm",
            cells=shape.encoder.dim,
            cell_clip=shape.encoder.cell_clip or None,
            projection_clip=shape.encoder.proj_clip or None,
            forget_bias=0.0,  # already in the stored bias
        ),
        width=shape.encoder.projection_dim,
        layers=shape.encoder.n_layers,
        skip=True,
    )


class Pickles:
    """The two state dictionaries as one source."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tensors: dict[str, torch.Tensor] = {}
        for name in NEEDS:
            try:
                if zipfile.is_zipfile(folder / name):
                    with zipfile.ZipFile(folder / name) as packed:
                        archive.check_size(folder / name, packed)
                found: Any = torch.load(folder / name, map_location="cpu", weights_only=True)
            except BilmoError:
                raise
            except Exception as error:  # torch raises many kinds of errors for a damaged or forged pickle
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise DamagedFile(
                    f"{folder / name}: cannot be read as a dictionary of tensors ({reason}). "
                    "bilmo loads tensors only and never runs code from a pickle."
                ) from None
            if not isinstance(found, dict) or not all(_plain(*pair) for pair in found.items()):
                raise DamagedFile(
                    f"{folder / name}: contains a {type(found).__name__}, not a dictionary of plain tensors"
                )
            for tensor, value in found.items():
                claimed, held = value.numel() * value.element_size(), value.untyped_storage().nbytes()
                if claimed > held:
                    raise UnsafeFile(f"{folder / name}: {tensor} claims {claimed:,} bytes, but {held:,} are stored")
            self._tensors |= found

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of every tensor."""
        return {name: tuple(value.shape) for name, value in self._tensors.items()}

    def read(self, name: str) -> Array:
        """The values of one tensor; they must be finite numbers."""
        return finite_weights(self._tensors[name].detach(), f"{self._folder}: {name}").numpy()


def _plain(name: object, value: object) -> bool:
    """Whether this is a name and an ordinary dense tensor."""
    return (
        isinstance(name, str)
        and isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
    )


def _architecture(folder: Path, shapes: Mapping[str, Shape], notes: list[str]) -> Architecture:
    """Read the file that config.json names, from this folder; the path in it is that of the author's machine."""
    try:
        name = re.split(r"[/\\]", parse_json(folder / "config.json")["config_path"])[-1]
    except (KeyError, TypeError, BilmoError) as error:
        raise ConfigError(f"{folder / 'config.json'}: has no usable config_path ({error!r})") from None
    for path in (folder / name, folder / "configs" / name):
        if path.is_file():
            return read_json(path, Architecture)
    others = [path for path in sorted(folder.glob("*.json")) if path.is_file()]
    others = [path for path in others if b'"token_embedder"' in path.read_bytes()[:1_000_000]]
    if len(others) == 1:
        notes.append(f"{name} is not in the folder; {others[0].name} is used")
        return read_json(others[0], Architecture)
    notes.append(
        f"{name} is not in the folder; sizes come from the weights; relu, clips of 3 and 50 characters are assumed"
    )
    return with_path_in_error(folder, lambda: _from_shapes(shapes))


def _from_shapes(shapes: Mapping[str, Shape]) -> Architecture:
    """The architecture of the released models, with the sizes taken from the weights."""
    kernels = [shapes.get(f"convolutions.{i}.weight", ()) for i in range(len(shapes))]
    filters = [(s[2], s[0]) for s in kernels if len(s) == 3]
    layers = [name for name in shapes if re.fullmatch(r"forward_layer_\d+\.state_projection\.weight", name)]
    highways = [name for name in shapes if re.fullmatch(r"highways\._layers\.\d+\.weight", name)]
    first = shapes.get("forward_layer_0.state_projection.weight", (0, 0))
    if len(first) != 2:
        raise ConfigError(f"forward_layer_0.state_projection.weight has shape {first}; expected two axes")
    return Architecture(
        encoder=Encoder(name="elmo", projection_dim=first[0], dim=first[1], n_layers=len(layers)),
        token_embedder=TokenEmbedder(
            name="cnn",
            filters=tuple(filters),
            n_highway=len(highways),
            word_dim=_table(shapes, "word")[-1],
            char_dim=_table(shapes, "char")[-1],
        ),
    )


def _dictionary(path: Path) -> dict[str, int]:
    """Read a .dic file: token, tab, id. As in the original, a token of white space only becomes U+3000."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines(regular_file(path)), start=1):
        token, _, id = line.strip().rpartition("\t")
        try:
            found[token.strip("\t") or "\u3000"] = int(id)
        except ValueError:
            raise VocabError(f"{path}, line {number}: {line[:60]!r} is not a token, a tab and a number") from None
    return found


def _entries(path: Path, dictionary: dict[str, int], rows: int) -> list[str]:
    """Tokens in the order of their ids, one per row of the table; "" if an id has no token."""
    # Several white-space tokens share one entry, which leaves ids without a token; the last id always has one.
    lowest, highest = min(dictionary.values(), default=0), max(dictionary.values(), default=-1)
    if lowest < 0 or highest != rows - 1:
        raise VocabError(
            f"{path}: its ids go from {lowest} to {highest} ({highest + 1} in all), but the weights have {rows} rows. "
            "The files belong to different models."
        )
    entries = [""] * rows
    for token, id in dictionary.items():
        entries[id] = token
    return entries


def _table(shapes: Mapping[str, Shape], kind: str) -> Shape:
    """Rows and width of the word or character table."""
    return shapes.get(f"{kind}_emb_layer.embedding.weight") or (0, 0)


def _char_table(path: Path, embedder: TokenEmbedder, shapes: Mapping[str, Shape], notes: list[str]) -> CharTable:
    entries = _entries(path, _dictionary(path), _table(shapes, "char")[0])
    # The original puts <eow> before a word and <bow> after it, and its weights were trained that way.
    swapped = {"<eow>": "<bow>", "<bow>": "<eow>"}
    entries = [swapped.get(entry, entry) for entry in entries]
    odd = [entry for entry in entries if len(entry) > 1 and entry not in CHARACTER_MARKS]
    if odd:
        notes.append(f"{path.name}: ignored, because they are not single characters: {' '.join(odd)}")
        entries = ["" if entry in odd else entry for entry in entries]
    return with_path_in_error(path, lambda: CharTable(entries, embedder.max_characters_per_token))


def _vocab(path: Path, shapes: Mapping[str, Shape], notes: list[str]) -> Vocab:
    dictionary = _dictionary(path)
    renamed = {"<bos>": SENTENCE_BEGIN, "<eos>": SENTENCE_END, "<oov>": UNKNOWN}
    missing = [mark for mark in renamed if mark not in dictionary]
    if missing:
        raise VocabError(f"{path}: lacks {' '.join(missing)}; every sentence needs these entries")
    entries = _entries(path, dictionary, _table(shapes, "word")[0])
    if odd := [entry for entry in entries if entry in MARKS]:
        notes.append(f"{path.name}: ignored, because they are marks in bilmo: {' '.join(odd)}")
        entries = ["" if entry in odd else entry for entry in entries]
    return with_path_in_error(path, lambda: Vocab(renamed.get(entry, entry) for entry in entries))


TORCH_GATES = (0, 1, 3, 2)
"""Their gates are in, forget, new, out; ours are in, forget, out, new."""


def _halves(old: str, shape: Shape, ours: str, end: str) -> TensorMap:
    """The matrix of a highway layer: the transformation, then the gate."""

    def to_ours(a: Array) -> tuple[Array, ...]:
        half = len(a) // 2
        return a[:half], a[half:]

    return TensorMap(old, shape, (f"{ours}.transform.{end}", f"{ours}.carry.{end}"), to_ours, _never_written)


def _gates(old: str, shape: Shape, ours: str) -> TensorMap:
    return TensorMap(old, shape, (ours,), lambda a: (reorder(a, TORCH_GATES),), _never_written)


def _never_written(*_: Array) -> Array:
    raise ConfigError("bilmo does not write ELMoForManyLangs folders")


def _weight_map(config: BiLMConfig) -> list[TensorMap]:
    words, width, cells = config.words, config.width, config.cell.cells
    table: list[TensorMap] = []
    if words.table:
        rows = (words.table.rows, words.table.width)
        table.append(same("word_emb_layer.embedding.weight", rows, "words.table.weight"))
    if words.chars:
        chars, total = words.chars, words.chars.outputs
        table.append(same("char_emb_layer.embedding.weight", (chars.rows, chars.width), "words.chars.table"))
        for i, (w, n) in enumerate(chars.filters):
            ours = f"words.chars.filters.{i}"
            table.append(same(f"convolutions.{i}.weight", (n, chars.width, w), f"{ours}.weight"))
            table.append(same(f"convolutions.{i}.bias", (n,), f"{ours}.bias"))
        for k in range(chars.highways):
            ours = f"words.chars.highways.{k}"
            table.append(_halves(f"highways._layers.{k}.weight", (2 * total, total), ours, "weight"))
            table.append(_halves(f"highways._layers.{k}.bias", (2 * total,), ours, "bias"))
    table.append(same("projection.weight", (width, words.outputs), "words.project.weight"))
    table.append(same("projection.bias", (width,), "words.project.bias"))
    for direction in ("forward", "backward"):
        for layer in range(config.layers):
            old, ours = f"{direction}_layer_{layer}", f"{direction}_stack.{layer}"
            table.append(_gates(f"{old}.input_linearity.weight", (4 * cells, width), f"{ours}.input"))
            table.append(_gates(f"{old}.state_linearity.weight", (4 * cells, width), f"{ours}.recur"))
            table.append(_gates(f"{old}.state_linearity.bias", (4 * cells,), f"{ours}.bias"))
            table.append(same(f"{old}.state_projection.weight", (width, cells), f"{ours}.project"))
    return table
