from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.gpu_ops import by_threads, graph_of, interpreted
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BF16, F16, F32, F64, I8, I32, I64, DType
from tilewright.core.errors import TypeCheckError
from tilewright.ops.interpret import run_graph
from tilewright.ops.reduction.cumsum_rows import CumsumRowsAttrs


def _expected(x: np.ndarray, attrs: CumsumRowsAttrs) -> np.ndarray:
    x = x.astype(np.float64)
    x = x[:, ::-1] if attrs.reverse else x
    found = np.cumsum(x, 1) - (x if attrs.exclusive else 0)
    return found[:, ::-1] if attrs.reverse else found


@for_each("exclusive", [False, True])
@for_each("reverse", [False, True])
@for_each(
    ("shape", "plan"),
    [
        ((3, 16), (4, 2, 2, 2)),
        ((3, 15), (4, 4, 2, 2 - 1)),  # a lane too many
        ((2, 131), (64, 1, 3, 1)),  # several warps
        ((5, 37), (2, 8, 1, 1)),  # many parts of a row
        ((2, 300), (64, 1, 2, 2)),  # several warps, parts
        ((1, 1), (2, 1, 1, 1)),
    ],
)
def test_against_numpy(
    shape: tuple[int, int], plan: tuple[int, ...], reverse: bool, exclusive: bool
) -> None:
    attrs = CumsumRowsAttrs(*plan, exclusive, reverse)
    x = np.random.default_rng(3).integers(-5, 5, shape).astype(np.float32)
    (found,) = interpreted("cumsum_rows", attrs, x, F32)
    np.testing.assert_array_equal(found, _expected(x, attrs))


@pytest.mark.parametrize(
    ("shape", "plan", "dtype"),
    [
        ((3, 20), (4, 2, 2, 4), F16),
        ((2, 131), (64, 1, 2, 1), I64),  # several warps, parts
        ((3, 30), (8, 4, 2, 2), I8),
        ((1, 250), (64, 1, 2, 2), F64),
    ],
)
def test_threads_of_a_block(shape: tuple[int, int], plan: tuple[int, ...], dtype: DType) -> None:
    attrs = CumsumRowsAttrs(*plan)
    x = np.random.default_rng(3).integers(-5, 5, shape).astype(dtype.numpy)
    right = _expected(x, attrs).astype(dtype.numpy)
    (found,) = by_threads("cumsum_rows", attrs, x, dtype)
    np.testing.assert_array_equal(found, right)


@for_each("dtype", [F16, BF16])
def test_narrow_floats_are_rounded_once(dtype: DType) -> None:
    x = np.full((1, 1024), 1.0, dtype.numpy)  # in bf16 itself, 256 + 1 is 256
    x[:, ::2] = 1.0 / 64
    (found,) = interpreted("cumsum_rows", CumsumRowsAttrs(32, 1, 4, 8), x, dtype)
    right = np.cumsum(x.astype(np.float32), 1).astype(dtype.numpy)
    np.testing.assert_array_equal(found, right)


def test_numbers_that_are_not_finite_spoil_only_what_follows() -> None:
    x = np.ones((2, 96), np.float32)
    x[0, 40], x[0, 70], x[1, 9] = np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        (found,) = interpreted("cumsum_rows", CumsumRowsAttrs(64, 1, 2, 1), x, F32)
        np.testing.assert_array_equal(found, np.cumsum(x, 1))


def test_sizes_that_are_not_known() -> None:
    graph = graph_of("cumsum_rows", CumsumRowsAttrs(4, 2, 2, 1), I32, Var("M"), Var("N"))
    for shape in ((3, 19), (1, 1), (4, 8), (0, 5)):
        x = np.random.default_rng(3).integers(-5, 5, shape).astype(np.int32)
        (found,) = run_graph(graph, {"x": x}).values()
        np.testing.assert_array_equal(found, np.cumsum(x, 1))


@for_each(("shape", "width"), [((3,), 1), ((3, 5), 2), ((2, Var("N")), 4)])
def test_refusals(shape: tuple[object, ...], width: int) -> None:
    with pytest.raises(TypeCheckError, match="rows"):
        graph_of("cumsum_rows", CumsumRowsAttrs(4, 1, 1, width), F32, *shape)
