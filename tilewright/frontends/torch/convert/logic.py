"""Comparison, logic on truth values and bits, choice."""

from __future__ import annotations

from tilewright.core.dtypes import BOOL
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext
from tilewright.ops.elementwise.logic import ShiftAttrs


def comparison(op: str) -> Converter:
    """Two operands compared in the type that both are promoted to."""
    return lambda c, n: _compared(c, n, op)


def _compared(c: TorchContext, n: AtenCall, op: str) -> str:
    return c.add(n, op, *c.operands(n, n["self"], n["other"]))


def not_equal(c: TorchContext, n: AtenCall) -> Result:
    """Whether two operands differ."""
    return c.add(n, "not", _compared(c, n, "equal"))


def logical(op: str) -> Converter:
    """Operands as truth values."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        names = ("self", "other") if "other" in n.args else ("self",)
        return c.add(n, op, *(c.operand(n, n[name], BOOL) for name in names))

    return convert


def bitwise(op: str) -> Converter:
    """On bits; truth values have one."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        names = ("self", "other") if "other" in n.args else ("self",)
        values = (c.operand(n, n[name], n.dtype) for name in names)
        return c.add(n, op if n.dtype == BOOL else f"bitwise_{op}", *values)

    return convert


def shift(left: bool) -> Converter:
    """Bits moved; as many as there are or more, or fewer than none, are all of them."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x, count = (c.operand(n, n[name], n.dtype) for name in ("self", "other"))
        below = c.add(n, "less", count, c.constant(0, n.dtype))
        every = c.constant(n.dtype.bits, n.dtype)
        count = c.add(n, "where", below, every, count)
        return c.add(n, "bit_shift", x, count, attrs=ShiftAttrs(left))

    return convert


def choose(c: TorchContext, n: AtenCall) -> Result:
    """One of two values for each element."""
    condition = c.cast(n, n["condition"], BOOL)
    a, b = (c.operand(n, n[name], n.dtype) for name in ("self", "other"))
    return c.add(n, "where", condition, a, b)


def masked_fill(c: TorchContext, n: AtenCall) -> Result:
    """A number where a mask holds."""
    filled = c.operand(n, n["value"], n.dtype)
    return c.add(n, "where", n["mask"], filled, c.operand(n, n["self"], n.dtype))


def test(op: str) -> Converter:
    """A question that is false of every integer."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x = n["self"]
        if c.type(x).dtype.is_float:
            return c.add(n, op, x)
        zero = c.cast(n, c.add(n, "sub", x, x), BOOL)
        return zero

    return convert


CONVERTERS: dict[str, Converter] = {
    "aten.eq": comparison("equal"),
    "aten.ne": not_equal,
    "aten.lt": comparison("less"),
    "aten.le": comparison("less_or_equal"),
    "aten.gt": comparison("greater"),
    "aten.ge": comparison("greater_or_equal"),
    "aten.logical_and": logical("and"),
    "aten.logical_or": logical("or"),
    "aten.logical_xor": logical("xor"),
    "aten.logical_not": logical("not"),
    "aten.bitwise_and": bitwise("and"),
    "aten.bitwise_or": bitwise("or"),
    "aten.bitwise_xor": bitwise("xor"),
    "aten.bitwise_not": bitwise("not"),
    **{f"aten.{name}": shift(True) for name in ("bitwise_left_shift", "__lshift__")},
    **{f"aten.{name}": shift(False) for name in ("bitwise_right_shift", "__rshift__")},
    "aten.isnan": test("is_nan"),
    "aten.isinf": test("is_inf"),
    "aten.where": choose,
    "aten.masked_fill": masked_fill,
}
