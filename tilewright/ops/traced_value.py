"""Values of a graph with Python's arithmetic, for rules that write an operator as a formula.

    x, slope = TracedValue(g, "x"), TracedValue(g, "slope")
    (x * slope + 1).name        # adds mul and add to g

Python numbers become constants of the other operand's element type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

import numpy as np

from tilewright.core.dtypes import DType
from tilewright.core.errors import TypeCheckError
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs
from tilewright.ir.types import Shape
from tilewright.ops.op import GraphOps

G_co = TypeVar("G_co", bound=GraphOps, covariant=True)


@dataclass(frozen=True)
class TracedValue(Generic[G_co]):
    """A value of the graph `g`; applying an operator adds a node and gives its result."""

    g: G_co
    name: str

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.g.type(self.name).dtype

    @property
    def shape(self) -> Shape:
        """The shape."""
        return self.g.type(self.name).shape

    def __add__(self, other: Self | float) -> Self:
        return self.apply("add", other)

    def __sub__(self, other: Self | float) -> Self:
        return self.apply("sub", other)

    def __mul__(self, other: Self | float) -> Self:
        return self.apply("mul", other)

    def __truediv__(self, other: Self | float) -> Self:
        return self.apply("div", other)

    def __neg__(self) -> Self:
        return self.apply("neg")

    def __rsub__(self, other: float) -> Self:
        return self.number(other) - self

    __radd__ = __add__
    __rmul__ = __mul__

    def called(self, name: str) -> Self:
        """Another value of the same graph."""
        return replace(self, name=name)

    def number(self, value: float) -> Self:
        """A constant of this value's element type."""
        try:
            data = np.asarray(value, dtype=self.dtype.numpy)
        except (OverflowError, ValueError) as error:  # an infinite number as an integer
            raise TypeCheckError(
                "tensor.number", f"{value} is no {self.dtype}", help="use another element type"
            ) from error
        return self.called(self.g.constant(data))

    def apply(self, op: str, *others: Self | float, attrs: Attrs = NO_ATTRS) -> Self:
        """An operator on this value and others."""
        operands = [v if isinstance(v, TracedValue) else self.number(v) for v in others]
        names = (self.name, *(v.name for v in operands))
        return self.called(self.g.add(op, *names, attrs=attrs))

    def cast(self, dtype: DType) -> Self:
        """The value in another element type; itself where it has it already."""
        return self.called(self.g.cast(self.name, dtype))

    def reshape(self, shape: Shape) -> Self:
        """The value under another shape; itself where it has it already."""
        return self.called(self.g.reshape(self.name, shape))


# What operators' rules are written for: a value of any graph that nodes are added to.
Value = TracedValue[GraphOps]
V = TypeVar("V", bound=Value)


def where(condition: V, yes: V, no: V) -> V:
    """`yes` where the condition holds, else `no`."""
    return condition.apply("where", yes, no)
