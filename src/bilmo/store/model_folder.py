"""Our model folder: config.json, model.safetensors, vocab.txt, chars.txt, dictionary.txt, README.md.

Knows: Bundle, safetensors. Blind to: other layouts, training.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from bilmo.errors import OutputError, WeightsError
from bilmo.ids.chars import CharTable
from bilmo.ids.vocab import Vocab
from bilmo.net.config import STRICT, BiLMConfig, Direction
from bilmo.net.state import State
from bilmo.store.atomic import new_files, new_folder, read_published
from bilmo.store.bundle import Bundle, Shape, check_shapes, shapes_of
from bilmo.store.card import card_of, fact_in
from bilmo.store.hashed_folder import NOT_KNOWN, HashedFolder, NewFolder, check_format, check_own_hash, write_text
from bilmo.store.tensors_file import finite_weights
from bilmo.store.validate import checked, parse_json, same_length, with_path_in_error
from bilmo.text import dictionary as dictionaries

CONFIG, WEIGHTS, VOCAB, CHARS, CARD = "config.json", "model.safetensors", "vocab.txt", "chars.txt", "README.md"
DICTIONARY = "dictionary.txt"
"""The user's dictionary by which the training text was split; most models have none."""
DType = Literal["float32", "float16"]
FORMAT = 3
REMEDY = "Download or convert the model again."


@dataclass(frozen=True, kw_only=True)
class FolderConfig:
    """The content of config.json."""

    __pydantic_config__ = STRICT

    bilmo_format: int
    """Raised when older versions of bilmo can no longer read the folder."""
    network: BiLMConfig
    lang: str
    """How the training text was split, by the name of the rules; empty if that is not known."""
    sha256: dict[str, str]
    """Of every file that the vectors depend on, so that a damaged file is refused."""


def write(bundle: Bundle, folder: Path, dtype: DType = "float32") -> None:
    """Save a model; the folder must be new, and appears when it is complete.

    dtype: "float16" takes half the space and keeps about three digits of each weight; bilmo computes in float32.
    """
    with new_folder(folder) as partial:
        _fill(bundle, partial, folder, dtype)


def publish(bundle: Bundle, folder: Path) -> None:
    """Save a model into a folder that exists, in place of the one it may hold; `read` sees the old or the new one."""
    with new_files(folder) as partial:
        _fill(bundle, partial, folder)


def _fill(bundle: Bundle, partial: Path, folder: Path, dtype: DType = "float32") -> None:
    tensors = bundle.weights | _start_tensors(bundle.start)
    if dtype == "float16":
        tensors = {name: value.half() for name, value in tensors.items()}
        large = next((name for name, value in tensors.items() if not value.isfinite().all()), None)
        if large:
            raise OutputError(f"{folder}: values of {large} are too large for float16. Use float32.")
    files = NewFolder(partial)
    files.write_tensors(WEIGHTS, tensors)
    if bundle.vocab:
        files.write_lines(VOCAB, bundle.vocab.words)
    if bundle.chars:
        files.write_lines(CHARS, bundle.chars.lines())
    if bundle.dictionary:
        files.write_lines(DICTIONARY, bundle.dictionary.words)
    files.write_json(CONFIG, {"bilmo_format": FORMAT, "network": asdict(bundle.config), "lang": bundle.lang})
    # A card may have file names in it that are not UTF-8.
    write_text(partial / CARD, bundle.card or card_of(bundle), escaped=True)


def read(folder: Path) -> Bundle:
    """Load a model; all parts are checked against each other before the weights are loaded into memory."""
    return read_published(lambda: read_config(folder), lambda config: _read(folder, config))


OLD_DIRECTIONS: dict[object, Direction] = {"ahead": "forward", "behind": "backward"}
"""Names of the directions in format 1."""


def read_config(folder: Path) -> FolderConfig:
    """config.json of a model folder, in the current format."""
    path = folder / CONFIG
    data = parse_json(path)
    number = data.get("bilmo_format") if isinstance(data, dict) else None
    check_format(path, number, oldest=1, newest=FORMAT, if_older="Convert the model again.")
    config = checked(_modern(folder, data) if number in (1, 2) else data, FolderConfig, str(path))
    check_own_hash(path, data, REMEDY)
    return config


