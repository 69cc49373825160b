"""Dimensions that a model computes: a scalar in memory becomes the value of a named dimension.

    %positions: i64[N], %count: i64[1] = flatnonzero(%mask)
    %known: i64[1] = bind_dim(%count) {name="L", bound=N}
    %found: i64[L] = slice(%positions) {stops=[L]}

Types of later nodes may mention the dimension. Memory is planned for its bound, so that kernels
before and after are in one native function.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, as_int
from tilewright.core.dtypes import I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.op import Op, fail


@node
class BindDimAttrs(Attrs):
    """The name of the dimension and its upper bound; it is never negative."""

    name: str
    bound: Expr


def _bind_dim_type(_: BindDimAttrs, ins: Sequence[TensorType]) -> TensorType:
    if ins[0].dtype != I64 or as_int(ins[0].elements) != 1:
        raise fail("bind_dim", f"{ins[0]} is not one number", "use an i64 of one element")
    return ins[0]


def _itself(b: Builder, _: Attrs, ins: Sequence[Tensor], outs: Sequence[TensorType]) -> Tensor:
    return b.compute("y", outs[0].shape, lambda *i: ins[0].at(*i))


OPS = (
    Op(
        "bind_dim",
        _bind_dim_type,
        "opaque",
        BindDimAttrs,
        te=_itself,
        flops=0,
        doc="The number itself, which is from there on the value of a named dimension.",
    ),
)
