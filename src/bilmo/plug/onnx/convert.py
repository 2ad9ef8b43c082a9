"""A model as an ONNX file: the word encoder, both stacks and the settled start, for any batch and any length.

The inputs are the fields of a `Batch`; only `backward` is not needed, because the graph reverses sentences itself. The
recurrent layers are Scan loops: the LSTM operator of ONNX has no projection and no clipping of the memory.

Knows: Bundle, the weights of the network, graph. Blind to: text, onnxruntime.
"""

# B sentences, T steps with boundaries, U distinct words, C characters, E character width, F filters
# D one direction, H memory cells, L layers

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import Tensor

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.embed.loaded import settled
from bilmo.embed.options import check_precision
from bilmo.errors import CannotConvert, OutputError
from bilmo.net.bilm import BiLM
from bilmo.net.cells import Cell
from bilmo.net.config import CharsConfig, Precision
from bilmo.net.state import PARTS, State
from bilmo.net.words import CharCNN, Highway, WordTable
from bilmo.plug.onnx.graph import BOOL, FLOAT, INT64, Array, Graph, Linear, Value, float_linear, int8_linear
from bilmo.plug.text_to_ids import TextToIds
from bilmo.store.atomic import new_file
from bilmo.store.bundle import Bundle

LARGEST = 2**31 - 2**20
"""Bytes of weights that fit into one ONNX file, whose format allows 2 GiB."""
CHUNK_ACTIVATIONS = 1 << 22
"""Windows times filters that are held at a time."""
Product = Callable[[str, Array, Array | None], Linear]
"""How a matrix is multiplied, with the name, the weight (I, O) and the bias (O,)."""


class Products(NamedTuple):
    """How the matrices of a network are multiplied."""

    gate: Product
    vector: Product


def write(model: str | PathLike[str] | Embedder, file: str | PathLike[str], precision: Precision = "float32") -> None:
    """Write a model as an ONNX file, which must not exist yet."""
    check_precision(precision)
    target = Path(file)
    if target.exists():
        raise OutputError(f"{target}: already exists. Choose another name, or remove it first.")
    bundle = settled((model if isinstance(model, Embedder) else load(model)).bundle)
    size = sum(value.numel() * 4 for name, value in bundle.weights.items() if not name.startswith("softmax."))
    if size > LARGEST:
        raise CannotConvert(
            f"the weights of this model have {size / 2**30:.1f} GiB; an ONNX file holds less than 2 GiB. "
            "Use bilmo itself for this model."
        )
    made = converted(bundle, precision)
    with new_file(target) as partial_file:
        partial_file.write_bytes(made)


def converted(bundle: Bundle, precision: Precision) -> bytes:
    """The content of the ONNX file of a model that has its settled start."""
    assert bundle.start is not None
    graph = Graph()
    # Gates saturate, so eight bits are enough for them; a product whose result is a vector stays in float32.
    product = Products(
        partial(int8_linear if precision == "int8" else float_linear, graph), partial(float_linear, graph)
    )
    network = bundle.shared_network()
    words = _words(graph, network, product)  # (U, D)
    layers = _layers(graph, network, words, bundle.start, product)
    config = bundle.config
    inputs: dict[str, Value] = {}
    if config.words.chars:
        inputs["chars"] = (INT64, ["words", "characters"])
    if config.words.table:
        inputs["ids"] = (INT64, ["words"])
    inputs |= {"forward": (INT64, ["sentences", "steps"]), "lengths": (INT64, ["sentences"])}
    outputs: dict[str, Value] = {layers: (FLOAT, [config.layers + 1, "sentences", "tokens", config.vector_width])}
    metadata = {
        "bilmo": json.dumps(asdict(TextToIds.of(bundle))),
        "layers": str(config.layers),
        "vector_width": str(config.vector_width),
        "precision": precision,
        "sha256": bundle.identity(),
    }
    return graph.model(inputs, outputs, metadata)


# Words


def _words(graph: Graph, network: BiLM, product: Products) -> str:
    """The distinct words of a batch as vectors (U, D)."""
    parts = network.config.words
    encoder = network.words
    highways = [_highway(f"words.highways.{k}", h, product) for k, h in enumerate(encoder.highways)]  # type: ignore[arg-type]
    project: Linear | None = None
    if encoder.project is not None:
        project = product.vector("words.project", _numpy(encoder.project.weight).T, _numpy(encoder.project.bias))
    found = [] if encoder.table is None else [_table(graph, encoder.table)]  # (U, M)
    if encoder.chars is not None:
        assert parts.chars is not None
        found.append(_spelled(graph, encoder.chars, parts.chars, product))  # (U, F)
    x: str = found[0] if len(found) == 1 else graph.add("Concat", *found, axis=1)
    x = x if project is None else project(graph, x)
    for highway in highways:
        x = highway(graph, x)
    return x


