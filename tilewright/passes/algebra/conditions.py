"""Conditions of algebraic rules, and the attributes of their results.

Constants come as arrays, other values as types, captured attributes as they are.
"""

from __future__ import annotations

from dataclasses import replace
from math import isclose, prod

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.arith.rules import passes_through
from tilewright.ir.scalar_semantics import quiet
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.activation import AlphaAttrs, HardSigmoidAttrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.reduction.norm import LayerNormAttrs, RmsNormAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs


def joins(c: np.ndarray, d: np.ndarray) -> bool:
    """Two constants may become one: it is no larger than the larger of them."""
    return bool(np.broadcast(c, d).size <= max(c.size, d.size))


def multiplies(c: np.ndarray, d: np.ndarray) -> bool:
    """The product of two constants is an ordinary number wherever it is one."""
    if not joins(c, d) or c.dtype.kind in "iu":
        return joins(c, d)
    with quiet():
        both = np.abs(c * d)
    return bool((np.isfinite(both) & (both >= _least(c.dtype))).all())


def _least(dtype: np.dtype) -> float:
    """A number that is not subnormal in any float type, or the least of a narrow one."""
    return 2.0**-14 if dtype == np.float16 else 2.0**-126


def sums(c: np.ndarray, d: np.ndarray) -> bool:
    """The sum of two constants does not overflow."""
    if not joins(c, d) or c.dtype.kind in "iu":
        return joins(c, d)
    with quiet():
        return bool(np.isfinite(c + d).all())


def powers_of_two(c: np.ndarray) -> bool:
    """Every element is a power of two whose reciprocal is an ordinary number of any float type."""
    mantissa, exponent = np.frexp(c.astype(np.float64))
    return bool((np.abs(mantissa) == 0.5).all() and (np.abs(exponent - 1) <= 14).all())


def scalar(c: np.ndarray) -> bool:
    """One number."""
    return bool(c.size == 1)


def interval(c: np.ndarray, d: np.ndarray) -> bool:
    """Two numbers of which the first is not the greater."""
    return bool(c.size == 1 == d.size and c.reshape(-1)[0] <= d.reshape(-1)[0])


def positive(c: np.ndarray) -> bool:
    """A number that is zero or more."""
    return bool(c.size == 1 and c.reshape(-1)[0] >= 0)


def above_zero(d: np.ndarray) -> bool:
    """An upper limit that is zero or more."""
    return positive(d)


def overlap(c: np.ndarray, d: np.ndarray, e: np.ndarray, f: np.ndarray) -> bool:
    """Two intervals that share a number: clipping to both is clipping to what they share."""
    if not interval(c, d) or not interval(e, f):
        return False
    return bool(max(c.max(), e.max()) <= min(d.min(), f.min()))


def rows(x: TensorType, *reductions: ReduceAttrs) -> bool:
    """Reductions over the same last axes of `x`, which stay as ones."""
    axes = {tuple(sorted(i % x.rank for i in r.axes)) for r in reductions}
    last = tuple(range(x.rank - len(reductions[0].axes), x.rank))
    return axes == {last} != {()} and all(r.keepdims for r in reductions)


def one_axis(x: TensorType, a: ReduceAttrs, b: ReduceAttrs) -> bool:
    """Two reductions over the same single axis, which stays as a one."""
    same = [i % x.rank for i in a.axes] == [i % x.rank for i in b.axes]
    return same and len(a.axes) == 1 and a.keepdims and b.keepdims


def norm_rows(x: TensorType, a: ReduceAttrs, b: ReduceAttrs, e: np.ndarray) -> bool:
    """Mean and variance of the same rows, and a number added to the latter."""
    return rows(x, a, b) and scalar(e)


def square_rows(x: TensorType, a: ReduceAttrs, e: np.ndarray) -> bool:
    """The mean square of rows, and a number added to it."""
    return rows(x, a) and scalar(e)


def fits(x: TensorType, c: np.ndarray, a: LayerNormAttrs | RmsNormAttrs) -> bool:
    """A constant with one element for each position along the axes that are normalized."""
    tail = x.shape[a.axis % x.rank :]
    extra = c.ndim - len(tail)
    ours = c.shape[max(extra, 0) :] if extra >= 0 else (1,) * -extra + c.shape
    same = all(n in (1, as_int(s)) for n, s in zip(ours, tail, strict=True))
    return same and c.ndim <= x.rank and all(n == 1 for n in c.shape[: max(extra, 0)])


def fits_plain(x: TensorType, c: np.ndarray, a: LayerNormAttrs) -> bool:
    """`fits` for a norm whose statistics nobody asks for."""
    return not a.stats and fits(x, c, a)


def keeps_rank(x: TensorType, a: ReduceAttrs, b: ReshapeAttrs) -> bool:
    """The reshape puts back as ones the axes that were reduced."""
    if a.keepdims or len(b.shape) != x.rank:
        return False
    axes = {i % x.rank for i in a.axes}
    kept = [const(1) if i in axes else s for i, s in enumerate(x.shape)]
    return kept == list(b.shape)


def counts(x: TensorType, a: ReduceAttrs, c: np.ndarray) -> bool:
    """A constant is the number of elements that are reduced."""
    return scalar(c) and float(c.reshape(-1)[0]) == _count(x, a)


def halves(x: TensorType, a: ReduceAttrs, c: np.ndarray) -> bool:
    """A constant is one over the number of elements that are reduced, a power of two."""
    count = _count(x, a)
    exact = count > 0 and powers_of_two(np.asarray(count))
    return scalar(c) and exact and float(c.reshape(-1)[0]) == 1 / count


def _count(x: TensorType, a: ReduceAttrs) -> float:
    sizes = [as_int(x.shape[i]) for i in a.axes]
    return -1.0 if None in sizes or not sizes else float(prod(s for s in sizes if s is not None))


def sixth(a: HardSigmoidAttrs) -> bool:
    """The hard sigmoid that a hard swish is made of."""
    return isclose(a.alpha, 1 / 6, rel_tol=1e-6) and a.beta == 0.5


def widens(x: TensorType, a: CastAttrs, b: CastAttrs) -> bool:
    """A cast loses nothing that the cast after it would have kept."""
    return passes_through(x.dtype, a.to, b.to)


def alpha_of(c: np.ndarray) -> AlphaAttrs:
    """A number as an activation's parameter."""
    return AlphaAttrs(float(c.reshape(-1)[0]))


def layer_of(x: TensorType, a: ReduceAttrs, e: np.ndarray) -> LayerNormAttrs:
    """The norm of the rows that were reduced."""
    return LayerNormAttrs(x.rank - len(a.axes), float(e.reshape(-1)[0]))


def rms_of(x: TensorType, a: ReduceAttrs, e: np.ndarray) -> RmsNormAttrs:
    """The norm of the rows that were reduced."""
    return RmsNormAttrs(x.rank - len(a.axes), float(e.reshape(-1)[0]))


def axis_of(a: ReduceAttrs) -> SoftmaxAttrs:
    """Softmax along the one axis that was reduced."""
    return SoftmaxAttrs(a.axes[0])


def finite_of(a: SoftmaxAttrs) -> SoftmaxAttrs:
    """The same softmax with zeros for NaN."""
    return replace(a, fully_masked="finite")


def keepdims_of(a: ReduceAttrs) -> ReduceAttrs:
    """The same reduction, whose axes stay as ones."""
    return replace(a, keepdims=True)
