"""Our model folder: config.json, model.safetensors, vocab.txt, chars.txt, README.md.

Knows: Bundle, safetensors. Blind to: other layouts, training.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open
from torch import Tensor

from bilmo.errors import ConfigError, DamagedFile, OutputError, WeightsError
from bilmo.ids.chars import CharTable
from bilmo.ids.vocab import Vocab
from bilmo.net.config import STRICT, BiLMConfig, Direction
from bilmo.net.state import State
from bilmo.store.atomic import new_files, new_folder, read_published
from bilmo.store.bundle import Bundle, Shape, compare, shapes_of
from bilmo.store.card import card_of
from bilmo.store.tensors_file import write_tensors
from bilmo.store.validate import checked, parse_json, same_length, sha256_of, with_path_in_error
from bilmo.text.files import lines

CONFIG, WEIGHTS, VOCAB, CHARS, CARD = "config.json", "model.safetensors", "vocab.txt", "chars.txt", "README.md"
DType = Literal["float32", "float16"]
FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class FolderConfig:
    """The content of config.json."""

    __pydantic_config__ = STRICT

    bilmo_format: int
    """Raised when older versions of bilmo can no longer read the folder."""
    network: BiLMConfig
    sha256: str
    """Of model.safetensors, so that a damaged file is refused."""


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
    sha256 = write_tensors(partial / WEIGHTS, tensors)
    config = FolderConfig(bilmo_format=FORMAT, network=bundle.config, sha256=sha256)
    _write_text(partial / CONFIG, json.dumps(asdict(config), indent=1))
    if bundle.vocab:
        _write_text(partial / VOCAB, "".join(f"{word}\n" for word in bundle.vocab.words))
    if bundle.chars:
        _write_text(partial / CHARS, "".join(f"{line}\n" for line in bundle.chars.lines()))
    # A card may have file names in it that are not UTF-8.
    _write_text(partial / CARD, bundle.card or card_of(bundle), errors="replace")


def read(folder: Path) -> Bundle:
    """Load a model; all parts are checked against each other before the weights are loaded into memory."""
    return read_published(lambda: read_config(folder), lambda config: _read(folder, config))


OLD_DIRECTIONS: dict[object, Direction] = {"ahead": "forward", "behind": "backward"}
"""Names of the directions in format 1."""


def read_config(folder: Path) -> FolderConfig:
    """config.json of a model folder, with the names of the current format."""
    data = parse_json(folder / CONFIG)
    if isinstance(data, dict) and data.get("bilmo_format") == 1:
        data = modern_directions(data)
    return checked(data, FolderConfig, str(folder / CONFIG))


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
    if not 1 <= config.bilmo_format <= FORMAT:
        raise ConfigError(
            f"{folder / CONFIG}: the folder has format {config.bilmo_format}; this version of bilmo reads formats 1 to "
            f"{FORMAT}. Install a newer version."
        )
    network = config.network
    vocab = (
        with_path_in_error(folder / VOCAB, lambda: Vocab(lines(folder / VOCAB))) if (folder / VOCAB).exists() else None
    )
    weights = _read_tensors(folder / WEIGHTS, config)
    softmax = weights.get("softmax.weight")
    chars = None
    if network.words.chars and network.words.chars.kind == "unicode":
        most = network.words.chars.max_characters
        chars = with_path_in_error(
            folder / CHARS, lambda: CharTable.from_lines(lines(folder / CHARS), max_characters=most)
        )
        same_length(folder / CHARS, chars.rows, network.words.chars.rows)
    for rows in (network.words.table and network.words.table.rows, softmax is not None and len(softmax)):
        if rows:
            same_length(folder / VOCAB, len(vocab) if vocab else None, rows)
    start = {
        name.removeprefix("start."): weights.pop(name)[None] for name in list(weights) if name.startswith("start.")
    }
    card = folder / CARD
    return Bundle(
        config=network,
        weights=weights,
        layout="bilmo folder",
        vocab=vocab,
        chars=chars,
        start=State.from_named(start) if start else None,
        card=card.read_text(encoding="utf-8", errors="replace") if card.exists() else "",
    )


def _read_tensors(path: Path, config: FolderConfig) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            stored = {_modern_name(name): name for name in file.keys()}  # noqa: SIM118
            found: dict[str, Shape] = {name: tuple(file.get_slice(old).get_shape()) for name, old in stored.items()}
            rows = found["softmax.weight"][0] if found.get("softmax.weight") else None
            needed = with_path_in_error(path.parent / CONFIG, lambda: shapes_of(config.network, softmax_words=rows))
            if any(name.startswith("start.") for name in found):
                needed |= _start_shapes(config.network)
            unused = compare(found, needed, where=str(path))
            if unused:
                raise WeightsError(f"{path}: {', '.join(unused)} do not belong to the network in {CONFIG}")
            if sha256_of(path) != config.sha256:
                raise DamagedFile(
                    f"{path}: is not the file that was saved (its SHA-256 differs from the one in {CONFIG}). "
                    "Download or convert the model again."
                )
            return {name: file.get_tensor(old).float() for name, old in stored.items()}
    except (SafetensorError, OSError) as error:
        raise DamagedFile(
            f"{path}: cannot be read as safetensors ({error}). Download or convert the model again."
        ) from None


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


def _write_text(path: Path, text: str, errors: Literal["strict", "replace"] = "strict") -> None:
    path.write_text(text, encoding="utf-8", errors=errors, newline="\n")
