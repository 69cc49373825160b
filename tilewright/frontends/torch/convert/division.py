"""Quotients and remainders, as they are, cut off or rounded down."""

from __future__ import annotations

from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext, ValueName
from tilewright.frontends.torch.convert.widened import widened
from tilewright.ops.elementwise.arithmetic import ModAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.traced_value import TracedValue, where

Real = TracedValue[GraphBuilder]


def divide(c: TorchContext, n: AtenCall) -> Result:
    """The quotient by the mode that the call names."""
    mode = n.get("rounding_mode")
    return _quotient(c, n) if mode is None else _ROUNDED[mode](c, n)


def _operands(c: TorchContext, n: AtenCall) -> tuple[str, str]:
    """Dividend and divisor; of integers a divisor that may be 0 is checked, as in eager mode."""
    a, b = (c.operand(n, n[name], n.dtype) for name in ("self", "other"))
    if n.dtype.is_integer and (isinstance(n["other"], ValueName) or n["other"] == 0):
        b = c.add(n, "nonzero_divisor", b)
    return a, b


def _quotient(c: TorchContext, n: AtenCall) -> str:
    return c.add(n, "div", *_operands(c, n))


def _cut_off(c: TorchContext, n: AtenCall) -> str:
    return truncated(c, n, _quotient(c, n))


def truncated(c: TorchContext, n: AtenCall, x: str) -> str:
    """Rounded toward zero; integers are themselves."""
    if n.dtype.is_integer:
        return x
    negative = c.add(n, "less", x, c.constant(0, n.dtype))
    return c.add(n, "where", negative, c.add(n, "ceil", x), c.add(n, "floor", x))


def floor_divide(c: TorchContext, n: AtenCall) -> str:
    """The whole number below the quotient itself, not below what that is rounded to."""
    x, y = _operands(c, n)
    if n.dtype.is_integer:
        rest = c.add(n, "mod", x, y, attrs=ModAttrs())
        return c.add(n, "div", c.add(n, "sub", x, rest), y)
    a, b = (TracedValue(c.g, value) for value in (x, y))
    return _whole_below(a, b).name


def _whole_below(a: Real, b: Real) -> Real:
    """The quotient without its remainder, rounded to the whole number that it is all but.

    As in Python, that of 1 by 0.1 is 9, since 0.1 is a little more than a tenth.
    """
    zero = a.number(0)
    rest = a.apply("mod", b, attrs=ModAttrs(fmod=True))
    quotient = (a - rest) / b
    is_apart = b.apply("less", zero).apply("xor", rest.apply("less", zero))
    is_apart = is_apart.apply("and", rest.apply("equal", zero).apply("not"))
    quotient = where(is_apart, quotient - 1, quotient)
    below = quotient.apply("floor")
    below = where((quotient - below).apply("greater", 0.5), below + 1, below)
    plain = a / b
    # no more than its sign is left of a quotient that is 0
    below = where(quotient.apply("equal", zero), plain * zero, below)
    return where(b.apply("equal", zero), plain, below)


def remainder(is_fmod: bool) -> Converter:
    """With the sign of the dividend (`fmod`) or of the divisor."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        return c.add(n, "mod", *_operands(c, n), attrs=ModAttrs(is_fmod))

    return convert


# Eager rounds a quotient of 16-bit floats before it cuts it off, but not before it rounds it down.
_ROUNDED: dict[str, Converter] = {"floor": widened(floor_divide), "trunc": _cut_off}

CONVERTERS: dict[str, Converter] = {
    "aten.div": divide,
    "aten.true_divide": divide,
    "aten.floor_divide": _ROUNDED["floor"],
    "aten.fmod": remainder(True),
    "aten.remainder": remainder(False),
}
