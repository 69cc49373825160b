"""nonzero_divisor: integers that something is divided by; a 0 among them ends the run.

It is a check like that of an index, in a dimension of the size `DIVISOR_SIZE` that no dimension
has: every other divisor has the only index in it, and a 0 has the index 1, which is reported.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, const, select
from tilewright.core.errors import DIVISOR_SIZE
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.op import Op, fail


def _type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    if not ins[0].dtype.is_integer:
        raise fail("nonzero_divisor", f"{ins[0]} is not of integers")
    return ins[0]


def _nonzero_divisor(
    b: Builder, _: Attrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    zero = const(0, outs[0].dtype)

    def element(*i: Expr) -> Expr:
        divisor = ins[0].at(*i)
        size, inside = const(DIVISOR_SIZE), const(DIVISOR_SIZE - 1)
        place = b.check(select(divisor.eq(zero), const(1), inside), inside, size)
        return select(place.eq(1), zero, divisor)  # the divisor itself, by way of its check

    return b.compute("y", outs[0].shape, element)


OPS = (
    Op(
        "nonzero_divisor",
        _type,
        "injective",
        te=_nonzero_divisor,
        checks=lambda attrs, ins: 1,
        flops=0,
        doc="Integers as they are; a 0 among them is an error.",
    ),
)
