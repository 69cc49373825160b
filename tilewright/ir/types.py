"""Types of graph values: tensors with symbolic shapes, sequences, optionals."""

from __future__ import annotations

from tilewright.arith.expr import Expr, as_expr, as_int, product
from tilewright.core.dtypes import DType
from tilewright.core.node import node

Shape = tuple[Expr, ...]
# Limits of a tensor: what a pointer of 48 bits addresses, and the rank of a NumPy array.
MAX_BYTES = 1 << 47
MAX_RANK = 64

# What cost models take a symbolic size to be.
TYPICAL_SIZE = 64


@node
class TensorType:
    """`f32[N, 64]`: an element type and a shape whose entries are expressions over named sizes."""

    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def elements(self) -> Expr:
        """The number of elements, as an expression."""
        return product(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape as integers, `None` if a dimension is symbolic."""
        sizes = tuple(as_int(d) for d in self.shape)
        return None if any(s is None for s in sizes) else tuple(s for s in sizes if s is not None)


@node
class SequenceType:
    """A list of values of one type."""

    element: Type

    def __str__(self) -> str:
        return f"seq({self.element})"


@node
class OptionalType:
    """A value that may be absent."""

    element: Type

    def __str__(self) -> str:
        return f"optional({self.element})"


Type = TensorType | SequenceType | OptionalType


def tensor(dtype: DType, *shape: Expr | int) -> TensorType:
    """`tensor(F32, n, 64)`, with integers promoted to expressions."""
    return TensorType(dtype, tuple(as_expr(d) for d in shape))
