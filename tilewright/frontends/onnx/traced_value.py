"""Formulas of values, for converters that write an operator as arithmetic.

    x, slope = Formula(c, n, n.required(0)), Formula(c, n, n.required(1))
    (x * slope + 1).name

Python numbers become constants of the other operand's element type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilewright.core.dtypes import DType
from tilewright.frontends.onnx.context import Context, OnnxNode
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs

Operand: TypeAlias = "Formula | float | int"


@dataclass(frozen=True)
class Formula:
    """A value of the graph that operators are applied to."""

    c: Context
    n: OnnxNode
    name: str

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.c.type(self.name).dtype

    def __add__(self, other: Operand) -> Formula:
        return self.apply("add", other)

    def __sub__(self, other: Operand) -> Formula:
        return self.apply("sub", other)

    def __mul__(self, other: Operand) -> Formula:
        return self.apply("mul", other)

    def __truediv__(self, other: Operand) -> Formula:
        return self.apply("div", other)

    def __neg__(self) -> Formula:
        return self.apply("neg")

    def __rsub__(self, other: float) -> Formula:
        return self.number(other) - self

    __radd__ = __add__
    __rmul__ = __mul__

    def number(self, value: float) -> Formula:
        """A constant of this value's element type."""
        return Formula(self.c, self.n, self.c.constant(value, self.dtype))

    def apply(self, op: str, *others: Operand, attrs: Attrs = NO_ATTRS) -> Formula:
        """An operator on this value and others."""
        operands = [v if isinstance(v, Formula) else self.number(v) for v in others]
        names = (self.name, *(v.name for v in operands))
        return Formula(self.c, self.n, self.c.add(self.n, op, *names, attrs=attrs))

    def cast(self, dtype: DType) -> Formula:
        """The value in another element type."""
        return Formula(self.c, self.n, self.c.cast(self.n, self.name, dtype))


def where(condition: Formula, yes: Formula, no: Formula) -> Formula:
    """`yes` where the condition holds, else `no`."""
    return condition.apply("where", yes, no)
