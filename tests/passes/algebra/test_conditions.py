from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.arith.expr import Var
from tilewright.core.dtypes import (
    BF16,
    BOOL,
    F8E4M3FN,
    F8E8M0,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    INT4,
    U8,
    UINT4,
)
from tilewright.ir.types import tensor
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.reduction.norm import LayerNormAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.passes.algebra import conditions as ask

X = tensor(F32, Var("N"), 3, 4)


def f32(*values: float) -> np.ndarray:
    return np.float32(values)


def test_constants_that_come_together():
    assert ask.joins(np.ones((3, 1)), np.ones((3, 4)))
    assert not ask.joins(np.ones((3, 1)), np.ones(4))
    assert ask.multiplies(f32(1e20), f32(1e10))
    assert not ask.multiplies(f32(1e30), f32(1e30))
    assert not ask.multiplies(f32(1e-30), f32(1e-30))
    assert not ask.multiplies(f32(0.0), f32(3.0))  # the zero may come of what underflowed
    assert ask.multiplies(np.array([1 << 30]), np.array([1 << 40]))  # integers wrap alike
    assert not ask.sums(f32(3e38), f32(3e38))


@for_each(("value", "exact"), [(8, True), (-0.25, True), (3, False), (0, False), (2.0**20, False)])
def test_powers_of_two(value, exact):
    assert ask.powers_of_two(f32(1, value)) == exact


def test_intervals():
    assert ask.interval(f32(-1), f32(2))
    assert not ask.interval(f32(2), f32(-1))
    assert not ask.interval(f32(np.nan), f32(2))
    assert not ask.interval(f32(0, 1), f32(2))
    assert ask.overlap(f32(-1), f32(2), f32(0), f32(6))
    assert not ask.overlap(f32(-1), f32(2), f32(3), f32(6))


@for_each(
    ("axes", "keepdims", "found"),
    [
        ((2,), True, True),
        ((-1,), True, True),
        ((1, 2), True, True),
        ((1,), True, False),
        ((2,), False, False),
        ((), True, False),
    ],
)
def test_rows(axes, keepdims, found):
    assert ask.rows(X, ReduceAttrs(axes, keepdims)) == found


def test_rows_of_several_reductions_are_the_same():
    assert ask.rows(X, ReduceAttrs((2,)), ReduceAttrs((-1,)))
    assert not ask.rows(X, ReduceAttrs((2,)), ReduceAttrs((1, 2)))


@for_each(
    ("shape", "axis", "found"),
    [
        ((4,), -1, True),
        ((1, 1, 4), -1, True),
        ((3, 4), 1, True),
        ((1,), -1, True),
        ((), -1, True),
        ((3, 4), -1, False),
        ((5,), -1, False),
        ((1, 1, 1, 4), -1, False),
    ],
)
def test_parameters_that_fit_a_norm(shape, axis, found):
    assert ask.fits(X, np.ones(shape), LayerNormAttrs(axis)) == found
    assert not ask.fits_plain(X, np.ones(shape), LayerNormAttrs(axis, stats=True))


def test_axes_put_back():
    shape = tensor(F32, Var("N"), 1, 4).shape
    assert ask.keeps_rank(X, ReduceAttrs((1,), False), ReshapeAttrs(shape))
    assert not ask.keeps_rank(X, ReduceAttrs((2,), False), ReshapeAttrs(shape))
    assert not ask.keeps_rank(X, ReduceAttrs((1,), True), ReshapeAttrs(shape))


def test_counts_of_what_is_reduced():
    assert ask.counts(X, ReduceAttrs((1, 2)), f32(12))
    assert not ask.counts(X, ReduceAttrs((0,)), f32(12))
    assert ask.halves(X, ReduceAttrs((2,)), f32(0.25))
    assert not ask.halves(X, ReduceAttrs((1,)), f32(1 / 3))


@for_each(
    ("source", "middle", "target", "direct"),
    [
        (F16, F32, BF16, True),
        (U8, I32, F16, True),
        (I32, F64, F32, True),
        (BOOL, F16, I32, True),
        (F8E4M3FN, F32, F16, True),
        (I8, F32, F8E4M3FN, True),
        (F32, F16, F64, False),
        (BF16, F16, F32, False),
        (I32, BOOL, I32, False),
        (F8E8M0, F16, F32, False),
        (I8, F32, U8, False),  # floats saturate, integers wrap
        (INT4, F32, UINT4, False),
        (INT4, F32, I64, True),
    ],
)
def test_casts_that_lose_nothing(source, middle, target, direct):
    assert ask.widens(tensor(source, 3), CastAttrs(middle), CastAttrs(target)) == direct
