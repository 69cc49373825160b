"""Dimensions that are bound while a model runs: interpreted and native."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.differential.native import check_native, compare
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import BOOL, F32, I64
from tilewright.core.errors import ExecutionError, TypeCheckError
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.control.bind_dim import BindDimAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.tensor.slicing import SliceAttrs
from tilewright.passes.canonicalize.dce import dce
from tilewright.runtime.cpu.executable import Executable

N, L = Var("N"), Var("L")


def picking(bound: Expr = N) -> Graph:
    """Where a mask is true, and what of `x` stands there."""
    g = GraphBuilder("g")
    mask, x = g.input("mask", tensor(BOOL, N)), g.input("x", tensor(F32, N))
    positions, count = g.add_many("flatnonzero", mask)
    g.add("bind_dim", count, attrs=BindDimAttrs("L", bound))
    where = g.add("slice", positions, attrs=SliceAttrs((const(0),), (L,), (1,), inside=True))
    return g.graph(where, g.add("exp", g.add("gather", x, where)))


@pytest.fixture(scope="module")
def native_picking() -> Iterator[Executable]:
    with compile(picking(), threads=2, cache=False) as model:
        yield model


@for_each("size", [0, 1, 7, 100])
@for_each("share", [0.0, 0.4, 1.0])
def test_positions_and_what_stands_there(
    native_picking: Executable, size: int, share: float
) -> None:
    rng = np.random.default_rng(size)
    mask = rng.random(size) < share
    x = rng.standard_normal(size).astype(np.float32)
    graph = picking()
    where, values = run_graph(graph, {"mask": mask, "x": x}).values()
    np.testing.assert_array_equal(where, np.flatnonzero(mask))
    np.testing.assert_allclose(values, np.exp(x[mask]), rtol=1e-6)
    compare(graph, native_picking, {"mask": mask, "x": x})


def test_more_than_was_planned_for() -> None:
    graph = picking(bound=const(2))
    given = {"mask": np.ones(3, np.bool_), "x": np.ones(3, np.float32)}
    with pytest.raises(ExecutionError, match="size L is 3, at most 2"):
        run_graph(graph, given)
    with check_native(graph, {k: v[:2] for k, v in given.items()}) as model:
        with pytest.raises(ExecutionError, match="size L is more than 2"):
            model(**given)


def test_a_size_stays_though_nobody_reads_its_number() -> None:
    graph = picking()
    assert [n.op for n in dce(graph, ON_CPU).nodes][:2] == ["flatnonzero", "bind_dim"]


def test_types() -> None:
    g = GraphBuilder("g")
    with pytest.raises(TypeCheckError, match="not one number"):
        g.add("bind_dim", g.input("n", tensor(I64, 2)), attrs=BindDimAttrs("L", N))
