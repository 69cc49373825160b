"""Gradients of one operator against central differences in f64, by the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.ops.run_op import Dim, exprs
from tilewright.autodiff.backward import pullback
from tilewright.core.dtypes import from_numpy
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs, Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.op import GraphOps
from tilewright.ops.registry import get_op
from tilewright.ops.traced_value import TracedValue, Value
from tilewright.ops.typecheck import check_types

Array = np.ndarray | None

# Random directions in which a gradient is compared: a wrong element shows in each of them.
DIRECTIONS = 3
STEP = 1e-5


def gradient_graph(
    op: str, arrays: Sequence[Array], attrs: Attrs, dims: Sequence[Sequence[Dim]] | None = None
) -> tuple[Graph, Graph]:
    """The operator, and beside its results the gradients of its float operands.

    The gradients of the results are inputs `d0, d1, ...`, those of integers are not asked for.
    """
    g = GraphBuilder("g")
    names = []
    for i, x in enumerate(arrays):
        if x is None:
            names.append("")
            continue
        shape = x.shape if dims is None or i >= len(dims) else dims[i]
        names.append(g.input(f"x{i}", tensor(from_numpy(x.dtype), *exprs(*shape))))
    ys = g.add_many(op, *names, attrs=attrs, names=("y",))
    forward = g.graph(*ys)
    seeds: dict[str, Value] = {}
    for i, y in enumerate(ys):
        t = g.type(y)
        if t.dtype.is_float:
            seeds[y] = TracedValue[GraphOps](g, g.input(f"d{i}", TensorType(t.dtype, t.shape)))
    wanted = [n for n in names if n and g.type(n).dtype.is_float]
    found = pullback(g, g.nodes[:1], wanted, seeds)
    return forward, g.graph(*(found[n].name for n in wanted if n in found))


def check_rule(
    op: str,
    *arrays: Array,
    attrs: Attrs = NO_ATTRS,
    dims: Sequence[Sequence[Dim]] | None = None,
    without: Sequence[int] = (),
    rtol: float = 1e-5,
    atol: float = 1e-7,
) -> list[np.ndarray]:
    """Check every gradient that there is, and that the operands `without` one have none."""
    forward, backward = gradient_graph(op, arrays, attrs, dims)
    verify_graph(backward)
    check_types(backward)
    given = {f"x{i}": x for i, x in enumerate(arrays) if x is not None}
    ys = list(run_graph(forward, given).values())
    if get_op(op).vjp is None:
        for y, made in zip(ys, run_parts(forward, given), strict=True):
            np.testing.assert_allclose(made, y, rtol=1e-9, atol=1e-11, err_msg=f"parts of {op}")
    rng = np.random.default_rng(3)
    weights = {
        f"d{i}": rng.uniform(0.5, 1.5, y.shape).astype(y.dtype)
        for i, y in enumerate(ys)
        if y.dtype.kind == "f"
    }
    found = list(run_graph(backward, {**given, **weights}).values())
    smooth = [i for i, x in enumerate(arrays) if x is not None and x.dtype.kind == "f"]
    expected = [i for i in smooth if i not in without]
    assert len(found) == len(expected), f"{len(found)} gradients of operands {expected}"
    for i, dx in zip(expected, found, strict=True):
        x = arrays[i]
        assert x is not None
        assert dx.shape == x.shape
        assert dx.dtype == x.dtype
        for _ in range(DIRECTIONS):
            way = rng.uniform(-1, 1, x.shape)
            slope = difference(forward, given, f"x{i}", weights, way)
            np.testing.assert_allclose((dx * way).sum(), slope, rtol, atol, err_msg=f"{op} by {i}")
    return found


def run_parts(forward: Graph, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of the operators that another one is differentiated as."""
    (node,), g = forward.nodes, GraphBuilder("parts")
    parts = get_op(node.op).parts
    assert parts is not None
    names = {v.name: g.input(v.name, v.type) for v in forward.inputs}
    results = parts(g, node.attrs, [names.get(i, "") for i in node.inputs])
    found = run_graph(g.graph(*(results if isinstance(results, tuple) else (results,))), given)
    return list(found.values())


def difference(
    forward: Graph,
    given: dict[str, np.ndarray],
    name: str,
    weights: dict[str, np.ndarray],
    way: np.ndarray,
) -> float:
    """How the weighted sum of all results changes where an input moves some way."""
    sides = []
    for step in (STEP, -STEP):
        ys = run_graph(forward, {**given, name: given[name] + step * way}).values()
        sides.append(
            sum((y * weights[f"d{i}"]).sum() for i, y in enumerate(ys) if f"d{i}" in weights)
        )
    return float(sides[0] - sides[1]) / (2 * STEP)


def pulled_with(op: str, attrs: Attrs, *arrays: np.ndarray) -> list[np.ndarray]:
    """The gradients of the sum of the results."""
    forward, backward = gradient_graph(op, arrays, attrs)
    given = {f"x{i}": x for i, x in enumerate(arrays)}
    ys = list(run_graph(forward, given).values())
    ones = {f"d{i}": np.ones_like(y) for i, y in enumerate(ys) if y.dtype.kind == "f"}
    return list(run_graph(backward, {**given, **ones}).values())
