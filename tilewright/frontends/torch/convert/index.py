"""Elements read from and written to places that tensors say."""

from __future__ import annotations

from tilewright.arith.expr import as_expr, const
from tilewright.core.dtypes import BOOL, I64
from tilewright.frontends.slice_bounds import add_slice
from tilewright.frontends.torch.context import (
    AtenCall,
    Converter,
    Result,
    TorchContext,
    axis_of,
)
from tilewright.frontends.torch.convert.shape import expanded
from tilewright.ir.types import Shape
from tilewright.ops.op import broadcast_shapes
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.indexing import GatherAttrs, GatherNdAttrs
from tilewright.ops.tensor.scatter import ScatterElementsAttrs, ScatterNdAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs

REDUCTIONS = {"add": "add", "sum": "add", "multiply": "mul", "prod": "mul"}
REDUCTIONS |= {"amax": "max", "amin": "min"}


def embedding(c: TorchContext, n: AtenCall) -> Result:
    """Rows of a table."""
    return c.add(n, "gather", n["weight"], n["indices"], attrs=GatherAttrs(0))


def index_select(c: TorchContext, n: AtenCall) -> Result:
    """Positions along an axis."""
    x = _with_axis(c, n, n["self"])
    axis = axis_of(n["dim"], c.type(x).rank)
    y = c.add(n, "gather", x, n["index"], attrs=GatherAttrs(axis))
    return c.reshape(n, y, n.type.shape)


def _with_axis(c: TorchContext, n: AtenCall, x: str) -> str:
    """A value that has an axis to count along: a scalar is its only element."""
    return x if c.type(x).rank else c.reshape(n, x, (const(1),))


def gather(c: TorchContext, n: AtenCall) -> Result:
    """For each element, a position along an axis; along the others it is the element's own."""
    if c.elements(n["index"]) is const(0):
        return c.add(n, "full", attrs=FullAttrs(n.type.shape, 0, n.dtype))
    x, index = (_with_axis(c, n, n[name]) for name in ("self", "index"))
    axis = axis_of(n["dim"], c.type(x).rank)
    y = c.add(n, "gather_elements", x, index, attrs=GatherAttrs(axis))
    return c.reshape(n, y, n.type.shape)


def scatter(reduction: str = "") -> Converter:
    """Elements, or one number, written to positions along an axis."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        unchanged: str = n["self"]
        if c.elements(n["index"]) is const(0):
            return unchanged
        x, index = (_with_axis(c, n, n[name]) for name in ("self", "index"))
        kind = reduction or REDUCTIONS.get(n.get("reduce", ""), "none")
        updates = c.operand(n, n.get("src", n.get("value")), n.dtype)
        if "value" in n.args:
            updates = expanded(c, n, updates, c.type(index).shape)
        updates = _first_of_each(c, n, _with_axis(c, n, updates), c.type(index).shape)
        attrs = ScatterElementsAttrs(axis_of(n["dim"], n.type.rank), kind)
        y = c.add(n, "scatter_elements", x, index, updates, attrs=attrs)
        return c.reshape(n, y, n.type.shape)

    return convert


def _first_of_each(c: TorchContext, n: AtenCall, x: str, shape: Shape) -> str:
    """As many elements along each axis as there are places."""
    old = c.type(x).shape
    cuts = {a: (const(0), size, 1) for a, size in enumerate(shape) if size != old[a]}
    return add_slice(c.g, x, cuts, n.name) if cuts else x


def _places(c: TorchContext, n: AtenCall) -> tuple[list[int], list[str]]:
    """Which axes are indexed, and by what."""
    axes, indices = [], []
    for axis, given in enumerate(n["indices"]):
        if given is None:
            continue
        if c.type(given).dtype == BOOL:
            raise n.unsupported("a mask as an index", "use torch.where, whose shape is known")
        axes.append(axis)
        indices.append(c.cast(n, given, I64))
    return axes, indices


def _tuples(c: TorchContext, n: AtenCall, indices: list[str]) -> str:
    """Indices that broadcast, as tuples along a new last axis."""
    shape = broadcast_shapes("index", *(c.type(i).shape for i in indices))
    wide = [c.reshape(n, expanded(c, n, i, shape), (*shape, const(1))) for i in indices]
    if len(wide) == 1:
        return wide[0]
    return c.add(n, "concat", *wide, attrs=ConcatAttrs(len(shape)))


def index(c: TorchContext, n: AtenCall) -> Result:
    """NumPy's advanced indexing by whole numbers."""
    x = n["self"]
    axes, indices = _places(c, n)
    if len(axes) == 1:
        return c.add(n, "gather", x, indices[0], attrs=GatherAttrs(axes[0]))
    rank = c.type(x).rank
    rest = [a for a in range(rank) if a not in axes]
    tuples = _tuples(c, n, indices)
    front = c.transpose(n, x, [*axes, *rest])
    y = c.add(n, "gather_nd", front, tuples, attrs=GatherNdAttrs())
    if axes != list(range(axes[0], axes[-1] + 1)):
        return y  # axes apart from each other: what they pick comes first
    picked = c.type(tuples).rank - 1
    ahead = [picked + i for i in range(axes[0])]
    behind = range(picked + axes[0], picked + len(rest))
    return c.transpose(n, y, [*ahead, *range(picked), *behind])


