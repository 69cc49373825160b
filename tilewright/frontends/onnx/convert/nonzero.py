"""Elements selected by value (NonZero, Compress): their number is data-dependent."""

from __future__ import annotations

from tilewright.arith.expr import Expr, const, minimum, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.ops.elementwise.arithmetic import CastAttrs, ModAttrs
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs


def nonzero(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The positions of elements that are not zero, a row for each axis."""
    x = n.required(0)
    shape = c.type(x).shape
    mask = c.add(n, "cast", x, attrs=CastAttrs(BOOL))
    found, count = positions(c, n, reshaped(c, n, mask, product(shape)))
    if not shape:  # a position has no numbers then
        none = SliceAttrs((const(0), const(0)), (const(0), count), (1, 1), inside=True)
        return (c.add(n, "slice", reshaped(c, n, found, const(1), count), attrs=none),)
    rows = [reshaped(c, n, row, const(1), count) for row in _unravelled(c, n, found, shape)]
    return (rows[0] if len(rows) == 1 else c.add(n, "concat", *rows, attrs=ConcatAttrs(0)),)


def compress(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The slices along an axis for which a row of truth values says so; else the elements."""
    x = n.required(0)
    rank = len(c.type(x).shape)
    axis = normalize_axis("Compress", n.int_attr("axis"), rank) if n.has_attr("axis") else 0
    if not n.has_attr("axis"):
        x = reshaped(c, n, x, c.type(x).elements)
    found, _ = positions(c, n, _condition(c, n, c.type(x).shape[axis]))
    return (c.add(n, "gather", x, found, attrs=GatherAttrs(axis, "clip")),)


def _condition(c: OnnxContext, n: OnnxNode, size: Expr) -> str:
    """The truth values as a row; what lies beyond the elements says nothing."""
    given = simplify(c.type(n.required(1)).elements)
    row = reshaped(c, n, n.input(1), given)
    fits = simplify(minimum(given, size))
    if fits == given:
        return row
    attrs = SliceAttrs((const(0),), (fits,), (1,), inside=True)
    return c.add(n, "slice", row, attrs=attrs)


def positions(c: OnnxContext, n: OnnxNode, mask: str) -> tuple[str, Expr]:
    """Where a row is true, and the size that says how often."""
    positions, number = c.g.add_many("flatnonzero", mask, names=("positions", "count"))
    count = c.bind_dim(n, number, c.type(mask).shape[0])
    attrs = SliceAttrs((const(0),), (count,), (1,), inside=True)
    return c.add(n, "slice", positions, attrs=attrs), count


def _unravelled(c: OnnxContext, n: OnnxNode, flat: str, shape: tuple[Expr, ...]) -> list[str]:
    """Positions in a row as positions along each axis."""
    rows = []
    for axis, size in enumerate(shape):
        inner = number(c, n, product(shape[axis + 1 :]))
        row = c.add(n, "div", flat, inner) if axis + 1 < len(shape) else flat
        rows.append(c.add(n, "mod", row, number(c, n, size), attrs=ModAttrs()) if axis else row)
    return rows


def number(c: OnnxContext, n: OnnxNode, size: Expr) -> str:
    """A size as a number in the model."""
    return c.add(n, "dims", attrs=DimsAttrs((simplify(size),), ()))


def reshaped(c: OnnxContext, n: OnnxNode, value: str, *shape: Expr) -> str:
    """A value under another shape."""
    return c.add(n, "reshape", value, attrs=ReshapeAttrs(shape))


CONVERTERS: dict[str, Converter] = {"NonZero": nonzero, "Compress": compress}