def _modern(folder: Path, data: dict[str, Any]) -> dict[str, Any]:
    """config.json of format 1 or 2 in the current format. Only the model card said how the text was split."""
    data = modern_directions(data) if data["bilmo_format"] == 1 else data
    lists = {name: NOT_KNOWN for name in (VOCAB, CHARS) if (folder / name).exists()}
    card = _read_card(folder)
    known = [fact for fact in (fact_in(card, "lang"), fact_in(card, "split")) if fact != "unknown"]  # its older name
    return {"lang": known[0] if known else ""} | data | {"sha256": {WEIGHTS: data.get("sha256")} | lists}


def modern_directions(data: Any) -> Any:
    """JSON of format 1 with the current names of the directions."""
    if isinstance(data, dict):
        return {
            key: _renamed(value) if key == "directions" else modern_directions(value) for key, value in data.items()
        }
    return data


def _renamed(names: Any) -> Any:
    return [OLD_DIRECTIONS.get(name, name) for name in names] if isinstance(names, list) else names


def _modern_name(name: str) -> str:
    """The current name of a tensor of format 1."""
    for old, new in OLD_DIRECTIONS.items():
        name = name.replace(f"stacks.{old}.", f"{new}_stack.").replace(f"start.{old}.", f"start.{new}.")
    return name


def _read(folder: Path, config: FolderConfig) -> Bundle:
    files, network = HashedFolder(folder, config.sha256, REMEDY), config.network
    weights = _read_tensors(files, network)
    vocab = (
        with_path_in_error(folder / VOCAB, lambda: Vocab(files.read_lines(VOCAB))) if VOCAB in files.hashes else None
    )
    softmax = weights.get("softmax.weight")
    chars = None
    if network.words.chars and network.words.chars.kind == "unicode":
        most, entries = network.words.chars.max_characters, files.read_lines(CHARS)
        chars = with_path_in_error(folder / CHARS, lambda: CharTable.from_lines(entries, max_characters=most))
        same_length(folder / CHARS, chars.rows, network.words.chars.rows)
    for rows in (network.words.table and network.words.table.rows, softmax is not None and len(softmax)):
        if rows:
            same_length(folder / VOCAB, len(vocab) if vocab else None, rows)
    start = {
        name.removeprefix("start."): weights.pop(name)[None] for name in list(weights) if name.startswith("start.")
    }
    return Bundle(
        config=network,
        weights=weights,
        layout="bilmo folder",
        vocab=vocab,
        chars=chars,
        start=State.from_named(start) if start else None,
        lang=config.lang,
        dictionary=dictionaries.read(files.check(DICTIONARY)) if DICTIONARY in files.hashes else None,
        card=_read_card(folder),
    )


def _read_card(folder: Path) -> str:
    """The model card; empty if there is none."""
    card = folder / CARD
    return card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""


def _read_tensors(files: HashedFolder, network: BiLMConfig) -> dict[str, Tensor]:
    """The tensors by their current names; shapes are checked before values are loaded into memory."""
    path = files.path / WEIGHTS
    with files.open_tensors(WEIGHTS) as file:
        stored = {_modern_name(name): name for name in file.keys()}  # noqa: SIM118
        found: dict[str, Shape] = {name: tuple(file.get_slice(old).get_shape()) for name, old in stored.items()}
        rows = found["softmax.weight"][0] if found.get("softmax.weight") else None
        needed = with_path_in_error(files.path / CONFIG, lambda: shapes_of(network, softmax_words=rows))
        if any(name.startswith("start.") for name in found):
            needed |= _start_shapes(network)
        unused = check_shapes(found, needed, where=str(path))
        if unused:
            raise WeightsError(f"{path}: {', '.join(unused)} do not belong to the network in {CONFIG}")
        return {name: finite_weights(file.get_tensor(old), f"{path}: {old}") for name, old in stored.items()}


def _start_tensors(start: State | None) -> dict[str, Tensor]:
    return {f"start.{name}": value[0].contiguous() for name, value in start.named().items()} if start else {}


def _start_shapes(config: BiLMConfig) -> dict[str, Shape]:
    widths = {"h": config.width} | ({"c": config.cell.cells} if config.cell.kind == "lstm" else {})
    return {
        f"start.{direction}.{number}.{kind}": (width,)
        for direction in config.directions
        for number in range(config.layers)
        for kind, width in widths.items()
    }
