"""Pooling: the maximum, the mean and the p-norm of sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import mul

from tilewright.arith.dtype_limits import highest, lowest
from tilewright.arith.expr import (
    Const,
    Expr,
    as_int,
    call,
    cast,
    ceildiv,
    const,
    maximum,
    minimum,
    product,
    select,
)
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64
from tilewright.core.node import node
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import widen
from tilewright.ops.conv.sliding_window import (
    WindowAttrs,
    arrange,
    channels,
    check_window,
    padded,
    parts,
    spatial,
    tap,
    window_count,
)
from tilewright.ops.elementwise.define import check_dtype, floats, numbers
from tilewright.ops.op import Op
from tilewright.ops.tensor.manipulation import flatten, unflatten


@node
class PoolAttrs(WindowAttrs):
    """Windows of size `kernel`; with `ceil`, a last window may reach beyond the padding."""

    kernel: tuple[int, ...] = ()
    ceil: bool = False


@node
class AveragePoolAttrs(PoolAttrs):
    """`count_pads`: whether padding counts as elements of a window."""

    count_pads: bool = False


@node
class LpPoolAttrs(PoolAttrs):
    """`p` is the order of the norm."""

    p: int = 2


@node
class PoolIndicesAttrs(PoolAttrs):
    """`column_major`: whether positions count the spatial axes in reverse order."""

    column_major: bool = False


def _pool_type(op: str, attrs: PoolAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    check_dtype(op, numbers, x.dtype)
    check_window(op, attrs, x, len(attrs.kernel))
    sizes = [
        window_count(op, n, const(attrs.kernel[axis]), attrs, axis, attrs.ceil)
        for axis, n in enumerate(spatial(attrs.layout, x.shape))
    ]
    channel = channels(attrs.layout, x.shape)
    return TensorType(x.dtype, arrange(attrs.layout, x.shape[0], channel, sizes))


def _lp_pool_type(attrs: LpPoolAttrs, ins: Sequence[TensorType]) -> TensorType:
    check_dtype("lp_pool", floats, ins[0].dtype)
    return _pool_type("lp_pool", attrs, ins)


def _source(b: Builder, attrs: PoolAttrs, x: Tensor, out: TensorType, fill: Const) -> Tensor:
    """The input, padded as far as the last windows reach."""
    after: list[Expr] = [const(p) for p in attrs.after]
    if attrs.ceil:
        sizes = zip(spatial(attrs.layout, x.shape), spatial(attrs.layout, out.shape), strict=True)
        for axis, (size, count) in enumerate(sizes):
            reach = (attrs.kernel[axis] - 1) * attrs.dilations[axis] + 1 - attrs.before[axis]
            after[axis] = simplify(maximum((count - 1) * attrs.strides[axis] + reach - size, 0))
    return padded(b, attrs, x, after, fill)


def _reaching(attrs: PoolAttrs, x: Tensor | TensorType, out: TensorType) -> PoolAttrs:
    """The same windows without taps that never reach the input.

    A single window may be far larger than what it pools: "global" pooling is often written so.
    """
    sizes = zip(spatial(attrs.layout, x.shape), spatial(attrs.layout, out.shape), strict=True)
    kernel = []
    for axis, (size, count) in enumerate(sizes):
        taps, known = attrs.kernel[axis], as_int(size)
        if known is not None and as_int(count) == 1:
            taps = min(taps, -(-(known + attrs.before[axis]) // attrs.dilations[axis]))
        kernel.append(max(taps, 1))
    return replace(attrs, kernel=tuple(kernel))


def _windows(
    b: Builder, attrs: PoolAttrs, op: str, x: Tensor, term: Callable[[Expr], Expr]
) -> Callable[..., Expr]:
    """The body that reduces `term` of every element of a window of the padded input `x`."""

    def element(*i: Expr) -> Expr:
        n, c, window = parts(attrs.layout, i)
        return b.reduce(
            op,
            attrs.kernel,
            lambda *k: term(x.at(*arrange(attrs.layout, n, c, tap(attrs, window, k)))),
        )

    return element


def _max_pool(
    b: Builder, attrs: PoolAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    attrs = _reaching(attrs, ins[0], outs[0])
    source = _source(b, attrs, ins[0], outs[0], lowest(ins[0].dtype))
    return b.compute("y", outs[0].shape, _windows(b, attrs, "max", source, lambda e: e))


def _average_pool(
    b: Builder, attrs: AveragePoolAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, shape = ins[0], outs[0].shape
    near = _reaching(attrs, x, outs[0])
    source = _source(b, near, x, outs[0], const(0, x.dtype))
    total = b.compute("total", shape, _windows(b, near, "sum", source, widen))
    sizes = spatial(attrs.layout, x.shape)

    def mean(*i: Expr) -> Expr:
        _, _, window = parts(attrs.layout, i)
        counts = [_taps_inside(attrs, a, p, sizes[a]) for a, p in enumerate(window)]
        count = cast(total.dtype, product(tuple(counts)))
        if any(as_int(c) is None for c in counts):
            # Converted one by one, those along a line are the same for all lines.
            count = reduce(mul, (cast(total.dtype, c) for c in counts))
        return cast(x.dtype, total.at(*i) / count)

    return b.compute("y", shape, mean)


def _taps_inside(attrs: AveragePoolAttrs, axis: int, window: Expr, size: Expr) -> Expr:
    """How many taps of `window` count: those in the input, or with `count_pads` in the padding."""
    kernel, dilation = attrs.kernel[axis], attrs.dilations[axis]
    before, after = attrs.before[axis], attrs.after[axis]
    if not attrs.ceil and (attrs.count_pads or before == after == 0):
        return const(kernel)
    start = window * attrs.strides[axis] - before
    low, high = (const(-before), size + after) if attrs.count_pads else (const(0), size)
    first = maximum(ceildiv(low - start, dilation), 0)
    return minimum(ceildiv(high - start, dilation), kernel) - first


def _lp_pool(
    b: Builder, attrs: LpPoolAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, shape = ins[0], outs[0].shape
    source = _source(b, attrs, x, outs[0], const(0, x.dtype))
    power, root = norm_terms(attrs.p)
    total = b.compute("total", shape, _windows(b, attrs, "sum", source, lambda e: power(widen(e))))
    return b.compute("y", shape, lambda *i: cast(x.dtype, root(total.at(*i))))


def norm_terms(p: int) -> tuple[Callable[[Expr], Expr], Callable[[Expr], Expr]]:
    """What a p-norm sums of each element, and what it takes of the sum."""
    if p == 1:
        return (lambda e: call("abs", e)), (lambda e: e)
    if p == 2:
        return (lambda e: e * e), (lambda e: call("sqrt", e))
    return (
        lambda e: call("pow", call("abs", e), const(p, e.dtype)),
        lambda e: call("pow", e, const(1 / p, e.dtype)),
    )


def _indices_type(attrs: PoolIndicesAttrs, ins: Sequence[TensorType]) -> TensorType:
    return TensorType(I64, _pool_type("max_pool_indices", attrs, ins).shape)


def _max_pool_indices(
    b: Builder, attrs: PoolIndicesAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, none = ins[0], highest(I64)
    _, channel, sizes = parts(attrs.layout, x.shape)
    source = _source(b, attrs, x, outs[0], lowest(x.dtype))
    peak = b.compute("peak", outs[0].shape, _windows(b, attrs, "max", source, lambda e: e))

    def position(*i: Expr) -> Expr:
        n, c, window = parts(attrs.layout, i)

        def candidate(*k: Expr) -> Expr:
            where = [t - p for t, p in zip(tap(attrs, window, k), attrs.before, strict=True)]
            inside = _inside(where, sizes)
            value = x.at(*arrange(attrs.layout, n, c, where), when=inside)
            flat = flatten(tuple(sizes), where)
            at_peak = select(inside & value.eq(peak.at(*i)), flat, none)
            return select(inside & value.ne(value), -flat - 1, at_peak)

        return b.reduce("min", attrs.kernel, candidate)

    # The least row-major position is the first maximum in the order of scanning; those of NaN are
    # negative, and their least is the last one, as in torch.
    first = b.compute("first", outs[0].shape, position)

    def index(*i: Expr) -> Expr:
        n, c, _ = parts(attrs.layout, i)
        flat: Expr = select(first.at(*i) < 0, -first.at(*i) - 1, first.at(*i))
        if attrs.column_major:
            flat = flatten(tuple(reversed(sizes)), tuple(reversed(unflatten(tuple(sizes), flat))))
        return (n * channel + c) * product(sizes) + flat

    return b.compute("y", outs[0].shape, index)


def _inside(where: Sequence[Expr], sizes: Sequence[Expr]) -> Expr:
    checks = [(w >= 0) & (w < n) for w, n in zip(where, sizes, strict=True)]
    result = checks[0]
    for check in checks[1:]:
        result = result & check
    return result


def _flops(attrs: PoolAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    near = _reaching(attrs, ins[0], outs[0])
    return outs[0].elements * product(tuple(const(k) for k in near.kernel))


OPS = (
    Op(
        "max_pool",
        partial(_pool_type, "max_pool"),
        "out_fusable",
        PoolAttrs,
        te=_max_pool,
        flops=_flops,
        doc="The maximum of each window; padding never wins.",
    ),
    Op(
        "max_pool_indices",
        _indices_type,
        "out_fusable",
        PoolIndicesAttrs,
        te=_max_pool_indices,
        flops=_flops,
        doc="Where in the input, flattened with channels first, max_pool finds its results.",
    ),
    Op(
        "average_pool",
        partial(_pool_type, "average_pool"),
        "out_fusable",
        AveragePoolAttrs,
        te=_average_pool,
        flops=_flops,
        doc="The mean of each window.",
    ),
    Op(
        "lp_pool",
        _lp_pool_type,
        "out_fusable",
        LpPoolAttrs,
        te=_lp_pool,
        flops=_flops,
        doc="The p-norm of each window.",
    ),
)
