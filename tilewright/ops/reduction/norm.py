"""Normalization by statistics of the data: layer, RMS and p-norm, groups, local response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.arith.expr import Expr, as_int, call, cast, const, product, select
from tilewright.core.dtypes import DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.accumulation import accumulator, widen
from tilewright.ops.conv.pool import norm_terms
from tilewright.ops.op import (
    Op,
    broadcast_index,
    broadcast_shapes,
    fail,
    normalize_axis,
)


@node
class LayerNormAttrs(Attrs):
    """Axes `axis` and later are normalized; `stats` makes mean and 1 / deviation results too."""

    axis: int = -1
    epsilon: float = 1e-5
    stats: bool = False


@node
class RmsNormAttrs(Attrs):
    """Axes `axis` and later are normalized."""

    axis: int = -1
    epsilon: float = 1e-5


@node
class MeanVarianceAttrs(Attrs):
    """The axes that are normalized together; `epsilon` is added to the deviation."""

    axes: tuple[int, ...] = (0, 2, 3)
    epsilon: float = 1e-9


@node
class LpNormAttrs(Attrs):
    """The axis whose p-norm becomes 1."""

    axis: int = -1
    p: int = 2


@node
class LrnAttrs(Attrs):
    """`x / (bias + alpha / size * sum of squares of `size` channels around) ** beta`."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0


