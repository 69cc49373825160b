"""Probabilities of classes from those of pairs: Wu, Lin and Weng's second method.

Given `r[i, j]`, how probable class `i` is where it is `i` or `j`, the result minimizes the sum of
`(r[j, i] p[i] - r[i, j] p[j])^2`. It is found by LIBSVM's iteration, with its limits.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, Var, as_int, call, const, maximum, select
from tilewright.core.dtypes import DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, If, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op, fail

# The quadratic form, its product with the result, the form's value, the greatest error, a step.
FORM, SLOPE, VALUE, ERROR, STEP = "form", "slope", "value", "error", "step"
ROUNDS, ACCURACY = 100, 0.005


def _type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    r = ins[0]
    is_square = r.rank == 3 and r.shape[1] is r.shape[2] and as_int(r.shape[1]) is not None
    if not is_square or not r.dtype.is_float:
        raise fail("pairwise_coupling", f"{r} is not a square of probabilities a row")
    return TensorType(r.dtype, r.shape[:2])


@node
class _Row:
    """What is read and written of one row `n`."""

    n: Expr
    dtype: DType

    def load(self, buffer: str, *place: Expr) -> Load:
        """An element of the row."""
        return Load(buffer, (self.n, *place), self.dtype)

    def store(self, buffer: str, *place: Expr, value: Expr) -> Stmt:
        """Write an element of the row."""
        return Store(buffer, (self.n, *place), value)

    def start(self, k: Expr, classes: int) -> list[Stmt]:
        """Equal probabilities, and the quadratic form."""
        zero, one = const(0, self.dtype), const(1, self.dtype)
        a, b, i, j = (Var(f"at.{v}") for v in "abij")
        beside = select(a.eq(b), zero, -(self.load("x0", b, a) * self.load("x0", a, b)))
        given = self.load("x0", j, i)
        square = self.load(FORM, i, i) + select(i.eq(j), zero, given * given)
        return [
            nest(
                ("at.c",),
                (k,),
                self.store("y0", Var("at.c"), value=one / const(classes, self.dtype)),
            ),
            nest(("at.a", "at.b"), (k, k), self.store(FORM, a, b, value=beside)),
            nest(("at.i", "at.j"), (k, k), self.store(FORM, i, i, value=square)),
            self.store(ERROR, value=const(float("inf"), self.dtype)),
        ]

    def measure(self, k: Expr) -> list[Stmt]:
        """The slope and the value of the form, and how far they are from the minimum."""
        zero = const(0, self.dtype)
        s, t, u = Var("at.s"), Var("at.t"), Var("at.u")
        term = self.load(SLOPE, s) + self.load(FORM, s, t) * self.load("y0", t)
        value = self.load(VALUE) + self.load("y0", s) * self.load(SLOPE, s)
        row = (
            self.store(SLOPE, s, value=zero),
            nest(("at.t",), (k,), self.store(SLOPE, s, value=term)),
            self.store(VALUE, value=value),
        )
        error = call("abs", self.load(SLOPE, u) - self.load(VALUE))
        return [
            self.store(VALUE, value=zero),
            nest(("at.s",), (k,), Seq(row)),
            self.store(ERROR, value=zero),
            nest(("at.u",), (k,), self.store(ERROR, value=maximum(self.load(ERROR), error))),
        ]

    def improve(self, k: Expr) -> Stmt:
        """One probability after the other moved to where the form is least, all scaled to 1."""
        one, two = const(1, self.dtype), const(2, self.dtype)
        v, w = Var("at.v"), Var("at.w")
        own, step = self.load(FORM, v, v), self.load(STEP)
        grown = self.load(VALUE) + step * (step * own + two * self.load(SLOPE, v))
        slope = self.load(SLOPE, w) + step * self.load(FORM, v, w)
        scaled = (
            self.store(SLOPE, w, value=slope / (one + step)),
            self.store("y0", w, value=self.load("y0", w) / (one + step)),
        )
        move = (
            self.store(STEP, value=(self.load(VALUE) - self.load(SLOPE, v)) / own),
            self.store("y0", v, value=self.load("y0", v) + step),
            self.store(VALUE, value=grown / ((one + step) * (one + step))),
            nest(("at.w",), (k,), Seq(scaled)),
        )
        return nest(("at.v",), (k,), Seq(move))


def _pairwise_coupling(_: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    r, rows = ins[0], outs[0].shape[:1]
    k, classes = r.shape[1], as_int(r.shape[1])
    assert classes is not None
    own = {FORM: r.shape, SLOPE: outs[0].shape, VALUE: rows, ERROR: rows, STEP: rows}
    local = {name: Buffer(name, r.dtype, shape) for name, shape in own.items()}
    params = parameters(ins, outs)

    def body(n: Expr) -> Stmt:
        row = _Row(n, r.dtype)
        too_far = const(ACCURACY / max(classes, 1), r.dtype) <= row.load(ERROR)
        again = Seq((*row.measure(k), If(too_far, row.improve(k))))
        rounds = nest(("at.round",), (const(max(ROUNDS, classes)),), If(too_far, again))
        return Seq((*row.start(k, max(classes, 1)), rounds))

    block: Stmt = spatial_block("coupling", rows, body, {**params, **local})
    for buffer in local.values():
        block = Alloc(buffer, block)
    return Func("pairwise_coupling", tuple(params.values()), ("y0",), block)


OPS = (
    Op(
        "pairwise_coupling",
        _type,
        "opaque",
        loops=_pairwise_coupling,
        flops=lambda _, ins, outs: ins[0].elements * const(50),
        doc="Probabilities of classes from the probabilities of each against each.",
    ),
)
