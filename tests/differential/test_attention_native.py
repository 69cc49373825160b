"""Attention as machine code, against the interpreter of the operators it is spelt with."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ci_sample import one_in
from tests.differential.native import (
    assert_same_on_threads,
    check_native,
    compare,
    random_inputs,
)
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, F64, DType
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.softmax import FULLY_MASKED, SoftmaxAttrs

SCALE = 8
TURN = make_attrs("transpose", {"perm": (0, 2, 1, 3)})


def _spelt(
    dims: tuple[object, object, object],
    size: int = 16,
    mask: str = "",
    fully_masked: str = "nan",
    dtype: DType = F32,
) -> Graph:
    """Operands `[batch, length, heads, size]`; the mask is added (one a key, or one number), or
    hides what comes later.
    """
    batch, queries, keys = dims
    g = GraphBuilder("f")
    q = g.add("transpose", g.input("q", tensor(dtype, batch, queries, 3, size)), attrs=TURN)
    k = g.input("k", tensor(dtype, batch, keys, 3, size))
    k = g.add("transpose", k, attrs=make_attrs("transpose", {"perm": (0, 2, 3, 1)}))
    v = g.add("transpose", g.input("v", tensor(dtype, batch, keys, 3, size)), attrs=TURN)
    scores = g.add("mul", g.add("matmul", q, k), g.constant(np.asarray(0.25, dtype.numpy)))
    if mask == "added":
        scores = g.add("add", scores, g.input("m", tensor(dtype, batch, 1, 1, keys)))
    elif mask == "later":
        later = np.triu(np.full((queries, keys), -np.inf, dtype.numpy), 1)
        scores = g.add("add", scores, g.constant(later))
    elif mask == "number":
        scores = g.add("add", scores, g.input("m", tensor(dtype)))
    y = g.add("matmul", g.add("softmax", scores, attrs=SoftmaxAttrs(-1, fully_masked)), v)
    return g.graph(g.add("transpose", y, attrs=TURN))


@pytest.mark.parametrize("mask", ["", "added", "later"])
@pytest.mark.parametrize(
    "dims",
    one_in(
        2,
        [(1, 1, 1), (1, 1, 37), (2, 5, 17), (1, 50, 50), (1, 33, 600), (1, 9, 513), (2, 200, 300)],
    ),
)
def test_fixed_lengths(dims: tuple[int, int, int], mask: str) -> None:
    graph = _spelt(dims, mask=mask)
    inputs = random_inputs(graph)
    with check_native(graph, inputs, scale=SCALE) as model:
        assert_same_on_threads(model, inputs, 2, 3)


@pytest.mark.parametrize("mask", ["", "added", "number"])
def test_one_kernel_for_all_lengths(mask: str) -> None:
    graph = _spelt((Var("B"), Var("I"), Var("J")), mask=mask)
    with compile(graph, threads=1, cache=False) as model:
        for sizes in [(1, 1, 1), (2, 7, 16), (1, 16, 64), (3, 17, 65), (1, 40, 200), (0, 3, 3)]:
            inputs = random_inputs(graph, dict(zip("BIJ", sizes, strict=True)))
            compare(graph, model, inputs, SCALE)
            assert_same_on_threads(model, inputs, 2)
            model.set_threads(1)


@pytest.mark.parametrize("fully_masked", FULLY_MASKED)
@pytest.mark.parametrize("keys", [12, 530])
def test_rows_that_see_nothing(fully_masked: str, keys: int) -> None:
    graph = _spelt((3, 9, keys), mask="added", fully_masked=fully_masked)
    inputs = random_inputs(graph)
    inputs["m"][0], inputs["m"][1, ..., 2:] = -np.inf, -np.inf
    inputs["m"][2, ..., 1] = np.nan
    with np.errstate(all="ignore"):
        check_native(graph, inputs, scale=SCALE).close()


def test_doubles_and_odd_sizes() -> None:
    graph = _spelt((1, 21, 19), size=5, dtype=F64)
    check_native(graph, random_inputs(graph), scale=SCALE).close()
    graph = _spelt((1, 21, 19), size=7)
    check_native(graph, random_inputs(graph), scale=SCALE).close()
