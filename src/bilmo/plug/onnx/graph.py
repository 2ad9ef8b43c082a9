"""An ONNX graph built node by node, and the products of a network in it, in float32 or int8.

Knows: onnx, numpy. Blind to: networks, torch, files.
"""

# n rows, I inputs, O outputs

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import need

OPSET, IR_VERSION = 18, 10
"""What onnxruntime 1.20 and newer read."""
LARGEST_INPUT, LARGEST_WEIGHT = 63, 127
"""Inputs have seven bits: AVX2 adds two products in sixteen bits, which eight bits times eight would overflow."""

FLOAT, UINT8, INT64, BOOL = 1, 2, 7, 9
"""Numbers of types in ONNX."""

Array = NDArray[Any]
Value = tuple[int, list[str | int]]
"""The type and the axes of an input or output; an axis is a number, or a name if it has any length."""
Linear = Callable[["Graph", str], str]
"""Adds the nodes of a product to a graph: the name of its input to the name of its result."""


class Graph:
    """Nodes and constants. A body of a loop shares the constants and counter of the graph around it."""

    def __init__(self, around: Graph | None = None) -> None:
        self._onnx = need("onnx", extra="onnx", purpose="Exporting a model to ONNX")
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = around._constants if around else {}
        self._names: list[str] = around._names if around else []

    def name(self, kind: str) -> str:
        """A name that no other value has."""
        self._names.append(f"{kind}_{len(self._names)}")
        return self._names[-1]

    def constant(self, value: Array, name: str = "") -> str:
        """A constant of the graph; a name says which weight it is."""
        name = name or self.name("constant")
        self._constants[name] = self._onnx.numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def integers(self, *values: int) -> str:
        """A constant list of integers, such as axes or a shape."""
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        """A constant number."""
        return self.constant(np.array(value, dtype=np.float32))

    def add(self, kind: str, *inputs: str, outputs: int = 1, name: str = "", **attributes: Any) -> Any:
        """Add a node; returns the name of its output, or a list of names if it has several."""
        names = [name or self.name(kind) for _ in range(outputs)]
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def body(self, name: str, inputs: dict[str, Value], outputs: dict[str, Value]) -> Any:
        """The graph as the body of a loop."""
        return self._onnx.helper.make_graph(self._nodes, name, self._values(inputs), self._values(outputs))

    def model(self, inputs: dict[str, Value], outputs: dict[str, Value], metadata: dict[str, str]) -> bytes:
        """The whole model, with texts that are kept with it."""
        helper = self._onnx.helper
        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, "bilmo", self._values(inputs), self._values(outputs), constants)
        opset = helper.make_operatorsetid("", OPSET)
        made = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="bilmo")
        helper.set_model_props(made, metadata)
        return bytes(made.SerializeToString())

    def _values(self, types: dict[str, Value]) -> list[Any]:
        return [self._onnx.helper.make_tensor_value_info(name, *value) for name, value in types.items()]


def float_linear(graph: Graph, name: str, weight: Array, bias: Array | None = None) -> Linear:
    """x @ weight + bias, weight (I, O)."""
    matrix = graph.constant(weight, name)
    addend = None if bias is None else graph.constant(bias, f"{name}.bias")

    def product(graph: Graph, x: str) -> str:
        found: str = graph.add("MatMul", x, matrix)
        return found if addend is None else str(graph.add("Add", found, addend))

    return product


def int8_linear(graph: Graph, name: str, weight: Array, bias: Array | None = None) -> Linear:
    """The same in eight bits. Each row of an input has its own scale, so no sentence changes the vectors of another."""
    scales = np.maximum(np.abs(weight).max(axis=0), 1e-30) / LARGEST_WEIGHT  # (O,)
    matrix = graph.constant(np.round(weight / scales).astype(np.int8), name)
    scale = graph.constant((scales / LARGEST_INPUT).astype(np.float32), f"{name}.scale")
    addend = None if bias is None else graph.constant(bias, f"{name}.bias")
    most = graph.number(LARGEST_INPUT)
    least = graph.number(1e-30)
    shift, zero = graph.number(LARGEST_INPUT + 1), graph.constant(np.array(LARGEST_INPUT + 1, dtype=np.uint8))
    last = graph.integers(-1)

    def product(graph: Graph, x: str) -> str:
        largest = graph.add("Max", graph.add("ReduceMax", graph.add("Abs", x), last, keepdims=1), least)  # (n, 1)
        shifted = graph.add("Add", graph.add("Round", graph.add("Mul", graph.add("Div", x, largest), most)), shift)
        sums = graph.add("MatMulInteger", graph.add("Cast", shifted, to=UINT8), matrix, zero)  # (n, O)
        found: str = graph.add("Mul", graph.add("Mul", graph.add("Cast", sums, to=FLOAT), scale), largest)
        return found if addend is None else str(graph.add("Add", found, addend))

    return product
