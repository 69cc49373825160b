"""Running sums and products against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.registry import get_op


def _reference(x: np.ndarray, attrs: ScanAttrs, product: bool) -> np.ndarray:
    axis = attrs.axis
    x = np.flip(x, axis) if attrs.reverse else x
    if attrs.exclusive:
        start = np.full_like(np.take(x, [0], axis), 1 if product else 0)
        x = np.concatenate([start, np.delete(x, -1, axis)], axis)
    run = np.cumprod if product else np.cumsum
    found = run(x, axis=axis, dtype=x.dtype)
    return np.flip(found, axis) if attrs.reverse else found


@for_each("exclusive", [False, True])
@for_each("reverse", [False, True])
@for_each("axis", [0, 1, -1])
@for_each("dtype", ["float32", "int32", "float64"])
def test_against_numpy(dtype: str, axis: int, reverse: bool, exclusive: bool) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (2, 5, 3)).astype(dtype)
    attrs = ScanAttrs(axis, exclusive, reverse)
    for op, product in (("cumsum", False), ("cumprod", True)):
        found = run_op(op, x, attrs=attrs, dims=[("N", 5, "M")])
        np.testing.assert_array_equal(found, _reference(x, attrs, product))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("symbolic", [False, True])
def test_many_lines_natively(axis: int, symbolic: bool) -> None:
    g = GraphBuilder("f")
    last = Var("N") if symbolic else 37
    x = g.input("x", tensor(F32, 5, 6, last))
    ys = [g.add("cumsum", x, attrs=ScanAttrs(axis, e, r)) for e in (0, 1) for r in (0, 1)]
    ys.append(g.add("cumlogsumexp", x, attrs=ScanAttrs(axis)))
    graph = g.graph(*ys)
    for n in (37, 16, 1) if symbolic else (37,):
        check_native(graph, random_inputs(graph, {"N": n}))


@for_each("reverse", [False, True])
@for_each("exclusive", [False, True])
@for_each("dtype", ["float32", "float64"])
def test_logarithms_of_sums_against_numpy(dtype: str, exclusive: bool, reverse: bool) -> None:
    x = np.random.default_rng(1).normal(0, 30, (4, 9)).astype(dtype)
    x[0, 3], x[1, :2], x[2, 4:6], x[3, :] = np.nan, -np.inf, np.inf, -np.inf
    run = np.flip(x, 1) if reverse else x
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp.accumulate(run, axis=1)
    if exclusive:
        first = np.full((4, 1), -np.inf, dtype)
        expected = np.concatenate([first, expected[:, :-1]], 1)
    found = run_op("cumlogsumexp", x, attrs=ScanAttrs(1, exclusive, reverse))
    right = np.flip(expected, 1) if reverse else expected
    np.testing.assert_allclose(found, right, rtol=1e-6)


def test_one_line_and_empty() -> None:
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run_op("cumsum", x, attrs=ScanAttrs(0)), np.cumsum(x))
    empty = np.ones((0, 3), np.float32)
    assert run_op("cumsum", empty, attrs=ScanAttrs(0)).shape == (0, 3)


def test_loops_are_well_formed() -> None:
    loops = get_op("cumsum").loops
    assert loops is not None
    type = tensor(F32, 4, 7, 2)
    verify_func(loops(ScanAttrs(1, exclusive=True, reverse=True), [type], [type]))


def test_type_errors() -> None:
    with pytest.raises(TypeCheckError, match="axis 1 is outside"):
        run_op("cumsum", np.ones(3, np.float32), attrs=ScanAttrs(1))
    with pytest.raises(TypeCheckError, match="no axis"):
        run_op("cumsum", np.ones((), np.float32), attrs=ScanAttrs(0))
    with pytest.raises(TypeCheckError, match="is not defined on i64"):
        run_op("cumlogsumexp", np.ones(3, np.int64), attrs=ScanAttrs(0))
