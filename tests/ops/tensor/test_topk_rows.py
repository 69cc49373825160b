from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.gpu_ops import by_threads, graph_of, interpreted
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import BF16, F16, F32, F64, I8, I32, I64, U8, U64, DType
from tilewright.core.errors import TypeCheckError
from tilewright.ops.interpret import run_graph
from tilewright.ops.tensor.topk import TopKAttrs
from tilewright.ops.tensor.topk_rows import TopKRowsAttrs

RNG = np.random.default_rng(3)
PLANS = {
    "a row a warp": ((3, 15), TopKRowsAttrs(4, 4, 2, 4, 1)),
    "fewer lanes than wanted": ((3, 16), TopKRowsAttrs(5, 4, 2, 2, 2)),
    "as many as there are": ((2, 16), TopKRowsAttrs(16, 8, 1, 1, 2)),
    "groups of lanes": ((2, 600), TopKRowsAttrs(3, 128, 1, 5, 1)),
    "several rows, too many candidates": ((3, 300), TopKRowsAttrs(2, 8, 4, 38, 1)),
    "one of one": ((2, 1), TopKRowsAttrs(1, 2, 1, 1, 1)),
    "fewer elements than lanes": ((2, 33), TopKRowsAttrs(20, 64, 1, 1, 1)),
    "more lanes than vectors": ((2, 66), TopKRowsAttrs(30, 64, 1, 1, 2)),
}


def _values(shape: tuple[int, ...], dtype: DType, how: str) -> np.ndarray:
    """Numbers of which few, many, or all are equal, and such that are none."""
    if how == "different":
        return (RNG.permutation(np.prod(shape)).reshape(shape) % 120).astype(dtype.numpy)
    x = RNG.integers(0, 1 if how == "equal" else 3, shape).astype(dtype.numpy)
    if how == "not finite" and dtype.is_float:
        flat = x.ravel()
        for n, value in enumerate((np.nan, -np.inf, np.inf, -0.0, -1.0)):
            flat[n :: n + 3] = value
    return x


def _expected(x: np.ndarray, attrs: TopKRowsAttrs, dtype: DType) -> list[np.ndarray]:
    """What the operator without threads finds."""
    graph = graph_of("topk", TopKAttrs(const(attrs.k), 1, attrs.largest), dtype, *x.shape)
    found = run_graph(graph, {"x": x})
    return [found[name] for name in graph.outputs]


@for_each("largest", [True, False])
@for_each("how", ["different", "few", "equal", "not finite"])
@for_each("name", list(PLANS))
def test_as_by_insertion(name: str, how: str, largest: bool) -> None:
    shape, plan = PLANS[name]
    attrs = TopKRowsAttrs(plan.k, plan.lanes, plan.rows, plan.steps, plan.width, largest)
    x = _values(shape, F32, how)
    found = interpreted("topk_rows", attrs, x, F32)
    for y, right in zip(found, _expected(x, attrs, F32), strict=True):
        np.testing.assert_array_equal(y.astype(np.float64), right.astype(np.float64))


@for_each("largest", [True, False])
@for_each("dtype", [F16, BF16, F64, I8, U8, I32, I64, U64])
def test_types(dtype: DType, largest: bool) -> None:
    attrs = TopKRowsAttrs(3, 4, 2, 8, 5, largest)
    for how in ("different", "few", "equal", "not finite"):
        x = _values((3, 150), dtype, how)
        if dtype.is_integer:
            ends = np.iinfo(dtype.numpy)
            x[1, ::7], x[1, 1::7] = ends.min, ends.max
        found = interpreted("topk_rows", attrs, x, dtype)
        for y, right in zip(found, _expected(x, attrs, dtype), strict=True):
            np.testing.assert_array_equal(y.astype(np.float64), right.astype(np.float64))


def test_the_least_integer_is_no_padding() -> None:
    x = np.full((2, 150), np.iinfo(np.int32).min, np.int32)
    x[1] = np.iinfo(np.int32).max
    for largest in (True, False):
        found = interpreted("topk_rows", TopKRowsAttrs(4, 4, 2, 40, 1, largest), x, I32)
        np.testing.assert_array_equal(found[1], np.tile(np.arange(4), (2, 1)))


def test_parts_of_rows() -> None:
    x = _values((3, 30), F32, "few")
    attrs = TopKRowsAttrs(2, 4, 2, 2, 2, True, part=14)  # the last one has two
    values, indices = interpreted("topk_rows", attrs, x, F32)
    assert values.shape == (9, 2)
    for n in range(9):
        row, first = x[n // 3], n % 3 * 14
        order = np.argsort(-row[first : first + 14], kind="stable")[:2] + first
        np.testing.assert_array_equal(indices[n], order)
        np.testing.assert_array_equal(values[n], row[order])


@pytest.mark.parametrize(
    ("shape", "plan", "dtype"),
    [
        ((3, 15), TopKRowsAttrs(4, 4, 2, 4, 1), F16),
        ((1, 300), TopKRowsAttrs(3, 64, 1, 5, 1), F32),
        ((3, 300), TopKRowsAttrs(2, 8, 4, 38, 1, False), I8),
        ((2, 60), TopKRowsAttrs(3, 8, 2, 2, 2, part=30), I64),
    ],
)
def test_threads_of_a_block(shape: tuple[int, int], plan: TopKRowsAttrs, dtype: DType) -> None:
    for how in ("different", "few"):
        x = _values(shape, dtype, how)
        right = interpreted("topk_rows", plan, x, dtype)
        for y, expected in zip(by_threads("topk_rows", plan, x, dtype), right, strict=True):
            np.testing.assert_array_equal(y, expected)


@for_each(
    ("shape", "plan"),
    [
        ((3,), TopKRowsAttrs(1, 4, 1, 1, 1)),
        ((3, Var("N")), TopKRowsAttrs(1, 4, 1, 1, 1)),
        ((3, 9), TopKRowsAttrs(1, 4, 1, 2, 1)),  # more than the lanes hold
        ((3, 9), TopKRowsAttrs(0, 4, 1, 3, 1)),
        ((3, 9), TopKRowsAttrs(1, 4, 1, 2, 2)),
        ((3, 9), TopKRowsAttrs(2, 4, 1, 1, 1, part=4)),  # the last part has one
    ],
)
def test_refusals(shape: tuple[object, ...], plan: TopKRowsAttrs) -> None:
    with pytest.raises(TypeCheckError):
        graph_of("topk_rows", plan, F32, *shape)
