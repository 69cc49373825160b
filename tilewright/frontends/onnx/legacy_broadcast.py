"""Operators of two operands that broadcast, in the forms of all versions.

Since version 7 operands broadcast as in NumPy. Before, the second one did so where the attribute
`broadcast` said so: its dimensions stood for those of the first from `axis` on, or for the last.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.arith.expr import const
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.manipulation import ReshapeAttrs

NUMPY_BROADCASTING = 7


def along_axis(c: OnnxContext, n: OnnxNode, value: str, rank: int, axis: int) -> str:
    """A value whose dimensions stand for those of a tensor of rank `rank` from `axis` on."""
    shape = c.type(value).shape
    behind = rank - axis - len(shape)
    if behind < 0:
        raise n.invalid(f"{c.type(value)} does not fit {rank} dimensions from axis {axis} on")
    if behind == 0 or not shape:
        return value
    return c.add(n, "reshape", value, attrs=ReshapeAttrs((*shape, *(const(1),) * behind)))


def broadcasting(op: str, attrs: Callable[[OnnxNode], Attrs] | None = None) -> Converter:
    """A converter to one operator of ours on two operands that broadcast."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        a, b = n.required(0), n.required(1)
        if n.opset < NUMPY_BROADCASTING and n.int_attr("broadcast", 0) and n.has_attr("axis"):
            rank = c.type(a).rank
            b = along_axis(c, n, b, rank, normalize_axis(n.op_type, n.int_attr("axis"), rank))
        return (c.add(n, op, a, b, attrs=NO_ATTRS if attrs is None else attrs(n)),)

    convert.__doc__ = f"The operator `{op}`."
    return convert


def prelu(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Before version 7 a vector of slopes is one a channel."""
    x, slope = n.required(0), n.required(1)
    is_vector = c.type(slope).rank == 1 and c.type(slope).elements is not const(1)
    if n.opset < NUMPY_BROADCASTING and is_vector:
        slope = along_axis(c, n, slope, c.type(x).rank, 1)
    return (c.add(n, "prelu", x, slope),)
