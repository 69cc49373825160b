"""Pooling against loops over windows, in both layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.conv.pool import AveragePoolAttrs, LpPoolAttrs, PoolAttrs, PoolIndicesAttrs
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(6)

# Input shape, kernel, strides, pads, dilations, ceil.
CASES = {
    "plain": ((2, 3, 6, 8), (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False),
    "odd": ((1, 2, 7, 9), (3, 2), (2, 3), (1, 0, 1, 1), (1, 1), False),
    "dilated": ((1, 2, 9, 8), (2, 3), (1, 2), (1, 2, 1, 1), (3, 2), False),
    "ceil": ((1, 2, 7, 6), (2, 3), (2, 2), (0, 0, 0, 0), (1, 1), True),
    "ceil with pads": ((1, 2, 8, 7), (3, 3), (2, 3), (1, 1, 1, 1), (1, 1), True),
    "ceil dilated": ((1, 1, 9, 10), (2, 3), (3, 2), (0, 2, 1, 0), (3, 2), True),
    "1d": ((2, 3, 11), (4,), (3,), (1, 2), (1,), True),
    "3d": ((1, 2, 4, 5, 3), (2, 3, 2), (2, 1, 1), (1, 1, 0, 0, 1, 1), (1, 1, 1), False),
}

Window = Callable[[np.ndarray, np.ndarray, int], float]


def pool_loops(x: np.ndarray, a: PoolAttrs, of: Window) -> np.ndarray:
    """`of(elements in the input, elements in input or padding, taps)` for each window of NCHW."""
    sizes = []
    for axis, n in enumerate(x.shape[2:]):
        reach = (a.kernel[axis] - 1) * a.dilations[axis] + 1
        room = n + a.before[axis] + a.after[axis] - reach
        count = (-(-room // a.strides[axis]) if a.ceil else room // a.strides[axis]) + 1
        while a.ceil and (count - 1) * a.strides[axis] >= n + a.before[axis]:
            count -= 1
        sizes.append(count)
    y = np.zeros((*x.shape[:2], *sizes))
    for n, c, *where in product(range(x.shape[0]), range(x.shape[1]), *map(range, sizes)):
        inside, padded = [], []
        for taps in product(*map(range, a.kernel)):
            at = [
                p * s + k * d - b
                for p, s, k, d, b in zip(where, a.strides, taps, a.dilations, a.before, strict=True)
            ]
            if all(0 <= t < size for t, size in zip(at, x.shape[2:], strict=True)):
                inside.append(float(x[(n, c, *at)]))
            if all(t < m + e for t, m, e in zip(at, x.shape[2:], a.after, strict=True)):
                padded.append(taps)
        y[(n, c, *where)] = of(np.array(inside), np.array(padded), len(a.kernel))
    return y


def in_layout(x: np.ndarray, layout: str) -> np.ndarray:
    return x if layout == "channels_first" else np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.fixture(params=["channels_first", "channels_last"])
def layout(request: pytest.FixtureRequest) -> str:
    return request.param


def unpack(case: tuple, layout: str) -> tuple[np.ndarray, dict]:
    shape, kernel, strides, pads, dilations, ceil = case
    x = RNG.standard_normal(shape).astype(np.float32)
    fields = {"strides": strides, "pads": pads, "dilations": dilations}
    return x, {**fields, "kernel": kernel, "ceil": ceil, "layout": layout}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_max_pool(case: tuple, layout: str) -> None:
    x, window = unpack(case, layout)
    x -= 5  # below zero, so that padding with zero would show
    attrs = PoolAttrs(**window)
    found = run_op("max_pool", in_layout(x, layout), attrs=attrs)
    expected = pool_loops(x, attrs, lambda inside, *_: inside.max())
    np.testing.assert_array_equal(found, in_layout(expected, layout))


@pytest.mark.parametrize("count_pads", [False, True])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_average_pool(case: tuple, layout: str, count_pads: bool) -> None:
    x, window = unpack(case, layout)
    attrs = AveragePoolAttrs(**window, count_pads=count_pads)
    found = run_op("average_pool", in_layout(x, layout), attrs=attrs)
    expected = pool_loops(
        x, attrs, lambda inside, padded, _: inside.sum() / len(padded if count_pads else inside)
    )
    np.testing.assert_allclose(found, in_layout(expected, layout), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("case", ["plain", "odd", "ceil with pads", "3d"])
def test_lp_pool(case: str, p: int, layout: str) -> None:
    x, window = unpack(CASES[case], layout)
    attrs = LpPoolAttrs(**window, p=p)
    found = run_op("lp_pool", in_layout(x, layout), attrs=attrs)
    expected = pool_loops(x, attrs, lambda inside, *_: (np.abs(inside) ** p).sum() ** (1 / p))
    np.testing.assert_allclose(found, in_layout(expected, layout), rtol=1e-5, atol=1e-6)


@for_each("column_major", [False, True])
@for_each("case", CASES.values(), ids=CASES)
def test_max_pool_indices(case: tuple, column_major: bool) -> None:
    x, window = unpack(case, "channels_first")
    x = np.round(x)  # equal elements: the first one counts
    y = run_op("max_pool", x, attrs=PoolAttrs(**window))
    attrs = PoolIndicesAttrs(**window, column_major=column_major)
    found = run_op("max_pool_indices", x, attrs=attrs)
    last = replace(attrs, layout="channels_last")
    turned = run_op("max_pool_indices", in_layout(x, "channels_last"), attrs=last)
    np.testing.assert_array_equal(turned, in_layout(found, "channels_last"))
    # Turned to column-major order, the positions look up the same values.
    flat = np.moveaxis(x, range(2, x.ndim), range(x.ndim - 1, 1, -1)) if column_major else x
    np.testing.assert_array_equal(flat.reshape(-1)[found], y)
    if not column_major:
        rows = x.reshape(x.shape[0] * x.shape[1], -1)
        for value, index in zip(y.reshape(-1), found.reshape(-1), strict=True):
            row, at = divmod(index, rows.shape[1])
            assert rows[row, at] == value


def test_first_of_equal_maxima() -> None:
    x = np.zeros((1, 2, 4), np.float32)
    attrs = {"strides": (2,), "pads": (0, 0), "dilations": (1,), "kernel": (2,)}
    found = run_op("max_pool_indices", x, attrs=PoolIndicesAttrs(**attrs))
    np.testing.assert_array_equal(found, [[[0, 2], [4, 6]]])


@for_each("dtype", [np.int8, np.uint8, np.float16, np.float64])
def test_max_pool_types(dtype: type) -> None:
    x = np.array([[[-7, -3, -9, -1]]]).astype(dtype)
    attrs = PoolAttrs((2,), (1, 1), (1,), kernel=(2,))
    found = run_op("max_pool", x, attrs=attrs)
    np.testing.assert_array_equal(found, np.array([[[-7, max(x[0, 0, 1:3]), -1]]]).astype(dtype))


def test_narrow_averages_are_summed_wide() -> None:
    x = np.full((1, 1, 4096), 30, np.float16)
    attrs = AveragePoolAttrs((1,), (0, 0), (1,), kernel=(4096,))
    np.testing.assert_array_equal(run_op("average_pool", x, attrs=attrs), [[[30]]])


@for_each("ceil", [False, True])
def test_symbolic_sizes(ceil: bool) -> None:
    x = RNG.standard_normal((2, 3, 8, 7)).astype(np.float32)
    fields = {"strides": (2, 3), "pads": (1, 1, 0, 1), "dilations": (1, 1), "kernel": (3, 2)}
    for op, attrs in (
        ("max_pool", PoolAttrs(**fields, ceil=ceil)),
        ("average_pool", AveragePoolAttrs(**fields, ceil=ceil)),
    ):
        found = run_op(op, x, attrs=attrs, dims=[("N", "C", "H", "W")])
        np.testing.assert_array_equal(found, run_op(op, x, attrs=attrs))


def test_special_values() -> None:
    x = np.array([[[-np.inf, -np.inf, np.inf, np.nan]]], np.float32)
    attrs = PoolAttrs((1,), (0, 0), (1,), kernel=(2,))
    found = run_op("max_pool", x, attrs=attrs)
    np.testing.assert_array_equal(found, [[[-np.inf, np.inf, np.nan]]])
    average = AveragePoolAttrs((1,), (0, 0), (1,), kernel=(2,))
    np.testing.assert_array_equal(
        run_op("average_pool", x, attrs=average), [[[-np.inf, np.nan, np.nan]]]
    )


def test_types() -> None:
    attrs = PoolAttrs((2, 2), (1, 1, 1, 1), (1, 1), kernel=(3, 3))
    out = get_op("max_pool").infer(attrs, [tensor(F32, Var("N"), 64, 112, 112)])
    assert out == tensor(F32, Var("N"), 64, 56, 56)
    assert as_int(get_op("max_pool").cost(attrs, [out], [tensor(F32, 1, 2, 2, 2)])) == 8 * 9
    with pytest.raises(TypeCheckError, match="do not fit"):
        get_op("max_pool").infer(attrs, [tensor(F32, 1, 2, 5)])


def test_a_window_far_larger_than_the_image() -> None:
    """Some exporters write global pooling so; only the taps that reach the image are computed."""
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    attrs = AveragePoolAttrs((1000, 1000), (0, 0, 0, 0), (1, 1), kernel=(1000, 1000), ceil=True)
    np.testing.assert_allclose(
        run_op("average_pool", x, attrs=attrs), x.mean(axis=(2, 3), keepdims=True)
    )
    types = [tensor(F32, *x.shape), tensor(F32, 1, 2, 1, 1)]
    assert as_int(get_op("average_pool").cost(attrs, types[:1], types[1:])) == 24
