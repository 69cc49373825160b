"""Operators for thread blocks of a GPU, run as they are, and as the code of their threads."""

from __future__ import annotations

import numpy as np

from tests.codegen.gpu.host_threads import run_launches
from tests.schedule.builtin.gpu.scheduled import check, finalized, scheduled
from tilewright.core.dtypes import DType
from tilewright.ir.graph.nodes import Attrs, Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph


def graph_of(op: str, attrs: Attrs, dtype: DType, *shape: object) -> Graph:
    """A model of one operator."""
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, *shape))
    return g.graph(*g.add_many(op, x, attrs=attrs))


def interpreted(op: str, attrs: Attrs, x: np.ndarray, dtype: DType) -> list[np.ndarray]:
    """The results of the loops of an operator."""
    graph = graph_of(op, attrs, dtype, *x.shape)
    found = run_graph(graph, {"x": x})
    return [found[name] for name in graph.outputs]


def by_threads(op: str, attrs: Attrs, x: np.ndarray, dtype: DType) -> list[np.ndarray]:
    """The results of its code for a GPU, each thread by itself."""
    graph = graph_of(op, attrs, dtype, *x.shape)
    made = {name: t for n in graph.nodes for name, t in zip(n.outputs, n.types, strict=True)}
    types = [made[name] for name in graph.outputs]
    assert check(graph, {}) == ["thread_blocks"]
    (result,) = scheduled(graph)
    outputs = {
        f"y{n}": np.zeros(np.prod(t.static_shape, dtype=int), t.dtype.numpy)
        for n, t in enumerate(types)
    }
    run_launches(finalized(result.func), {"x0": x.ravel(), **outputs}, {})
    found = zip(outputs.values(), types, strict=True)
    return [y.reshape(t.static_shape) for y, t in found]
