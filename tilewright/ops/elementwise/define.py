"""Making the rows of elementwise operators: a formula on broadcast elements, a type rule, and where
shape arithmetic may pass through it a rule on known values.

A formula is `formula(attrs, *elements) -> Expr`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

from tilewright.arith.bounds import NATURAL, bound
from tilewright.arith.expr import Expr, call, cast, const
from tilewright.core.dtypes import BOOL, DType
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulator
from tilewright.ops.op import Infer, Op, broadcast_index, broadcast_shapes, fail, same_dtype
from tilewright.ops.traced_value import Value

Formula = Callable[..., Expr]
ValueRule = Callable[[Any, Sequence[np.ndarray]], np.ndarray]
Vjp = Callable[[Any, Sequence[Value], Value, Value], Sequence[Value | None]]
Accepts = Callable[[DType], bool]


def floats(dtype: DType) -> bool:
    """Floating point only."""
    return dtype.is_float and not dtype.is_small


def all_floats(dtype: DType) -> bool:
    """Floating point, also of 8 bits and fewer."""
    return dtype.is_float


def integers(dtype: DType) -> bool:
    """Integers only."""
    return dtype.is_integer and not dtype.is_small


def numbers(dtype: DType) -> bool:
    """Floats and integers."""
    return floats(dtype) or integers(dtype)


def bools(dtype: DType) -> bool:
    """Truth values only."""
    return dtype == BOOL


def anything(dtype: DType) -> bool:
    """Everything that is stored."""
    return bool(dtype.bits)


def ordered(dtype: DType) -> bool:
    """Everything of which one may be greater than another."""
    return anything(dtype) and dtype.kind != "complex"


_WORDS: dict[Accepts, str] = {
    floats: "floats",
    all_floats: "floats",
    integers: "integers",
    numbers: "numbers",
    bools: "bool",
    anything: "everything",
    ordered: "everything but complex numbers",
}


def check_dtype(name: str, accepts: Accepts, dtype: DType) -> None:
    """Refuse an element type that the operator is not defined on."""
    if not accepts(dtype):
        small = "; convert what is only stored, to f32 or i32" if dtype.is_small else ""
        raise fail(name, f"is not defined on {dtype}", help=f"it takes {_WORDS[accepts]}" + small)


def pointwise(
    formula: Formula,
    b: Builder,
    attrs: Attrs,
    ins: Sequence[Tensor | None],
    outs: Sequence[TensorType],
) -> Tensor:
    """The tensor expression that applies `formula` to broadcast elements, `None` where absent."""

    def element(*i: Expr) -> Expr:
        loaded = (None if x is None else x.at(*broadcast_index(x.shape, i)) for x in ins)
        return formula(attrs, *loaded)

    return b.compute("y", outs[0].shape, element)


def broadcast_type(
    name: str, accepts: Accepts, result: DType | None, _: Attrs, ins: Sequence[TensorType | None]
) -> TensorType:
    """Type rule: operands of one element type broadcast; `result` is another one for the output."""
    given = [t for t in ins if t is not None]
    dtype = same_dtype(name, given)
    check_dtype(name, accepts, dtype)
    return TensorType(result or dtype, broadcast_shapes(name, *(t.shape for t in given)))


def row(
    name: str,
    formula: Formula,
    accepts: Accepts = numbers,
    *,
    infer: Infer | None = None,
    result: DType | None = None,
    attrs: type[Attrs] = Attrs,
    propagate: ValueRule | None = None,
    vjp: Vjp | None = None,
    flops: int = 1,
    doc: str,
) -> Op:
    """The row of an elementwise operator."""
    return Op(
        name,
        infer or partial(broadcast_type, name, accepts, result),
        "injective",
        attrs,
        te=partial(pointwise, formula),
        propagate=propagate,
        flops=flops,
        vjp=vjp,
        doc=doc,
    )


def unary_vjp(rule: Callable[[Value, Value, Value], Value]) -> Vjp:
    """The gradient rule of an operator with one operand: `rule(x, y, dy)`."""
    return lambda _, ins, y, dy: (rule(ins[0], y, dy),)


def is_pointwise(op: Op) -> bool:
    """Whether an operator works element by element on broadcast operands."""
    return isinstance(op.te, partial) and op.te.func is pointwise


def function(fn: str) -> Formula:
    """The formula that calls one mathematical function."""
    return lambda _, *x: call(fn, *x)


def wide(formula: Formula) -> Formula:
    """`formula` computed in f32 where elements are 16-bit floats: for more than one rounding."""

    @wraps(formula)
    def widened(attrs: Attrs, x: Expr, *rest: Expr) -> Expr:
        to = accumulator(x.dtype)
        return cast(x.dtype, formula(attrs, *(cast(to, e) for e in (x, *rest))))

    return widened


def known(rule: Callable[..., Expr]) -> ValueRule:
    """The value rule that applies `rule` to broadcast elements."""

    def apply(_: Any, values: Sequence[np.ndarray]) -> np.ndarray:
        found = np.frompyfunc(rule, len(values), 1)(*values)
        if isinstance(found, np.ndarray):
            return found
        boxed = np.empty((), dtype=object)  # NumPy unwraps results of rank 0
        boxed[()] = found
        return boxed

    return apply


def decided(truth: Expr) -> Expr:
    """`truth` as a constant if it is the same for all sizes; sizes are not negative."""
    span = bound(truth, {}, NATURAL)
    return truth if span.lo is None or span.lo != span.hi else const(span.lo, BOOL)