def _masked(c: TorchContext, n: AtenCall, mask: str) -> str:
    """One number written wherever a mask over the first axes holds."""
    x, value = n["self"], n["values"]
    behind = (const(1),) * (c.type(x).rank - c.type(mask).rank)
    condition = c.reshape(n, mask, (*c.type(mask).shape, *behind))
    number = c.reshape(n, c.cast(n, value, n.dtype), ())
    return c.add(n, "where", condition, number, x)


def index_put(c: TorchContext, n: AtenCall) -> Result:
    """Elements written to places that indices say together, or where one mask holds."""
    x, first = n["self"], n["indices"][0]
    if len(n["indices"]) == 1 and c.type(first).dtype == BOOL:
        return _masked(c, n, first)
    axes, indices = _places(c, n)
    rest = [a for a in range(c.type(x).rank) if a not in axes]
    perm = [*axes, *rest]
    tuples, front = _tuples(c, n, indices), c.transpose(n, x, perm)
    picked, others = c.type(tuples).shape[:-1], c.type(front).shape[len(axes) :]
    # Where the indexed axes lie side by side, what they pick stands in their place.
    ahead = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
    shape = (*others[:ahead], *picked, *others[ahead:])
    values = expanded(c, n, c.cast(n, n["values"], n.dtype), shape)
    order = [*range(ahead, ahead + len(picked)), *range(ahead)]
    values = c.transpose(n, values, [*order, *range(len(order), len(shape))])
    attrs = ScatterNdAttrs("add" if n["accumulate"] else "none")
    y = c.add(n, "scatter_nd", front, tuples, values, attrs=attrs)
    return c.transpose(n, y, sorted(range(len(perm)), key=perm.__getitem__))


def index_copy(c: TorchContext, n: AtenCall) -> Result:
    """Rows written to places along an axis, as a key-value cache is."""
    x, given = (_with_axis(c, n, n[name]) for name in ("self", "source"))
    rank = c.type(x).rank
    axis = axis_of(n["dim"], rank)
    perm = [axis, *(a for a in range(rank) if a != axis)]
    back = sorted(range(rank), key=perm.__getitem__)
    rows = c.reshape(n, n["index"], (as_expr(c.elements(n["index"])), const(1)))
    front, source = (c.transpose(n, v, perm) for v in (x, given))
    y = c.add(n, "scatter_nd", front, rows, source, attrs=ScatterNdAttrs("none"))
    return c.reshape(n, c.transpose(n, y, back), n.type.shape)


CONVERTERS: dict[str, Converter] = {
    "aten.embedding": embedding,
    "aten.index_select": index_select,
    "aten.gather": gather,
    "aten.scatter": scatter(),
    "aten.scatter_add": scatter("add"),
    "aten.scatter_reduce": scatter(),
    "aten.index": index,
    "aten._unsafe_index": index,
    "aten.index_put": index_put,
    "aten._unsafe_index_put": index_put,
    "aten.index_copy": index_copy,
}
