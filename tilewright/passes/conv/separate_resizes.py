"""Separable resizes: sampling along several axes becomes sampling along one after the other.

    resize(x) {shape=[C, 2H, 2W]}   →   resample(resize(x) {shape=[C, 2H, W]}, places, weights)

Linear and cubic samples are sums of products of one weight an axis, so that 2 + 2 or 4 + 4 elements
do instead of 2 * 2 or 4 * 4. Along an outer axis whole rows are added. Along the last one every
element has a place of its own: places and weights are tables, computed here where sizes are known.
The axis that shrinks most, or grows least, comes first. Sums are reassociated.
"""

from __future__ import annotations

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import F32, F64
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape
from tilewright.ops.image.resize import ResizeAttrs, along_axis, resampled_axes, sample_tables
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph


def separate_resizes(graph: Graph, context: PassContext) -> Graph:
    """Sample along one axis after the other, by tables where rows are taken apart."""
    return rewrite_graph(graph, _rule, of=("resize",))


def _rule(g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if n.op != "resize" or not isinstance(attrs, ResizeAttrs):
        return None
    if n.type.dtype not in (F32, F64) or attrs.transform == "tf_crop_and_resize":
        return None
    x, shape = n.inputs[0], g.type(n.inputs[0]).shape
    axes = sorted(resampled_axes(attrs, shape), key=lambda d: (_growth(attrs, shape, d), d))
    if len(axes) == 1 and _tables(g, x, attrs, axes[0]) is None:
        return None
    for axis in axes:
        tables = _tables(g, x, attrs, axis)
        if tables is None:
            x = g.add("resize", x, attrs=along_axis(attrs, g.type(x).shape, axis))
        else:
            x = g.add("resample", x, *tables)
    return x


def _growth(attrs: ResizeAttrs, shape: Shape, axis: int) -> float:
    """The new size by the old one; 1 where that is not known."""
    old, new = as_int(shape[axis]), as_int(attrs.shape[axis])
    return new / old if old and new is not None else 1.0


def _tables(g: Rewriter, x: str, attrs: ResizeAttrs, axis: int) -> tuple[str, str] | None:
    """Places and weights along an axis, if it is the last one and they are known."""
    t = g.type(x)
    found = sample_tables(attrs, t.shape, axis, t.dtype) if axis == t.rank - 1 else None
    return None if found is None else (g.constant(found[0]), g.constant(found[1]))
