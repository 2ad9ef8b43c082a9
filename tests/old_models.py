"""Small models in the layouts of the old systems, and the vectors that those systems' rules give for them.

Written from the descriptions of the formats and apart from the readers under test: names of tensors are made as
TensorFlow and the old dump made them, and the arithmetic works on the arrays under their old names, in float64.
"""

# C characters, d character width, F filters, P width of one direction, H cells, T tokens

from __future__ import annotations

import json
import os
import random
import resource
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

import tf_bundle

Array = np.ndarray
SENTENCES = [["The", "cat", "sat"], [], ["naïve", "漢字", "y" * 60, ""], ["cat"]]
MARKS = ("<S>", "</S>", "<UNK>")
WORDS = (*MARKS, "the", "The", "cat", "", "sat", "cat", "漢字")
"""A vocabulary with a blank entry and a repeated one."""
CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/"


@dataclass(frozen=True)
class Old:
    """What was written: settings, arrays by the names of a two-layer HDF5 dump, and the lines of vocab.txt."""

    options: dict[str, Any]
    arrays: dict[str, Array]
    vocab: tuple[str, ...] | None = None
    directions: tuple[int, ...] = (0, 1)


# bilm-tf and AllenNLP


def bilmtf(
    *,
    seed: int = 0,
    layers: int = 2,
    cells: int = 6,
    width: int = 4,
    skip: bool = True,
    highways: int = 1,
    filters: Sequence[tuple[int, int]] = ((1, 2), (2, 3), (3, 2)),
    activation: str = "relu",
    projection: bool = True,
    cnn_projection: bool = True,
    directions: tuple[int, ...] = (0, 1),
    words: bool = False,
    softmax: bool = False,
    vocab: tuple[str, ...] | None = None,
    cell_clip: float | None = 3,
    proj_clip: float | None = 3,
    longest: int = 50,
) -> Old:
    """A model with random weights; `words`: a word table instead of a character CNN."""
    draw = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}

    def add(name: str, *shape: int, spread: float = 0.5) -> None:
        arrays[name] = draw.normal(0, spread, shape).astype(np.float32)

    vocab = vocab or (WORDS if words or softmax else None)
    if not projection:
        cells = width
    lstm = {"dim": cells, "projection_dim": width, "n_layers": layers, "cell_clip": cell_clip, "proj_clip": proj_clip}
    options: dict[str, Any] = {"lstm": lstm | {"use_skip_connections": skip}}
    if words:
        add("embedding", len(vocab or ()), width, spread=1)
    else:
        total = sum(n for _, n in filters)
        options["char_cnn"] = {
            "activation": activation,
            "filters": [list(pair) for pair in filters],
            "n_highway": highways,
            "embedding": {"dim": 3},
            "n_characters": 262,
            "max_characters_per_token": longest,
        }
        add("char_embed", 261, 3, spread=1)
        for i, (w, n) in enumerate(filters):
            add(f"CNN/W_cnn_{i}", 1, w, 3, n)
            add(f"CNN/b_cnn_{i}", n)
        for k in range(highways):
            for kind in ("carry", "transform"):
                add(f"CNN_high_{k}/W_{kind}", total, total)
                add(f"CNN_high_{k}/b_{kind}", total)
        if cnn_projection:
            add("CNN_proj/W_proj", total, width)
            add("CNN_proj/b_proj", width)
    for direction in directions:
        for layer in range(layers):
            cell = CELL.format(direction, layer)
            add(f"{cell}W_0", 2 * width, 4 * cells)
            add(f"{cell}B", 4 * cells)
            if projection:
                add(f"{cell}W_P_0", cells, width)
    if softmax:
        add("softmax/W", len(vocab or ()), width, spread=1)
        add("softmax/b", len(vocab or ()))
    return Old(options, arrays, vocab, directions)


def variable(name: str, *, layers: int, directions: int) -> str:
    """The name of a variable in the graph; TensorFlow opens some scopes only for several layers or directions."""
    if "/LSTMCell/" in name:
        _, _, _, cell, _, part = name.split("/")
        direction = name[: len("RNN_0/")] if directions > 1 else ""
        stack = f"multi_rnn_cell/cell_{cell.removeprefix('Cell')}/" if layers > 1 else ""
        part = {"W_0": "kernel", "B": "bias", "W_P_0": "projection/kernel"}[part]
        name = f"{direction}rnn/{stack}lstm_cell/{part}"
    return f"lm/{name}"


