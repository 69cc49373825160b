"""Elements read from and written to places that tensors say."""

from __future__ import annotations

from tilewright.arith.expr import as_expr, const
from tilewright.core.dtypes import BOOL, I64
from tilewright.frontends.torch.context import (
    AtenCall,
    Converter,
    Result,
    TorchContext,
    ValueName,
    axis_of,
)
from tilewright.frontends.torch.convert.shape import expanded
from tilewright.ops.op import broadcast_shapes
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
    axis = axis_of(n["dim"], c.type(n["self"]).rank)
    return c.add(n, "gather", n["self"], n["index"], attrs=GatherAttrs(axis))


def gather(c: TorchContext, n: AtenCall) -> Result:
    """For each element, a position along an axis; along the others it is the element's own."""
    axis = axis_of(n["dim"], c.type(n["self"]).rank)
    return c.add(n, "gather_elements", n["self"], n["index"], attrs=GatherAttrs(axis))


def scatter(reduction: str = "") -> Converter:
    """Elements, or one number, written to positions along an axis."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        index = n["index"]
        kind = reduction or REDUCTIONS.get(n.get("reduce", ""), "none")
        if n.get("include_self", True) is False or n.get("reduce") == "mean":
            raise n.unsupported("this way of joining", "sum, prod, amax, amin with what is there")
        updates = n.get("src", n.get("value"))
        if isinstance(updates, ValueName):
            updates = c.cast(n, updates, n.dtype)
        else:
            updates = expanded(c, n, c.operand(n, updates, n.dtype), c.type(index).shape)
        if c.type(updates).shape != c.type(index).shape:
            raise n.unsupported("more elements than places", "give as many elements as places")
        attrs = ScatterElementsAttrs(axis_of(n["dim"], n.type.rank), kind)
        return c.add(n, "scatter_elements", n["self"], index, updates, attrs=attrs)

    return convert


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
    if c.elements(value) is not const(1) or n["accumulate"]:
        raise n.unsupported("several elements behind a mask", "use torch.where or masked_fill")
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
    x, axis = n["self"], axis_of(n["dim"], n.type.rank)
    perm = [axis, *(a for a in range(n.type.rank) if a != axis)]
    back = sorted(range(len(perm)), key=perm.__getitem__)
    rows = c.reshape(n, n["index"], (as_expr(c.elements(n["index"])), const(1)))
    front, source = (c.transpose(n, v, perm) for v in (x, n["source"]))
    y = c.add(n, "scatter_nd", front, rows, source, attrs=ScatterNdAttrs("none"))
    return c.transpose(n, y, back)


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
