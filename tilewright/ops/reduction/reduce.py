"""Reductions over axes, and the position of the greatest or least element along one.

A reduction is three steps, each a tensor expression: a function of every element (`before`), the
combination, and a function of the combined value (`after`). Over no axes the combination does
nothing and the other two remain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tilewright.arith.dtype_limits import neutral
from tilewright.arith.expr import Expr, as_int, call, cast, const, product, select, unary
from tilewright.core.dtypes import BOOL, F64, I32, I64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.accumulation import accumulator, widen
from tilewright.ops.elementwise.define import Accepts, check_dtype, floats, numbers, ordered
from tilewright.ops.op import Op, fail, normalize_axis
from tilewright.ops.shape.assumptions import has_elements
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.manipulation import ExpandAttrs
from tilewright.ops.traced_value import Value

Step = Callable[[Expr], Expr]


@node
class ReduceAttrs(Attrs):
    """The axes to reduce over, and whether they stay as dimensions of size 1."""

    axes: tuple[int, ...]
    keepdims: bool = True


@node
class ArgAttrs(Attrs):
    """The axis to search along, whether it stays, and which of several equal ones is meant."""

    axis: int = 0
    keepdims: bool = True
    last: bool = False


def _axes(name: str, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    found = tuple(sorted(normalize_axis(name, a, rank) for a in axes))
    if len(set(found)) != len(found):
        raise fail(name, f"axes {list(axes)} name one dimension twice")
    # A scalar has no dimension to reduce over, though ONNX allows axis 0 of it.
    return found if rank else ()


def _reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    kept = ((const(1),) if a in axes else (d,) for a, d in enumerate(shape))
    return tuple(d for a, dims in enumerate(kept) if keepdims or a not in axes for d in dims)


def _index(rank: int, axes: Sequence[int], keepdims: bool, out: Sequence[Expr]) -> list[Expr]:
    """The index into the input for an index of the output, the reduced axes at 0."""
    kept = iter(out)
    index: list[Expr] = []
    for axis in range(rank):
        here = next(kept) if keepdims or axis not in axes else const(0)
        index.append(const(0) if axis in axes else here)
    return index


def _at(x: Tensor, axes: Sequence[int], index: Sequence[Expr], r: Sequence[Expr]) -> Expr:
    full = list(index)
    for axis, var in zip(axes, r, strict=True):
        full[axis] = var
    return x.at(*full)


def _reduce_type(
    name: str, accepts: Accepts, attrs: ReduceAttrs, ins: Sequence[TensorType]
) -> TensorType:
    x = ins[0]
    check_dtype(name, accepts, x.dtype)
    axes = _axes(name, attrs.axes, x.rank)
    return TensorType(x.dtype, _reduced_shape(x.shape, axes, attrs.keepdims))


def _combination(op: str, dtype: DType) -> str:
    """On truth values the greatest is `any`, the least `all`."""
    return {"max": "any", "min": "all"}.get(op, op) if dtype == BOOL else op


def _reduce(
    op: str,
    before: Step,
    after: Callable[[Expr, Expr], Expr],
    b: Builder,
    attrs: ReduceAttrs,
    ins: Sequence[Tensor],
    outs: Sequence[TensorType],
) -> Tensor:
    x = ins[0]
    axes = _axes(op, attrs.axes, len(x.shape))
    extents = tuple(x.shape[a] for a in axes)
    count = product(extents)

    def term(i: Sequence[Expr], r: Sequence[Expr]) -> Expr:
        index = _index(len(x.shape), axes, attrs.keepdims, i)
        return before(widen(_at(x, axes, index, r)))

    def finish(total: Expr) -> Expr:
        return cast(x.dtype, after(total, count))

    if not axes:
        return b.compute("y", outs[0].shape, lambda *i: finish(term(i, ())))
    combine = _combination(op, x.dtype)

    def combined(*i: Expr) -> Expr:
        return b.reduce(combine, extents, lambda *r: term(i, r))

    if after is _nothing and accumulator(x.dtype) == x.dtype:
        return b.compute("y", outs[0].shape, combined)
    total = b.compute("total", outs[0].shape, combined)
    return b.compute("y", outs[0].shape, lambda *i: finish(total.at(*i)))


def _log_sum_exp(
    b: Builder, attrs: ReduceAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    """Relative to the greatest element, so that nothing overflows."""
    x = ins[0]
    axes = _axes("reduce_log_sum_exp", attrs.axes, len(x.shape))
    extents = tuple(x.shape[a] for a in axes)
    if not axes:
        return b.compute("y", outs[0].shape, lambda *i: x.at(*i))

    def term(i: Sequence[Expr], r: Sequence[Expr]) -> Expr:
        return widen(_at(x, axes, _index(len(x.shape), axes, attrs.keepdims, i), r))

    peak = b.compute(
        "peak", outs[0].shape, lambda *i: b.reduce("max", extents, lambda *r: term(i, r))
    )

    # An infinite greatest element would give the difference of infinities.
    def base(i: Sequence[Expr]) -> Expr:
        m = peak.at(*i)
        return select(call("isinf", m), const(0.0, m.dtype), m)

    total = b.compute(
        "total",
        outs[0].shape,
        lambda *i: b.sum(extents, lambda *r: call("exp", term(i, r) - base(i))),
    )
    return b.compute(
        "y", outs[0].shape, lambda *i: cast(x.dtype, call("log", total.at(*i)) + base(i))
    )


def _arg_type(name: str, attrs: ArgAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    check_dtype(name, ordered, x.dtype)
    axes = _axes(name, (attrs.axis,), x.rank)
    if axes and not has_elements(name, x.shape[axes[0]]):
        raise fail(name, f"dimension {axes[0]} of {x} is empty")
    return TensorType(I64, _reduced_shape(x.shape, axes, attrs.keepdims))


def _arg(
    op: str, b: Builder, attrs: ArgAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    """The first (or last) position at which the best element, or a NaN, stands."""
    x = ins[0]
    axes = _axes(op, (attrs.axis,), len(x.shape))
    if not axes:
        return b.compute("y", outs[0].shape, lambda *i: const(0))
    extents = (x.shape[axes[0]],)
    which = "max" if attrs.last else "min"
    # Along a row positions make up vectors, and twice as many short ones fit.
    length = as_int(extents[0]) if axes[0] == len(x.shape) - 1 else None
    count = I32 if length is not None and length < 2**31 else I64
    elsewhere = neutral(which, count)

    def term(i: Sequence[Expr], k: Expr) -> Expr:
        # Short floats may have no infinity to begin with.
        return widen(_at(x, axes, _index(len(x.shape), axes, attrs.keepdims, i), (k,)))

    combine = _combination(op, x.dtype)
    best = b.compute(
        "best", outs[0].shape, lambda *i: b.reduce(combine, extents, lambda k: term(i, k))
    )

    def found(i: Sequence[Expr], k: Expr) -> Expr:
        same = term(i, k).eq(best.at(*i))
        return same | call("isnan", term(i, k)) if x.dtype.is_float else same

    place = b.compute(
        "y" if count == I64 else "place",
        outs[0].shape,
        lambda *i: b.reduce(
            which, extents, lambda k: select(found(i, k), cast(count, k), elsewhere)
        ),
    )
    if count == I64:
        return place
    return b.compute("y", outs[0].shape, lambda *i: cast(I64, place.at(*i)))


def _flops(_: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    return ins[0].elements


def _same(e: Expr) -> Expr:
    return e


def _nothing(total: Expr, count: Expr) -> Expr:
    return total


def _absolute(e: Expr) -> Expr:
    if e.dtype.is_float:
        return call("abs", e)
    return e if e.dtype.kind == "uint" else select(e < 0, unary("neg", e), e)


def _on_floats(fn: str) -> Callable[[Expr, Expr], Expr]:
    """A function of the total; that of integers is computed in f64 and truncated by the caller."""
    return lambda total, _: call(fn, total if total.dtype.is_float else cast(F64, total))


def _average(total: Expr, count: Expr) -> Expr:
    return total / cast(total.dtype, count)


def _known(
    combine: np.ufunc, start: int
) -> Callable[[ReduceAttrs, Sequence[np.ndarray]], np.ndarray]:
    def value(attrs: ReduceAttrs, known: Sequence[np.ndarray]) -> np.ndarray:
        axes = _axes("reduce", attrs.axes, known[0].ndim)
        found: Any = combine.reduce(
            known[0], axis=axes, keepdims=attrs.keepdims, initial=const(start)
        )
        if isinstance(found, np.ndarray):
            return found
        boxed = np.empty((), dtype=object)  # NumPy unwraps results of rank 0
        boxed[()] = found
        return boxed

    return value


# Name, combination, what is done before and after, which types it takes, what it is.
_REDUCTIONS = (
    ("sum", "sum", _same, _nothing, numbers, "the sum"),
    ("mean", "sum", _same, _average, numbers, "the mean"),
    ("max", "max", _same, _nothing, ordered, "the greatest"),
    ("min", "min", _same, _nothing, ordered, "the least"),
    ("prod", "prod", _same, _nothing, numbers, "the product"),
    ("l1", "sum", _absolute, _nothing, numbers, "the sum of absolute values"),
    ("l2", "sum", lambda e: e * e, _on_floats("sqrt"), numbers, "the root of the sum of squares"),
    ("log_sum", "sum", _same, _on_floats("log"), numbers, "the logarithm of the sum"),
    ("sum_square", "sum", lambda e: e * e, _nothing, numbers, "the sum of squares"),
)
_KNOWN = {"sum": _known(np.add, 0), "prod": _known(np.multiply, 1)}


def _sum_vjp(attrs: ReduceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """Every term of a sum gets the gradient of the sum."""
    shape = ins[0].shape
    axes = {normalize_axis("reduce_sum", a, len(shape)) for a in attrs.axes}
    kept = tuple(const(1) if i in axes else d for i, d in enumerate(shape))
    return (dy.reshape(kept).apply("expand", attrs=ExpandAttrs(shape)),)


def _mean_vjp(attrs: ReduceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    x = ins[0]
    ones = x.called(x.g.add("full", attrs=FullAttrs(x.shape, 1.0, x.dtype)))
    return _sum_vjp(attrs, ins, y, dy / ones.apply("reduce_sum", attrs=attrs))


_VJPS = {"sum": _sum_vjp, "mean": _mean_vjp}

OPS = (
    *(
        Op(
            f"reduce_{name}",
            partial(_reduce_type, f"reduce_{name}", accepts),
            "reduction",
            ReduceAttrs,
            te=partial(_reduce, op, before, after),
            propagate=_KNOWN.get(name),
            flops=_flops,
            vjp=_VJPS.get(name),
            doc=f"{doc} over axes",
        )
        for name, op, before, after, accepts, doc in _REDUCTIONS
    ),
    Op(
        "reduce_log_sum_exp",
        partial(_reduce_type, "reduce_log_sum_exp", floats),
        "reduction",
        ReduceAttrs,
        te=_log_sum_exp,
        flops=_flops,
        doc="the logarithm of the sum of exponentials over axes",
    ),
    *(
        Op(
            f"arg{op}",
            partial(_arg_type, f"arg{op}"),
            "reduction",
            ArgAttrs,
            te=partial(_arg, op),
            flops=_flops,
            doc=f"where along an axis the {word} element is",
        )
        for op, word in (("max", "greatest"), ("min", "least"))
    ),
)