def _table(graph: Graph, table: WordTable) -> str:
    rows = _numpy(table.weight)
    if table.config.given:  # pretrained vectors have learned rows for the three marks
        rows = np.concatenate([_numpy(table.marks), rows[3:]])
    found: str = graph.add("Gather", graph.constant(rows, "words.table"), "ids")
    return found


def _spelled(graph: Graph, cnn: CharCNN, config: CharsConfig, product: Products) -> str:
    """Character ids (U, C) to (U, F), some words at a time, so that memory does not grow with their number."""
    table = graph.constant(_numpy(cnn.table), "words.characters")
    filters = [
        (graph.constant(_numpy(conv.weight), f"words.filters.{k}"), graph.constant(_numpy(conv.bias)))  # type: ignore[arg-type]
        for k, conv in enumerate(cnn.convolutions())
    ]
    highways = [_highway(f"words.characters.highways.{k}", h, product) for k, h in enumerate(cnn.highways)]  # type: ignore[arg-type]
    zero, one, axis, all_axes = graph.integers(0), graph.integers(1), graph.integers(2), graph.integers(0)
    characters = graph.add("Shape", "chars", start=1, end=2)  # (1,): C
    number = graph.add("Shape", "chars", start=0, end=1)  # (1,): U
    most = graph.integers(max(1, CHUNK_ACTIVATIONS // max(n for _, n in config.filters)))
    some = graph.add("Max", graph.add("Div", most, characters), one)  # (1,): words of a turn
    turns = graph.add("Div", graph.add("Sub", graph.add("Add", number, some), one), some)
    start = graph.constant(np.zeros((0, config.outputs), dtype=np.float32))

    body = Graph(graph)
    first = body.add("Mul", body.add("Unsqueeze", "turn", zero), some)
    here = body.add("Slice", "chars", first, body.add("Add", first, some), all_axes)  # (u, C)
    embedded = body.add("Transpose", body.add("Gather", table, here), perm=[0, 2, 1])  # (u, E, C)
    largest = [body.add("ReduceMax", body.add("Conv", embedded, *both), axis, keepdims=0) for both in filters]
    x = largest[0] if len(largest) == 1 else body.add("Concat", *largest, axis=1)  # (u, F)
    x = body.add("Relu" if config.activation == "relu" else "Tanh", x)
    for highway in highways:
        x = highway(body, x)
    body.add("Concat", "words_before", x, axis=0, name="words_after")
    body.add("Identity", "go_on", name="still")
    loop = body.body(
        "words_in_turns",
        {"turn": (INT64, []), "go_on": (BOOL, []), "words_before": (FLOAT, ["before", config.outputs])},
        {"still": (BOOL, []), "words_after": (FLOAT, ["after", config.outputs])},
    )
    condition = graph.constant(np.array(True))
    found: str = graph.add("Loop", graph.add("Squeeze", turns), condition, start, body=loop)
    return found


def _highway(name: str, highway: Highway, product: Products) -> Linear:
    """g * x + (1 - g) * relu(transform x), written as r + g * (x - r)."""
    transform = product.vector(f"{name}.transform", _numpy(highway.transform.weight).T, _numpy(highway.transform.bias))
    carry = product.gate(f"{name}.carry", _numpy(highway.carry.weight).T, _numpy(highway.carry.bias))

    def layer(graph: Graph, x: str) -> str:
        gate = graph.add("Sigmoid", carry(graph, x))
        changed = graph.add("Relu", transform(graph, x))
        return str(graph.add("Add", changed, graph.add("Mul", gate, graph.add("Sub", x, changed))))

    return layer


# Layers


def _layers(graph: Graph, network: BiLM, words: str, start: State, product: Products) -> str:
    """All layers (L+1, B, T - 2, 2D) without boundaries, zero where there is no token."""
    config = network.config
    steps = graph.add("Transpose", "forward", perm=[1, 0])  # (T, B)
    rows = graph.add("Shape", "forward", start=0, end=1)  # (1,): B
    reverse = partial(graph.add, "ReverseSequence", time_axis=0, batch_axis=1)
    halves = []
    for direction, stack in network.stacks.items():
        backward = direction == "backward"
        x = graph.add("Gather", words, reverse(steps, "lengths") if backward else steps)  # (T, B, D)
        outputs = [x]
        for number, cell in enumerate(stack):
            before = [_rows_of(graph, _numpy(part), rows) for part in start.stacks[direction][number]]
            value = _recurrent(graph, f"{direction}.{number}", cell, outputs[-1], before, product)
            outputs.append(graph.add("Add", value, outputs[-1]) if config.skip and number else value)
        halves.append([reverse(value, "lengths") for value in outputs] if backward else outputs)
    both = [one[0] if len(one) == 1 else graph.add("Concat", *one, axis=2) for one in zip(*halves, strict=True)]
    stacked = graph.add("Concat", *(graph.add("Unsqueeze", one, graph.integers(0)) for one in both), axis=0)
    inside = graph.add("Slice", stacked, graph.integers(1), graph.integers(-1), graph.integers(1))
    return str(graph.add("Mul", graph.add("Transpose", inside, perm=[0, 2, 1, 3]), _mask(graph), name="layers"))


def _rows_of(graph: Graph, state: Array, rows: str) -> str:
    """A state of one row (1, H) for every sentence (B, H)."""
    shape = graph.add("Concat", rows, graph.integers(state.shape[1]), axis=0)
    return str(graph.add("Expand", graph.constant(state), shape))


def _mask(graph: Graph) -> str:
    """(B, T - 2, 1): 1 where a sentence has a token."""
    tokens = graph.add("Sub", graph.add("Shape", "forward", start=1, end=2), graph.integers(2))  # (1,)
    zero, one = (graph.constant(np.array(value, dtype=np.int64)) for value in (0, 1))
    places = graph.add("Range", zero, graph.add("Squeeze", tokens), one)  # (T - 2,)
    of_sentence = graph.add("Unsqueeze", graph.add("Sub", "lengths", graph.integers(2)), graph.integers(1))  # (B, 1)
    real = graph.add("Unsqueeze", graph.add("Less", places, of_sentence), graph.integers(2))
    return str(graph.add("Cast", real, to=FLOAT))


def _recurrent(graph: Graph, name: str, cell: Cell, x: str, before: list[str], product: Products) -> str:
    """One layer of one direction: its inputs (T, B, I) and first states (B, D), (B, H) to its outputs (T, B, D)."""
    bias = _numpy(cell.used_bias())
    inputs = product.gate(f"{name}.input", _numpy(cell.input).T, bias)(graph, x)  # of all steps at once
    body = Graph(graph)
    steps = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}[cell.config.kind](name, cell, product)
    states = dict(zip(PARTS, before, strict=False))
    after = steps(body, "step", *states)
    output = body.add("Identity", after[0])
    widths = {"h": cell.width, "c": cell.config.cells}
    memory: dict[str, Value] = {part: (FLOAT, ["sentences", widths[part]]) for part in states}
    loop = body.body(
        name,
        memory | {"step": (FLOAT, ["sentences", len(bias)])},
        dict(zip(after, memory.values(), strict=True)) | {output: memory["h"]},
    )
    *_, found = graph.add("Scan", *before, inputs, outputs=len(states) + 1, body=loop, num_scan_inputs=1)
    return str(found)


Steps = Callable[..., list[str]]
"""Adds the nodes of one step to the body of a loop: multiplied inputs and states to the next states, h first."""


def _rnn(name: str, cell: Cell, product: Products) -> Steps:
    recur = product.gate(f"{name}.recur", _numpy(cell.recur).T, None)
    return lambda graph, x, h: [graph.add("Tanh", graph.add("Add", x, recur(graph, h)))]


def _gru(name: str, cell: Cell, product: Products) -> Steps:
    """Gate order z, r, new; the reset gate acts before the product."""
    width = cell.width
    weight = _numpy(cell.recur)
    gates = product.gate(f"{name}.recur.gates", weight[: 2 * width].T, None)
    new_value = product.gate(f"{name}.recur.new", weight[2 * width :].T, None)

    def step(graph: Graph, x: str, h: str) -> list[str]:
        for_gates, for_new = graph.add("Split", x, graph.integers(2 * width, width), outputs=2, axis=1)
        both = graph.add("Sigmoid", graph.add("Add", for_gates, gates(graph, h)))
        z, r = graph.add("Split", both, graph.integers(width, width), outputs=2, axis=1)
        new = graph.add("Tanh", graph.add("Add", for_new, new_value(graph, graph.add("Mul", r, h))))
        return [graph.add("Add", h, graph.add("Mul", z, graph.add("Sub", new, h)))]

    return step


def _lstm(name: str, cell: Cell, product: Products) -> Steps:
    """Gate order in, forget, out, new."""
    config = cell.config
    recur = product.gate(f"{name}.recur", _numpy(cell.recur).T, None)
    project = None if cell.project is None else product.vector(f"{name}.project", _numpy(cell.project).T, None)

    def clipped(graph: Graph, x: str, bound: float | None) -> str:
        return x if bound is None else str(graph.add("Clip", x, graph.number(-bound), graph.number(bound)))

    def step(graph: Graph, x: str, h: str, c: str) -> list[str]:
        parts = graph.integers(3 * config.cells, config.cells)
        gates, new = graph.add("Split", graph.add("Add", x, recur(graph, h)), parts, outputs=2, axis=1)
        thirds = graph.integers(*[config.cells] * 3)
        i, f, o = graph.add("Split", graph.add("Sigmoid", gates), thirds, outputs=3, axis=1)
        sums = graph.add("Add", graph.add("Mul", f, c), graph.add("Mul", i, graph.add("Tanh", new)))
        memory = clipped(graph, sums, config.cell_clip)
        m = graph.add("Mul", o, graph.add("Tanh", memory))
        return [m if project is None else clipped(graph, project(graph, m), config.projection_clip), memory]

    return step


def _numpy(weight: Tensor) -> Array:
    found: Array = weight.detach().float().cpu().numpy()
    return found
