"""A small graph and data, to be trained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.ir.graph.nodes import Constant, Graph
from tilewright.ir.graph.parse import parse_graph
from tilewright.ops.attrs import make_attrs

TEXT = """
graph @net(x: f32[N, 3], w1: f32[3, 8], b1: f32[8], w2: f32[8, 4]) {
  %h: f32[N, 8] = matmul(%x, %w1)
  %m: f32[N, 8] = add(%h, %b1)
  %t: f32[N, 8] = tanh(%m)
  %y: f32[N, 4] = matmul(%t, %w2)
  return %y
}
"""
SHAPES = {"w1": (3, 8), "b1": (8,), "w2": (8, 4)}


def net(dtype: str = "f32") -> Graph:
    """A net of two layers, with its weights as constants."""
    rng = np.random.default_rng(0)
    graph = parse_graph(TEXT.replace("f32", dtype), make_attrs)
    numpy = graph.inputs[0].type.dtype.numpy  # type: ignore[union-attr]
    values = {n: (rng.normal(size=s) / 2).astype(numpy) for n, s in SHAPES.items()}
    return with_constants(graph, values)


def with_constants(graph: Graph, values: dict[str, np.ndarray]) -> Graph:
    """A graph with some of its inputs as constants."""
    kept = tuple(v for v in graph.inputs if v.name not in values)
    made = tuple(Constant(n, graph.types[n], data) for n, data in values.items())
    return replace(graph, inputs=kept, constants=(*graph.constants, *made))


def batch(seed: int, rows: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Samples, and the classes that they have."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 3)).astype(np.float32), rng.integers(0, 4, rows)