def dumped(name: str) -> str:
    """The name under which bilm-tf dumps a variable, by its own rule; it fits two directions only."""
    name = name.removeprefix("lm/").replace("/rnn/", "/RNN/").replace("/multi_rnn_cell/", "/MultiRNNCell/")
    name = name.replace("/cell_", "/Cell").replace("/lstm_cell/", "/LSTMCell/")
    if "/RNN/" in name:
        name = name.replace("/projection/kernel", "/W_P_0").replace("/kernel", "/W_0").replace("/bias", "/B")
    return name


def write_hdf5(
    folder: Path,
    old: Old | None = None,
    *,
    as_dumped: bool = False,
    rows: int = 261,
    dtype: str = "<f4",
    options_name: str = "options.json",
    weights_name: str = "weights.hdf5",
    more_options: dict[str, Any] | None = None,
    **sizes: Any,
) -> Old:
    """Options and weights in HDF5; `as_dumped`: with the names that the dump gives to one layer or one direction."""
    old = old or bilmtf(**sizes)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / options_name, old.options | (more_options or {}))
    arrays = {name: array.astype(dtype) for name, array in old.arrays.items()}
    if rows == 262:
        arrays["char_embed"] = np.concatenate([np.zeros((1, 3), dtype), arrays["char_embed"]])
    if as_dumped:
        count = {"layers": old.options["lstm"]["n_layers"], "directions": len(old.directions)}
        arrays = {dumped(variable(name, **count)): array for name, array in arrays.items()}
    write_arrays(folder / weights_name, arrays)
    write_vocab(folder, old)
    return old


def write_arrays(path: Path, arrays: dict[str, Array]) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array)


def read_arrays(path: Path) -> dict[str, Array]:
    """Every dataset of an HDF5 file."""
    arrays: dict[str, Array] = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: arrays.update({name: item[()]} if isinstance(item, h5py.Dataset) else {}))
    return arrays


def write_json(path: Path, data: object) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")


def write_vocab(folder: Path, old: Old) -> None:
    if old.vocab is not None:
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in old.vocab), encoding="utf-8")


def write_checkpoint(folder: Path, old: Old | None = None, *, step: int = 935588, **sizes: Any) -> Old:
    """The files after training: every variable with its Adagrad slot, and the author's own path in `checkpoint`."""
    old = old or bilmtf(**{"softmax": True} | sizes)
    folder.mkdir(parents=True, exist_ok=True)
    training = {"bidirectional": len(old.directions) == 2, "dropout": 0.1, "n_tokens_vocab": len(old.vocab or ())}
    write_json(folder / "options.json", old.options | training)
    count = {"layers": old.options["lstm"]["n_layers"], "directions": len(old.directions)}
    weights = {variable(name, **count): array for name, array in old.arrays.items()}
    slots = {f"{name}/Adagrad": np.ones_like(array) for name, array in weights.items()}
    others: dict[str, Array] = {"global_step": np.array(step, np.int64), "train_perplexity": np.array(40.5, np.float32)}
    tf_bundle.write(folder / f"model.ckpt-{step}", weights | slots | others)
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "/home/author/elmo/model.ckpt-{step}"\n')
    write_vocab(folder, old)
    return old


# ELMoForManyLangs

CHAR_DIC = ("<bos>", "<eos>", "<eow>", "<bow>", "<oov>", "<pad>", *"Tacehnstïyv", "漢", "字")
WORD_DIC = ("<oov>", "<bos>", "<eos>", "<pad>", "The", "cat", "sat", "漢字")


@dataclass(frozen=True)
class ManyLangs:
    """What was written: the architecture, the tensors of both files, and the dictionaries in the order of their ids."""

    architecture: dict[str, Any]
    arrays: dict[str, Array]
    chars: Sequence[str]
    words: Sequence[str]
    encoder: dict[str, torch.Tensor] = field(repr=False)
    embedder: dict[str, torch.Tensor] = field(repr=False)


