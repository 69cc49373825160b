"""Operators that write elements to places given by indices: scatter_elements, scatter_nd.

The data is copied, then the updates are applied in order: along the other dimensions in parallel,
those that may meet in one place one after the other, so that the result is always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tilewright.arith.expr import Const, Expr, Load, Var, binary
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import For, Func, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op, fail, normalize_axis, same_dtype
from tilewright.ops.tensor.indexing import check_fits, check_indices, tuple_length, wrapped

# How an update joins what is there.
REDUCTIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "none": lambda old, new: new,
    **{name: partial(binary, name) for name in ("add", "mul", "min", "max")},
}


@node
class ScatterElementsAttrs(Attrs):
    """The axis that the indices count along, and how an update joins what is there."""

    axis: int = 0
    reduction: str = "none"


@node
class ScatterNdAttrs(Attrs):
    """How an update joins what is there."""

    reduction: str = "none"


def _check(op: str, reduction: str, ins: Sequence[TensorType]) -> None:
    if reduction not in REDUCTIONS:
        raise fail(op, f"no reduction {reduction!r}", f"use one of {', '.join(REDUCTIONS)}")
    if reduction != "none" and ins[0].dtype.kind == "complex":
        raise fail(op, f"updates of {ins[0].dtype} only replace what is there")
    same_dtype(op, (ins[0], ins[2]))


def _scatter_elements_type(attrs: ScatterElementsAttrs, ins: Sequence[TensorType]) -> TensorType:
    data, indices, updates = ins
    _check("scatter_elements", attrs.reduction, ins)
    axis = normalize_axis("scatter_elements", attrs.axis, data.rank)
    check_fits("scatter_elements", data, indices, axis)
    check_indices("scatter_elements", data, indices, (axis,))
    if indices.shape != updates.shape:
        raise fail("scatter_elements", f"indices {indices} and updates {updates} differ in shape")
    return data


def _scatter_nd_type(attrs: ScatterNdAttrs, ins: Sequence[TensorType]) -> TensorType:
    data, indices, updates = ins
    _check("scatter_nd", attrs.reduction, ins)
    length = tuple_length("scatter_nd", data, indices, 0)
    check_indices("scatter_nd", data, indices, range(length))
    if updates.shape != (*indices.shape[:-1], *data.shape[length:]):
        raise fail("scatter_nd", f"updates {updates} do not fit data {data}, indices {indices}")
    return data


def _scatter(
    name: str, ins: Sequence[TensorType], outs: Sequence[TensorType], updates: Stmt
) -> Func:
    buffers = parameters(ins, outs)

    def copy(*i: Expr) -> Stmt:
        return Store("y0", i, Load("x0", i, ins[0].dtype))

    copied = spatial_block("copy", outs[0].shape, copy, buffers)
    return Func(name, tuple(buffers.values()), ("y0",), Seq((copied, updates)))


def _update(reduction: str, data: TensorType, place: tuple[Expr, ...], new: Expr) -> Stmt:
    return Store("y0", place, REDUCTIONS[reduction](Load("y0", place, data.dtype), new))


def _scatter_elements(
    attrs: ScatterElementsAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    data, indices, _ = ins
    axis = normalize_axis("scatter_elements", attrs.axis, data.rank)
    others = (*indices.shape[:axis], *indices.shape[axis + 1 :])

    def body(*rest: Expr) -> Stmt:
        source = (*rest[:axis], Var("at.n"), *rest[axis:])
        index = wrapped(Load("x1", source, indices.dtype), data.shape[axis])
        place = (*rest[:axis], index, *rest[axis:])
        update = _update(attrs.reduction, data, place, Load("x2", source, data.dtype))
        return For("at.n", indices.shape[axis], "serial", update)

    buffers = parameters(ins, outs)
    return _scatter("scatter_elements", ins, outs, spatial_block("update", others, body, buffers))


def _scatter_nd(
    attrs: ScatterNdAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    data, indices, _ = ins
    length = tuple_length("scatter_nd", data, indices, 0)
    counters = [f"n{d}" for d in range(indices.rank - 1)]
    outer = tuple(Var(n) for n in counters)

    def body(*inner: Expr) -> Stmt:
        found = [Load("x1", (*outer, Const(k)), indices.dtype) for k in range(length)]
        place = (*map(wrapped, found, data.shape[:length]), *inner)
        update = _update(attrs.reduction, data, place, Load("x2", (*outer, *inner), data.dtype))
        return nest(counters, indices.shape[:-1], update)

    buffers = parameters(ins, outs)
    return _scatter(
        "scatter_nd", ins, outs, spatial_block("update", data.shape[length:], body, buffers)
    )


OPS = (
    Op(
        "scatter_elements",
        _scatter_elements_type,
        "opaque",
        ScatterElementsAttrs,
        loops=_scatter_elements,
        doc="Single elements written to places given by their indices along one axis.",
    ),
    Op(
        "scatter_nd",
        _scatter_nd_type,
        "opaque",
        ScatterNdAttrs,
        loops=_scatter_nd,
        doc="Slices written to places given by tuples of indices.",
    ),
)
