"""Running one operator with chosen symbolic dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var, as_expr
from tilewright.core.dtypes import from_numpy
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs, Graph
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.tensor.verify import verify_program
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import bind_sizes, run_graph, tensor_program
from tilewright.ops.registry import get_op

Dims = Sequence[str | int | Expr]


def type_of(x: np.ndarray, dims: Dims | None = None) -> TensorType:
    """The type of an array; `dims` names the dimensions that are symbolic."""
    shape = x.shape if dims is None else dims
    return TensorType(from_numpy(x.dtype), exprs(*shape))


def run_op(
    op: str,
    *arrays: np.ndarray,
    attrs: Attrs = NO_ATTRS,
    dims: Sequence[Dims | None] = (),
    sizes: dict[str, int] | None = None,
) -> np.ndarray | tuple[np.ndarray, ...]:
    """The result(s) of `op`, checked to have the types that its type rule gives."""
    g = GraphBuilder("test")
    wanted = [*dims, *(None for _ in arrays[len(dims) :])]
    inputs = [
        g.input(f"a{i}", type_of(x, d)) for i, (x, d) in enumerate(zip(arrays, wanted, strict=True))
    ]
    graph = g.graph(*g.add_many(op, *inputs, attrs=attrs))
    _verify(graph)
    given = dict(zip(inputs, arrays, strict=True))
    found = run_graph(graph, given, sizes)
    bound = bind_sizes(graph, given, sizes or {})
    for name in graph.outputs:
        expected = g.type(name)
        assert found[name].dtype == expected.dtype.numpy
        assert found[name].shape == tuple(evaluate(d, bound) for d in expected.shape)
    results = tuple(found[name] for name in graph.outputs)
    return results[0] if len(results) == 1 else results


def _verify(graph: Graph) -> None:
    """The loops or tensor expressions of each node keep the rules of their IR."""
    for node in graph.nodes:
        row = get_op(node.op)
        types = [graph.types[name] for name in node.inputs]
        if row.loops is not None:
            verify_func(row.loops(node.attrs, types, node.types))
        elif row.te is not None:
            verify_program(tensor_program(row, node, types))


def exprs(*values: int | str | Expr) -> tuple[Expr, ...]:
    """Index expressions: numbers and names of sizes."""
    return tuple(Var(v) if isinstance(v, str) else as_expr(v) for v in values)