def write_manylangs(
    folder: Path,
    *,
    seed: int = 0,
    words: bool = True,
    chars: bool = True,
    layers: int = 2,
    highways: int = 2,
    config_path: str = "/home/author/configs/cnn_small.json",
    architecture_name: str | None = "cnn_small.json",
    char_dic: Sequence[str] = CHAR_DIC,
    word_dic: Sequence[str] = WORD_DIC,
    zipped_pickle: bool = True,
    more: dict[str, dict[str, Any]] | None = None,
) -> ManyLangs:
    """A folder as released; `architecture_name` None leaves out that file, as in some releases. `more` changes it."""
    folder.mkdir(parents=True, exist_ok=True)
    width, cells, filters = 4, 6, [[1, 2], [2, 3], [3, 2]]
    total = 7 * chars
    word_dim, char_dim = 5 * words, 3 * chars
    shape: dict[str, Any] = {
        "encoder": {"name": "elmo", "projection_dim": width, "dim": cells, "n_layers": layers}
        | {"cell_clip": 3, "proj_clip": 3},
        "token_embedder": {"name": "cnn", "activation": "relu", "filters": filters, "n_highway": highways}
        | {"word_dim": word_dim, "char_dim": char_dim, "max_characters_per_token": 50},
        "classifier": {"name": "sampled_softmax", "n_samples": 8192},
        "dropout": 0.1,
    }
    for part, changes in (more or {}).items():
        shape[part] |= changes
    draw = np.random.default_rng(seed)
    embedder: dict[str, torch.Tensor] = {}
    encoder: dict[str, torch.Tensor] = {}

    def add(to: dict[str, torch.Tensor], name: str, *size: int) -> None:
        to[name] = torch.from_numpy(draw.normal(0, 0.5, size).astype(np.float32))

    if words:
        add(embedder, "word_emb_layer.embedding.weight", len(word_dic), word_dim)
    if chars:
        add(embedder, "char_emb_layer.embedding.weight", len(char_dic), char_dim)
        for i, (w, n) in enumerate(filters):
            add(embedder, f"convolutions.{i}.weight", n, char_dim, w)
            add(embedder, f"convolutions.{i}.bias", n)
        for k in range(highways):
            add(embedder, f"highways._layers.{k}.weight", 2 * total, total)
            add(embedder, f"highways._layers.{k}.bias", 2 * total)
    add(embedder, "projection.weight", width, word_dim + total)
    add(embedder, "projection.bias", width)
    for direction in ("forward", "backward"):
        for layer in range(layers):
            name = f"{direction}_layer_{layer}"
            add(encoder, f"{name}.input_linearity.weight", 4 * cells, width)
            add(encoder, f"{name}.state_linearity.weight", 4 * cells, width)
            add(encoder, f"{name}.state_linearity.bias", 4 * cells)
            add(encoder, f"{name}.state_projection.weight", width, cells)
    write_json(folder / "config.json", {"config_path": config_path, "seed": 1, "batch_size": 32})
    if architecture_name:
        write_json(folder / architecture_name, shape)
    if chars:
        write_dic(folder / "char.dic", char_dic)
    if words:
        write_dic(folder / "word.dic", word_dic)
    for name, tensors in (("encoder.pkl", encoder), ("token_embedder.pkl", embedder)):
        torch.save(tensors, folder / name, _use_new_zipfile_serialization=zipped_pickle)
    arrays = {name: tensor.numpy() for name, tensor in (embedder | encoder).items()}
    return ManyLangs(shape, arrays, char_dic, word_dic, encoder, embedder)


def write_dic(path: Path, entries: Sequence[str]) -> None:
    path.write_text("".join(f"{entry}\t{id}\n" for id, entry in enumerate(entries)), encoding="utf-8", newline="\n")


# Both


