"""Running one operator through its meaning, for the tests of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.arith.expr import Expr, Var, as_expr
from tilewright.core.dtypes import from_numpy
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph

Dim = int | str | Expr


def exprs(*dims: Dim) -> tuple[Expr, ...]:
    """Sizes as expressions: numbers are constants, names are symbolic sizes."""
    return tuple(Var(d) if isinstance(d, str) else as_expr(d) for d in dims)


def run_op(
    op: str,
    *arrays: np.ndarray | None,
    attrs: Attrs = NO_ATTRS,
    dims: Sequence[Sequence[Dim]] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Any:
    """The output, or a tuple of several; `dims` declares the shapes of the inputs."""
    g = GraphBuilder("test")
    names, inputs = [], {}
    for i, array in enumerate(arrays):
        if array is None:
            names.append("")
            continue
        shape = dims[i] if dims is not None and i < len(dims) else array.shape
        names.append(g.input(f"x{i}", TensorType(from_numpy(array.dtype), exprs(*shape))))
        inputs[names[-1]] = array
    graph = g.graph(*g.add_many(op, *names, attrs=attrs))
    found = run_graph(graph, inputs, sizes)
    for name in graph.outputs:
        assert found[name].dtype == graph.tensor_type(name).dtype.numpy, name
    results = tuple(found[name] for name in graph.outputs)
    return results if len(results) > 1 else results[0]
