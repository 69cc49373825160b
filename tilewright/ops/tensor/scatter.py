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
from tilewright.ops.shape.assumptions import same_shape
from tilewright.ops.tensor.indexing import check_fits, checks_one, tuple_length
from tilewright.ops.tensor.positions import Check, IndexedPlace, Sites, check_indices, place_of

# How an update joins what is there.
REDUCTIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "none": lambda old, new: new,
    **{name: partial(binary, name) for name in ("add", "mul", "min", "max")},
}


@node
class ScatterElementsAttrs(Attrs):
    """The axis that the indices count along, and how an update joins what is there.

    `mode` says what becomes of indices outside.
    """

    axis: int = 0
    reduction: str = "none"
    mode: str = "raise"


@node
class ScatterNdAttrs(Attrs):
    """How an update joins what is there, and what becomes of indices outside."""

    reduction: str = "none"
    mode: str = "raise"


def _check_updates(op: str, reduction: str, ins: Sequence[TensorType]) -> None:
    if reduction not in REDUCTIONS:
        raise fail(op, f"no reduction {reduction!r}", f"use one of {', '.join(REDUCTIONS)}")
    if reduction != "none" and ins[0].dtype.kind == "complex":
        raise fail(op, f"updates of {ins[0].dtype} only replace what is there")
    same_dtype(op, (ins[0], ins[2]))


def _scatter_elements_type(attrs: ScatterElementsAttrs, ins: Sequence[TensorType]) -> TensorType:
    data, indices, updates = ins
    _check_updates("scatter_elements", attrs.reduction, ins)
    axis = normalize_axis("scatter_elements", attrs.axis, data.rank)
    check_fits("scatter_elements", data, indices, axis)
    check_indices("scatter_elements", attrs.mode, data, indices, (axis,))
    if not same_shape("scatter_elements", indices.shape, updates.shape):
        raise fail("scatter_elements", f"indices {indices} and updates {updates} differ in shape")
    return data


def _scatter_nd_type(attrs: ScatterNdAttrs, ins: Sequence[TensorType]) -> TensorType:
    data, indices, updates = ins
    _check_updates("scatter_nd", attrs.reduction, ins)
    length = tuple_length("scatter_nd", data, indices, 0)
    check_indices("scatter_nd", attrs.mode, data, indices, range(length))
    if not same_shape("scatter_nd", updates.shape, (*indices.shape[:-1], *data.shape[length:])):
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


def _check(mode: str) -> Check | None:
    return Sites().check if mode == "raise" else None


def _update(reduction: str, data: TensorType, place: IndexedPlace, new: Expr) -> Stmt:
    old = Load("y0", place.positions, data.dtype)
    return Store("y0", place.positions, REDUCTIONS[reduction](old, new), place.when)


def _scatter_elements(
    attrs: ScatterElementsAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    data, indices, _ = ins
    axis = normalize_axis("scatter_elements", attrs.axis, data.rank)
    others = (*indices.shape[:axis], *indices.shape[axis + 1 :])
    check = _check(attrs.mode)

    def body(*rest: Expr) -> Stmt:
        source = (*rest[:axis], Var("at.n"), *rest[axis:])
        index = Load("x1", source, indices.dtype)
        (found,), when = place_of((index,), (data.shape[axis],), check)
        place = IndexedPlace((*rest[:axis], found, *rest[axis:]), when)
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
    check = _check(attrs.mode)

    def body(*inner: Expr) -> Stmt:
        found = [Load("x1", (*outer, Const(k)), indices.dtype) for k in range(length)]
        places, when = place_of(found, data.shape[:length], check)
        place = IndexedPlace((*places, *inner), when)
        update = _update(attrs.reduction, data, place, Load("x2", (*outer, *inner), data.dtype))
        return nest(counters, indices.shape[:-1], update)

    buffers = parameters(ins, outs)
    return _scatter(
        "scatter_nd", ins, outs, spatial_block("update", data.shape[length:], body, buffers)
    )


def _checks_tuple(attrs: ScatterNdAttrs, ins: Sequence[TensorType]) -> int:
    return checks_one(attrs, ins) * tuple_length("scatter_nd", ins[0], ins[1], 0)


OPS = (
    Op(
        "scatter_elements",
        _scatter_elements_type,
        "opaque",
        ScatterElementsAttrs,
        loops=_scatter_elements,
        checks=checks_one,
        doc="Single elements written to places given by their indices along one axis.",
    ),
    Op(
        "scatter_nd",
        _scatter_nd_type,
        "opaque",
        ScatterNdAttrs,
        loops=_scatter_nd,
        checks=_checks_tuple,
        doc="Slices written to places given by tuples of indices.",
    ),
)
