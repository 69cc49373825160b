"""Operators with indices: Gather, Scatter and their variants, OneHot, TopK, ReverseSequence."""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, as_int, const
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, simple
from tilewright.frontends.onnx.convert.data_dependent import bound_dim, elements
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.indexing import (
    GatherAttrs,
    GatherNdAttrs,
    OneHotAttrs,
    ReverseSequenceAttrs,
)
from tilewright.ops.tensor.scatter import ScatterElementsAttrs, ScatterNdAttrs
from tilewright.ops.tensor.tensor_scatter import TensorScatterAttrs
from tilewright.ops.tensor.topk import TopKAttrs


def axis_attrs(n: OnnxNode) -> GatherAttrs:
    """The attribute `axis`, 0 by default."""
    return GatherAttrs(n.int_attr("axis", 0))


def gather(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Slices along an axis; a single index that is known is an ordinary slice."""
    x, indices = n.required(0), n.required(1)
    known = c.g.symbolic_value(indices)
    if known is None or known.size != 1 or not c.type(x).rank:
        return (c.add(n, "gather", x, indices, attrs=axis_attrs(n)),)
    shape = c.type(x).shape
    axis = normalize_axis("Gather", n.int_attr("axis", 0), len(shape))
    place: Expr = known.reshape(-1)[0]
    number, size = as_int(place), as_int(shape[axis])
    if number is not None and size is not None and not -size <= number < size:
        raise n.invalid(f"index {number} is outside dimension {axis} of {c.type(x)}")
    if number is not None and number < 0:
        place = shape[axis] + number
    cut = add_slice(c, x, {axis: (place, place + 1, 1)}, n.outputs[0])
    return (add_reshape(c, n, cut, (*shape[:axis], *map(const, known.shape), *shape[axis + 1 :])),)


def one_hot(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """One-hot vectors; the number of classes must be known."""
    if c.type(n.required(1)).dtype.is_integer:
        classes: Expr = n.only(c.known_ints(n, 1), 1)
    else:  # a number of any type may say how many
        depth = c.scalar(n, 1)
        if not math.isfinite(depth):
            raise n.invalid(f"{depth} classes")
        classes = const(int(depth))
    c.require(n, const(0) < classes, f"{classes} classes")
    attrs = OneHotAttrs(classes, n.int_attr("axis", -1))
    return (c.add(n, "one_hot", n.required(0), n.required(2), attrs=attrs),)


def topk(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The greatest or least elements; always sorted."""
    k, x = const(n.int_attr("k")) if n.has_attr("k") else _count(c, n), n.required(0)
    attrs = TopKAttrs(k, n.int_attr("axis", -1), bool(n.int_attr("largest", 1)))
    found = c.add_many(n, "topk", x, attrs=attrs)
    size = c.type(x).shape[attrs.axis]
    c.g.add_check((const(0) <= k) & (k <= size), f"TopK: {k} elements of {size}", n.loc)
    return found


def _count(c: OnnxContext, n: OnnxNode) -> Expr:
    """How many elements of a row are wanted; the model may compute it."""
    is_known = c.g.symbolic_value(n.required(1)) is not None
    given = c.known_ints(n, 1) if is_known else elements(c, n, 1, most=1)
    k = n.only(given, 1)
    if isinstance(k, Expr):
        return k
    x = c.type(n.required(0))
    axis = normalize_axis("TopK", n.int_attr("axis", -1), x.rank)
    return bound_dim(c, n, k, x.shape[axis])


def tensor_scatter(n: OnnxNode) -> TensorScatterAttrs:
    """How new elements are written into a cache."""
    mode = n.str_attr("mode", "linear")
    if mode not in ("linear", "circular"):
        raise n.invalid(f"mode is {mode!r}", "one of linear, circular")
    return TensorScatterAttrs(n.int_attr("axis", -2), mode == "circular")


CONVERTERS: dict[str, Converter] = {
    "Gather": gather,
    "GatherElements": simple("gather_elements", axis_attrs),
    "GatherND": simple("gather_nd", lambda n: GatherNdAttrs(n.int_attr("batch_dims", 0))),
    "Scatter": simple("scatter_elements", lambda n: ScatterElementsAttrs(n.int_attr("axis", 0))),
    "ScatterElements": simple(
        "scatter_elements",
        lambda n: ScatterElementsAttrs(n.int_attr("axis", 0), n.str_attr("reduction", "none")),
    ),
    "ScatterND": simple("scatter_nd", lambda n: ScatterNdAttrs(n.str_attr("reduction", "none"))),
    "TensorScatter": simple("tensor_scatter", tensor_scatter),
    "OneHot": one_hot,
    "TopK": topk,
    "ReverseSequence": simple(
        "reverse_sequence",
        lambda n: ReverseSequenceAttrs(n.int_attr("time_axis", 0), n.int_attr("batch_axis", 1)),
    ),
}
