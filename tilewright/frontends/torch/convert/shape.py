"""The same elements under another shape, in another order, or several times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arith.expr import Expr, as_expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.frontends.torch.context import (
    AtenCall,
    Converter,
    Result,
    TorchContext,
    axes_of,
    axis_of,
)
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.tensor.manipulation import ExpandAttrs, ReverseAttrs, TileAttrs, TriluAttrs


def view(c: TorchContext, n: AtenCall) -> Result:
    """Another shape, in which one size may be left open, or bits read as another type."""
    x = n["self"]
    if "dtype" in n.args:
        if c.type(x).dtype.bits != n.dtype.bits:
            raise n.unsupported("elements of another size", "types of one size")
        return c.add(n, "bitcast", x, attrs=CastAttrs(n.dtype))
    shape = [as_expr(d) for d in n.get("size", n.get("shape"))]
    open_sizes = [axis for axis, d in enumerate(shape) if as_int(d) == -1]
    for axis in open_sizes:
        rest = product(tuple(d for i, d in enumerate(shape) if i != axis))
        shape[axis] = simplify(c.elements(x) // rest)
    return c.reshape(n, x, shape)


def squeeze(c: TorchContext, n: AtenCall) -> Result:
    """Without axes of size 1: all, or those that are named."""
    shape = c.type(n["self"]).shape
    axes = () if n.get("dim") == [] else axes_of(n, len(shape))
    kept = [d for axis, d in enumerate(shape) if axis not in axes or d is not const(1)]
    return c.reshape(n, n["self"], kept)


def unsqueeze(c: TorchContext, n: AtenCall) -> Result:
    """With one more axis of size 1."""
    shape = list(c.type(n["self"]).shape)
    shape.insert(axis_of(n["dim"], len(shape) + 1), const(1))
    return c.reshape(n, n["self"], shape)


def permute(c: TorchContext, n: AtenCall) -> Result:
    """The axes in another order."""
    rank = c.type(n["self"]).rank
    return c.transpose(n, n["self"], [axis_of(a, rank) for a in n["dims"]])


def transpose(c: TorchContext, n: AtenCall) -> Result:
    """Two axes exchanged."""
    rank = c.type(n["self"]).rank
    perm = list(range(rank))
    if rank:
        a, b = axis_of(n["dim0"], rank), axis_of(n["dim1"], rank)
        perm[a], perm[b] = perm[b], perm[a]
    return c.transpose(n, n["self"], perm)


def transpose_matrix(c: TorchContext, n: AtenCall) -> Result:
    """A matrix transposed; a vector stays as it is."""
    return c.transpose(n, n["self"], list(reversed(range(c.type(n["self"]).rank))))


def expand(c: TorchContext, n: AtenCall) -> Result:
    """Repeated along axes of size 1; -1 leaves a size as it is."""
    return expanded(c, n, n["self"], n["size"])


def expanded(c: TorchContext, n: AtenCall, x: str, size: Sequence[Any]) -> str:
    """A value broadcast to a shape."""
    shape = c.type(x).shape
    given = [as_expr(d) for d in size]
    ahead = len(given) - len(shape)
    wanted: list[Expr] = [
        shape[axis - ahead] if as_int(d) == -1 else d for axis, d in enumerate(given)
    ]
    if tuple(wanted) == shape:
        return x
    return c.add(n, "expand", x, attrs=ExpandAttrs(tuple(wanted)))


def repeat(c: TorchContext, n: AtenCall) -> Result:
    """The whole several times along each axis."""
    repeats = tuple(as_expr(d) for d in n["repeats"])
    shape = c.type(n["self"]).shape
    x = c.reshape(n, n["self"], (*(const(1),) * (len(repeats) - len(shape)), *shape))
    return c.add(n, "tile", x, attrs=TileAttrs(repeats))


def flip(c: TorchContext, n: AtenCall) -> Result:
    """Backwards along axes; along none where none is named."""
    if not n["dims"]:
        return str(n["self"])
    axes = axes_of(n, c.type(n["self"]).rank, "dims")
    return c.add(n, "reverse", n["self"], attrs=ReverseAttrs(axes))


def triangle(upper: bool) -> Converter:
    """What lies on one side of a diagonal, zeros elsewhere."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        return c.add(n, "trilu", n["self"], attrs=TriluAttrs(upper, as_expr(n["diagonal"])))

    return convert


CONVERTERS: dict[str, Converter] = {
    **{f"aten.{name}": view for name in ("view", "_unsafe_view", "reshape", "view_copy")},
    "aten.squeeze": squeeze,
    "aten.unsqueeze": unsqueeze,
    "aten.permute": permute,
    "aten.transpose": transpose,
    "aten.t": transpose_matrix,
    "aten.expand": expand,
    "aten.repeat": repeat,
    "aten.flip": flip,
    "aten.tril": triangle(False),
    "aten.triu": triangle(True),
}