def zipped(folder: Path, path: Path, inside: str = "") -> Path:
    """The files of a folder in a zip, at its top or in a folder `inside` it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, Path(inside) / file.name)
    return path


# The arithmetic of the old systems

State = dict[int, list[tuple[Array, Array]]]
"""For each direction, for each layer: (h, c)."""


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def relu(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0))


def clipped(x: Array, bound: float | None) -> Array:
    return np.clip(x, -bound, bound) if bound else x


def spelled(word: str, longest: int = 50) -> list[int]:
    """The byte scheme: the ids of the weights file, without the 1 that is added at prediction."""
    marks = {"<S>": [256], "</S>": [257]}
    inside = marks.get(word) or list(word.encode("utf-8", "ignore"))[: longest - 2]
    ids = [258, *inside, 259]
    return ids + [260] * (longest - len(ids))


def convolved(chars: Array, kernels: Sequence[tuple[Array, Array]], activation: str) -> Array:
    """(C, d) and kernels (w, d, n) with their biases to (F,): the largest over all places, then the activation."""
    best = []
    for kernel, bias in kernels:
        w = len(kernel)
        places = [np.einsum("wd,wdn->n", chars[at : at + w], kernel) for at in range(len(chars) - w + 1)]
        best.append(np.max(places, axis=0) + bias)
    x = np.concatenate(best)
    return relu(x) if activation == "relu" else np.tanh(x)


def bilmtf_word(old: Old, word: str) -> Array:
    """(P,): a word without its context."""
    a = {name: array.astype(np.float64) for name, array in old.arrays.items()}
    cnn = old.options.get("char_cnn")
    if cnn is None:
        vocab = list(old.vocab or ())
        rows = [k for k, entry in enumerate(vocab) if entry and entry == word]
        return np.asarray(a["embedding"][rows[-1] if rows else vocab.index("<UNK>")])
    chars = a["char_embed"][spelled(word, cnn["max_characters_per_token"])]
    kernels = [(a[f"CNN/W_cnn_{i}"][0], a[f"CNN/b_cnn_{i}"]) for i in range(len(cnn["filters"]))]
    x = convolved(chars, kernels, cnn["activation"])
    for k in range(cnn.get("n_highway") or 0):
        carry, transform = (
            x @ a[f"CNN_high_{k}/W_{kind}"] + a[f"CNN_high_{k}/b_{kind}"] for kind in ("carry", "transform")
        )
        gate = sigmoid(carry)
        x = gate * relu(transform) + (1 - gate) * x
    return x @ a["CNN_proj/W_proj"] + a["CNN_proj/b_proj"] if "CNN_proj/W_proj" in a else x


def stacked(
    xs: list[Array], steps: list[Callable[[Array, Array, Array], tuple[Array, Array]]], skip: bool, state: list[Any]
) -> tuple[list[list[Array]], list[Any]]:
    """Words in the order of one direction to all of its layers; `steps` are the cells, one per layer."""
    layers, after = [xs], []
    for number, (step, (h, c)) in enumerate(zip(steps, state, strict=True)):
        outputs = []
        for x in layers[-1]:
            h, c = step(x, h, c)
            outputs.append(h)
        after.append((h, c))
        if skip and number:
            outputs = [out + x for out, x in zip(outputs, layers[-1], strict=True)]
        layers.append(outputs)
    return layers, after


def both_ways(
    xs: list[Array], cells: dict[int, list[Any]], skip: bool, state: State
) -> tuple[Array, dict[int, list[Any]]]:
    """Words with their boundaries to (L+1, T, P * directions) and the state after."""
    halves, after = [], {}
    for direction, steps in cells.items():
        order = -1 if direction else 1
        layers, after[direction] = stacked(xs[::order], steps, skip, state[direction])
        halves.append(np.array([layer[::order] for layer in layers]))
    return np.concatenate(halves, axis=-1), after


def bilmtf_layers(
    old: Old, sentence: Sequence[str], state: State | None = None, *, boundaries: bool = False
) -> tuple[Array, State]:
    """All layers of a sentence from zero or a given state, and the state after it."""
    lstm = old.options["lstm"]
    width, dim = lstm["projection_dim"], lstm["dim"]

    def cell(name: str) -> Callable[[Array, Array, Array], tuple[Array, Array]]:
        kernel, bias = (old.arrays[name + part].astype(np.float64) for part in ("W_0", "B"))
        project = old.arrays.get(f"{name}W_P_0")

        def step(x: Array, h: Array, c: Array) -> tuple[Array, Array]:
            i, j, f, o = np.split(np.concatenate([x, h]) @ kernel + bias, 4)
            c = clipped(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), lstm["cell_clip"])
            m = sigmoid(o) * np.tanh(c)
            return (m if project is None else clipped(m @ project.astype(np.float64), lstm["proj_clip"])), c

        return step

    cells = {d: [cell(CELL.format(d, k)) for k in range(lstm["n_layers"])] for d in old.directions}
    zero: State = {d: [(np.zeros(width), np.zeros(dim)) for _ in steps] for d, steps in cells.items()}
    xs = [bilmtf_word(old, word) for word in ("<S>", *sentence, "</S>")]
    layers, after = both_ways(xs, cells, bool(lstm.get("use_skip_connections")), state or zero)
    return (layers if boundaries else layers[:, 1:-1]), after


def manylangs_word(model: ManyLangs, word: str) -> Array:
    """(P,): [word ; characters], projected. The begin and end marks of words are swapped, as in the original."""
    a = {name: array.astype(np.float64) for name, array in model.arrays.items()}
    shape = model.architecture["token_embedder"]
    longest = shape["max_characters_per_token"]
    mark = {"<S>": "<bos>", "</S>": "<eos>"}.get(word)
    parts = []
    if shape["word_dim"]:
        id = {entry: k for k, entry in enumerate(model.words)}
        parts.append(a["word_emb_layer.embedding.weight"][id.get(mark or word[: longest - 2], id["<oov>"])])
    if shape["char_dim"]:
        id = {entry: k for k, entry in enumerate(model.chars)}
        inside = [id[mark]] if mark else [id.get(c, id["<oov>"]) for c in word[: longest - 2]]
        ids = [id["<eow>"], *inside, id["<bow>"]]
        chars = a["char_emb_layer.embedding.weight"][ids + [id["<pad>"]] * (longest - len(ids))]
        kernels = [
            (a[f"convolutions.{i}.weight"].transpose(2, 1, 0), a[f"convolutions.{i}.bias"])
            for i in range(len(shape["filters"]))
        ]
        x = convolved(chars, kernels, shape["activation"])
        for k in range(shape["n_highway"]):
            y = a[f"highways._layers.{k}.weight"] @ x + a[f"highways._layers.{k}.bias"]
            transform, gate = relu(y[: len(x)]), sigmoid(y[len(x) :])
            x = gate * x + (1 - gate) * transform
        parts.append(x)
    return np.asarray(a["projection.weight"] @ np.concatenate(parts) + a["projection.bias"])


def manylangs_layers(model: ManyLangs, sentence: Sequence[str]) -> Array:
    """All layers of a sentence, (L+1, T, 2P), from zero."""
    shape = model.architecture["encoder"]

    def cell(name: str) -> Callable[[Array, Array, Array], tuple[Array, Array]]:
        into, recur, bias, project = (
            model.arrays[f"{name}.{part}"].astype(np.float64)
            for part in (
                "input_linearity.weight",
                "state_linearity.weight",
                "state_linearity.bias",
                "state_projection.weight",
            )
        )

        def step(x: Array, h: Array, c: Array) -> tuple[Array, Array]:
            i, f, g, o = np.split(into @ x + recur @ h + bias, 4)
            c = clipped(sigmoid(f) * c + sigmoid(i) * np.tanh(g), shape["cell_clip"])
            return clipped(project @ (sigmoid(o) * np.tanh(c)), shape["proj_clip"]), c

        return step

    names = enumerate(("forward", "backward"))
    cells = {d: [cell(f"{name}_layer_{k}") for k in range(shape["n_layers"])] for d, name in names}
    zero: State = {d: [(np.zeros(shape["projection_dim"]), np.zeros(shape["dim"]))] * len(cells[d]) for d in cells}
    xs = [manylangs_word(model, word) for word in ("<S>", *sentence, "</S>")]
    return both_ways(xs, cells, True, zero)[0][:, 1:-1]


# Damage


def cuts(good: bytes, number: int = 12) -> Iterator[bytes]:
    """The file cut off: at the start, after a few bytes, at regular distances, and just before its end."""
    lengths = {0, 1, 7, len(good) - 1, *(len(good) * k // number for k in range(number))}
    for length in sorted(lengths):
        yield good[:length]


def flips(good: bytes, number: int, seed: int = 0) -> Iterator[bytes]:
    """The file with one bit flipped, at `number` places; half of them in its first bytes, which matter most."""
    draw = random.Random(seed)
    for k in range(number):
        bad = bytearray(good)
        bad[draw.randrange(len(good) if k % 2 else min(512, len(good)))] ^= 1 << draw.randrange(8)
        yield bytes(bad)


@contextmanager
def little_memory(limit: int = 2**26, *, asked_for: bool = True) -> Iterator[None]:
    """At most `limit` bytes are used by the process; with `asked_for`, also at most that many are requested."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        yield
        assert not asked_for or tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if os.uname().sysname == "Darwin" else 1024) < limit