@dataclass(frozen=True)
class _Groups:
    """A tensor divided into groups of elements that lie along some axes."""

    x: Tensor
    axes: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        """The shape of one value a group."""
        return self.drop(self.x.shape)

    @property
    def dtype(self) -> DType:
        """The element type to compute in."""
        return accumulator(self.x.dtype)

    @property
    def size(self) -> Expr:
        """The number of elements of a group, as a number to divide by."""
        return cast(self.dtype, product(tuple(self.x.shape[a] for a in self.axes)))

    def drop(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """The group that an index lies in."""
        return tuple(e for d, e in enumerate(index) if d not in self.axes)

    def insert(self, group: Sequence[Expr], inner: Sequence[Expr]) -> tuple[Expr, ...]:
        """The index of the element `inner` of a group."""
        outer, within = iter(group), iter(inner)
        return tuple(next(within if d in self.axes else outer) for d in range(len(self.x.shape)))

    def sum(self, b: Builder, name: str, term: Callable[[tuple[Expr, ...]], Expr]) -> Tensor:
        """The stage that sums `term(index)` over each group."""
        extents = tuple(self.x.shape[a] for a in self.axes)
        return b.compute(
            name, self.shape, lambda *g: b.sum(extents, lambda *r: term(self.insert(g, r)))
        )

    def map(self, b: Builder, name: str, body: Callable[[tuple[Expr, ...]], Expr]) -> Tensor:
        """The stage with one value `body(group)` a group."""
        return b.compute(name, self.shape, lambda *g: body(g))

    def mean(self, b: Builder) -> Tensor:
        """The mean of each group."""
        total = self.sum(b, "total", lambda i: widen(self.x.at(*i)))
        return self.map(b, "mean", lambda g: total.at(*g) / self.size)

    def centred(self, mean: Tensor, i: Sequence[Expr]) -> Expr:
        """An element less its group's mean."""
        return widen(self.x.at(*i)) - mean.at(*self.drop(i))

    def square_sum(self, b: Builder, mean: Tensor) -> Tensor:
        """The sum of squared distances from the mean: two passes, since one cancels."""

        def square(i: tuple[Expr, ...]) -> Expr:
            distance = self.centred(mean, i)
            return distance * distance

        return self.sum(b, "squares", square)

    def inverse_root(self, b: Builder, squares: Tensor, epsilon: float) -> Tensor:
        """`1 / sqrt(squares / size + epsilon)`."""
        one, eps = const(1, self.dtype), const(epsilon, self.dtype)
        return self.map(
            b, "inverse", lambda g: one / call("sqrt", squares.at(*g) / self.size + eps)
        )


def _trailing(op: str, axis: int, x: TensorType | Tensor) -> tuple[int, ...]:
    rank = len(x.shape)
    return tuple(range(normalize_axis(op, axis, rank), rank))


def _check_affine(op: str, ins: Sequence[TensorType | None]) -> TensorType:
    x = ins[0]
    assert x is not None
    if not x.dtype.is_float or not x.rank:
        raise fail(op, f"{x} must be floats with at least one dimension")
    for t in ins[1:]:
        if t is not None and broadcast_shapes(op, x.shape, t.shape) != x.shape:
            raise fail(op, f"{t} does not broadcast to {x}")
    return x


def _affine(y: Expr, i: Sequence[Expr], parameters: Sequence[Tensor | None], dtype: DType) -> Expr:
    """`y * scale + bias`, where given, in the type that `y` is computed in."""
    scale, bias = (*parameters, None, None)[:2]
    if scale is not None:
        y = y * cast(y.dtype, scale.at(*broadcast_index(scale.shape, i)))
    if bias is not None:
        y = y + cast(y.dtype, bias.at(*broadcast_index(bias.shape, i)))
    return cast(dtype, y)


def _layer_norm_type(
    attrs: LayerNormAttrs, ins: Sequence[TensorType | None]
) -> TensorType | tuple[TensorType, ...]:
    x = _check_affine("layer_norm", ins)
    axes = _trailing("layer_norm", attrs.axis, x)
    if not attrs.stats:
        return x
    shape = tuple(const(1) if d in axes else n for d, n in enumerate(x.shape))
    stats = TensorType(accumulator(x.dtype), shape)
    return x, stats, stats


def _layer_norm(
    b: Builder, attrs: LayerNormAttrs, ins: Sequence[Tensor | None], outs: Sequence[TensorType]
) -> Tensor | tuple[Tensor, ...]:
    x, *parameters = ins
    assert x is not None
    rows = _Groups(x, _trailing("layer_norm", attrs.axis, x))
    mean = rows.mean(b)
    inverse = rows.inverse_root(b, rows.square_sum(b, mean), attrs.epsilon)

    def element(*i: Expr) -> Expr:
        y = rows.centred(mean, i) * inverse.at(*rows.drop(i))
        return _affine(y, i, parameters, x.dtype)

    y = b.compute("y", x.shape, element)
    if not attrs.stats:
        return y
    kept = [
        b.compute(name, outs[1].shape, lambda *i, t=t: t.at(*rows.drop(i)))
        for name, t in (("mean_out", mean), ("inverse_out", inverse))
    ]
    return (y, *kept)


def _rms_norm_type(attrs: RmsNormAttrs, ins: Sequence[TensorType | None]) -> TensorType:
    x = _check_affine("rms_norm", ins)
    _trailing("rms_norm", attrs.axis, x)
    return x


def _rms_norm(
    b: Builder, attrs: RmsNormAttrs, ins: Sequence[Tensor | None], outs: Sequence[TensorType]
) -> Tensor:
    x, *parameters = ins
    assert x is not None
    rows = _Groups(x, _trailing("rms_norm", attrs.axis, x))
    squares = rows.sum(b, "squares", lambda i: widen(x.at(*i)) * widen(x.at(*i)))
    inverse = rows.inverse_root(b, squares, attrs.epsilon)
    return b.compute(
        "y",
        x.shape,
        lambda *i: _affine(widen(x.at(*i)) * inverse.at(*rows.drop(i)), i, parameters, x.dtype),
    )


def _mean_variance_type(attrs: MeanVarianceAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = _check_affine("mean_variance_norm", ins)
    for axis in attrs.axes:
        normalize_axis("mean_variance_norm", axis, x.rank)
    return x


def _mean_variance(
    b: Builder, attrs: MeanVarianceAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]
    groups = _Groups(x, tuple(sorted(a % len(x.shape) for a in attrs.axes)))
    mean = groups.mean(b)
    squares = groups.square_sum(b, mean)
    eps = const(attrs.epsilon, groups.dtype)
    deviation = groups.map(
        b, "deviation", lambda g: call("sqrt", squares.at(*g) / groups.size) + eps
    )
    return b.compute(
        "y",
        x.shape,
        lambda *i: cast(x.dtype, groups.centred(mean, i) / deviation.at(*groups.drop(i))),
    )


def _lp_norm_type(attrs: LpNormAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = _check_affine("lp_norm", ins)
    normalize_axis("lp_norm", attrs.axis, x.rank)
    return x


def _lp_norm(
    b: Builder, attrs: LpNormAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]
    rows = _Groups(x, (attrs.axis % len(x.shape),))
    power, root = norm_terms(attrs.p)
    total = rows.sum(b, "total", lambda i: power(widen(x.at(*i))))
    norm = rows.map(b, "norm", lambda g: root(total.at(*g)))
    zero = const(0, rows.dtype)

    def element(*i: Expr) -> Expr:
        length = norm.at(*rows.drop(i))
        return cast(x.dtype, select(length.eq(zero), zero, widen(x.at(*i)) / length))

    return b.compute("y", x.shape, element)


def _lrn_type(attrs: LrnAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = _check_affine("lrn", ins)
    if x.rank < 2 or attrs.size < 1:
        raise fail("lrn", f"{x} must have a channel axis, and size {attrs.size} be at least 1")
    return x


def _lrn(b: Builder, attrs: LrnAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]) -> Tensor:
    x = ins[0]
    dtype = accumulator(x.dtype)
    channels = as_int(x.shape[1])
    # A window that reaches beyond the channels on both sides sums no more than all of them.
    size = attrs.size if channels is None else min(attrs.size, max(1, 2 * channels - 1))
    before = (size - 1) // 2

    def window(n: Expr, c: Expr, *where: Expr) -> Expr:
        def square(k: Expr) -> Expr:
            channel = c + k - before
            inside = (channel >= 0) & (channel < x.shape[1])
            value = widen(x.at(n, channel, *where, when=inside))
            return value * value

        return b.sum((size,), square)

    squares = b.compute("squares", x.shape, window)
    bias, alpha = const(attrs.bias, dtype), const(attrs.alpha / attrs.size, dtype)

    def element(*i: Expr) -> Expr:
        scale = call("pow", bias + alpha * squares.at(*i), const(attrs.beta, dtype))
        return cast(x.dtype, widen(x.at(*i)) / scale)

    return b.compute("y", x.shape, element)


OPS = (
    Op(
        "layer_norm",
        _layer_norm_type,
        "reduction",
        LayerNormAttrs,
        te=_layer_norm,
        flops=8,
        doc="(x - mean) / sqrt(variance + epsilon) * scale + bias over the trailing axes.",
    ),
    Op(
        "rms_norm",
        _rms_norm_type,
        "reduction",
        RmsNormAttrs,
        te=_rms_norm,
        flops=5,
        doc="x / sqrt(mean of squares + epsilon) * scale over the trailing axes.",
    ),
    Op(
        "mean_variance_norm",
        _mean_variance_type,
        "reduction",
        MeanVarianceAttrs,
        te=_mean_variance,
        flops=8,
        doc="(x - mean) / (deviation + epsilon) over some axes.",
    ),
    Op(
        "lp_norm",
        _lp_norm_type,
        "reduction",
        LpNormAttrs,
        te=_lp_norm,
        flops=4,
        doc="x divided by its p-norm along an axis; a zero row stays zero.",
    ),
    Op(
        "lrn",
        _lrn_type,
        "out_fusable",
        LrnAttrs,
        te=_lrn,
        flops=lambda a, ins, outs: outs[0].elements * const(2 * a.size + 20),
        doc="Local response normalization across neighbouring channels.",
    ),
)
