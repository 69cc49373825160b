"""Softmax, log-softmax and hardmax along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tilewright.arith.dtype_limits import lowest
from tilewright.arith.expr import Expr, call, cast, const, select
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.accumulation import accumulator, widen
from tilewright.ops.elementwise.define import Vjp, check_dtype, floats
from tilewright.ops.op import Op, fail, normalize_axis
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.traced_value import Value

# What becomes of a row of nothing but -inf: NaN, or zeros; `finite` gives zeros for any NaN.
FULLY_MASKED = ("nan", "zero", "finite")


@node
class AxisAttrs(Attrs):
    """The axis that the operator works along."""

    axis: int = -1


@node
class SoftmaxAttrs(Attrs):
    """The axis, and what becomes of fully masked rows: one of `FULLY_MASKED`."""

    axis: int = -1
    fully_masked: str = "nan"


@dataclass(frozen=True)
class _Rows:
    """A tensor seen as rows along one axis."""

    shape: Shape
    axis: int

    @property
    def rows(self) -> Shape:
        """The shape of one value a row."""
        return self.drop(self.shape)

    @property
    def length(self) -> tuple[Expr]:
        """The extent of a row."""
        return (self.shape[self.axis],)

    def drop(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """The row that an index lies in."""
        return (*index[: self.axis], *index[self.axis + 1 :])

    def insert(self, row: Sequence[Expr], k: Expr) -> tuple[Expr, ...]:
        """The index of element `k` of a row."""
        return (*row[: self.axis], k, *row[self.axis :])

    def reduce(
        self, b: Builder, name: str, op: str, term: Callable[[tuple[Expr, ...], Expr], Expr]
    ) -> Tensor:
        """The stage that reduces `term(index, position in the row)` along each row."""
        return b.compute(
            name,
            self.rows,
            lambda *r: b.reduce(op, self.length, lambda k: term(self.insert(r, k), k)),
        )


def _axis_type(op: str, attrs: AxisAttrs | SoftmaxAttrs, ins: Sequence[TensorType]) -> TensorType:
    check_dtype(op, floats, ins[0].dtype)
    normalize_axis(op, attrs.axis, ins[0].rank)
    return ins[0]


def _softmax_type(attrs: SoftmaxAttrs, ins: Sequence[TensorType]) -> TensorType:
    if attrs.fully_masked not in FULLY_MASKED:
        known = ", ".join(FULLY_MASKED)
        raise fail("softmax", f"no {attrs.fully_masked!r} for masked rows", f"use one of {known}")
    return _axis_type("softmax", attrs, ins)


def _rows(attrs: AxisAttrs | SoftmaxAttrs, x: Tensor) -> _Rows:
    return _Rows(x.shape, attrs.axis % len(x.shape))


def _peak(b: Builder, rows: _Rows, x: Tensor) -> Tensor:
    return rows.reduce(b, "peak", "max", lambda i, _: x.at(*i))


def _softmax(
    b: Builder, attrs: SoftmaxAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, rows = ins[0], _rows(attrs, ins[0])
    peak = _peak(b, rows, x)
    if attrs.fully_masked == "zero":
        peak = _floor(b, rows, peak)

    def power(*i: Expr) -> Expr:
        return call("exp_nonpositive", widen(x.at(*i)) - widen(peak.at(*rows.drop(i))))

    e = b.compute("e", x.shape, power)
    total = rows.reduce(b, "total", "sum", lambda i, _: e.at(*i))
    share = _shares(b, rows, total, attrs.fully_masked == "zero")

    def element(*i: Expr) -> Expr:
        found = share.at(*rows.drop(i))
        value = e.at(*i) * found
        if attrs.fully_masked == "finite":
            # A row with a NaN or +inf in it, or of nothing but -inf, has NaN as its sum; any other
            # row has a sum from 1 to its length, and numbers throughout.
            value = select(found.eq(found), value, const(0, found.dtype))
        return cast(x.dtype, value)

    return b.compute("y", x.shape, element)


def _floor(b: Builder, rows: _Rows, peak: Tensor) -> Tensor:
    """The peaks of rows, 0 for a row of nothing but -inf: its exponentials are then zeros."""
    zero = const(0, accumulator(peak.dtype))

    def finite(*r: Expr) -> Expr:
        found = peak.at(*r)
        return select(found.eq(lowest(found.dtype)), zero, widen(found))

    return b.compute("floor", rows.rows, finite)


def _shares(b: Builder, rows: _Rows, total: Tensor, may_be_zero: bool) -> Tensor:
    """What each exponential of a row counts: one division a row, and a product an element."""
    one, zero = const(1, total.dtype), const(0, total.dtype)

    def share(*r: Expr) -> Expr:
        found = total.at(*r)
        # Only a row of nothing but -inf sums to zero: any other has a term of exp(0).
        return select(found.eq(zero), one, one / found) if may_be_zero else one / found

    return b.compute("share", rows.rows, share)


def _log_softmax(
    b: Builder, attrs: AxisAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, rows = ins[0], _rows(attrs, ins[0])
    peak = _peak(b, rows, x)

    def centred(i: Sequence[Expr]) -> Expr:
        return widen(x.at(*i)) - widen(peak.at(*rows.drop(i)))

    total = rows.reduce(b, "total", "sum", lambda i, _: call("exp_nonpositive", centred(i)))
    log = b.compute("log", rows.rows, lambda *r: call("log", total.at(*r)))
    return b.compute("y", x.shape, lambda *i: cast(x.dtype, centred(i) - log.at(*rows.drop(i))))


def _hardmax(
    b: Builder, attrs: AxisAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, rows = ins[0], _rows(attrs, ins[0])
    peak, length = _peak(b, rows, x), rows.length[0]
    first = rows.reduce(
        b,
        "first",
        "min",
        # NaN counts as the greatest, and is equal to nothing
        lambda i, k: select(
            x.at(*i).eq(peak.at(*rows.drop(i))) | call("isnan", x.at(*i)), k, length
        ),
    )
    one, zero = const(1, x.dtype), const(0, x.dtype)
    return b.compute(
        "y",
        x.shape,
        lambda *i: select(first.at(*rows.drop(i)).eq(i[rows.axis]), one, zero),
    )


def _row_sum(attrs: AxisAttrs | SoftmaxAttrs, x: Value) -> Value:
    return x.apply("reduce_sum", attrs=ReduceAttrs((attrs.axis,), keepdims=True))


def _softmax_flops(
    attrs: SoftmaxAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Expr:
    return outs[0].elements * const(15 if attrs.fully_masked == "finite" else 14)


def _softmax_vjp(attrs: SoftmaxAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    return (y * (dy - _row_sum(attrs, dy * y)),)


def _log_softmax_vjp(attrs: AxisAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    return (dy - y.apply("exp") * _row_sum(attrs, dy),)


def _row(name: str, te: Callable[..., Tensor], flops: int, doc: str, vjp: Vjp | None = None) -> Op:
    infer = partial(_axis_type, name)
    return Op(name, infer, "reduction", AxisAttrs, te=te, flops=flops, vjp=vjp, doc=doc)


OPS = (
    Op(
        "softmax",
        _softmax_type,
        "reduction",
        SoftmaxAttrs,
        te=_softmax,
        flops=_softmax_flops,
        vjp=_softmax_vjp,
        doc="Exponentials along an axis, divided by their sum.",
    ),
    _row(
        "log_softmax",
        _log_softmax,
        14,
        "The logarithm of softmax, without overflow.",
        vjp=_log_softmax_vjp,
    ),
    _row(
        "hardmax",
        _hardmax,
        3,
        "1 at the first maximum along an axis, 0 elsewhere; NaN is the greatest.",
    ),
)
