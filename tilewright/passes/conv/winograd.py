"""Convolutions with many channels by Winograd's method.

    conv(x, w)   →   winograd_output(matmul(winograd_input(x), w'))

It computes fewer products but moves the image through two transforms, so it pays where a pixel
meets many filters (`winograd_cost`). The sums are reassociated: results differ in the last bits.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, as_int, const, product
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import F16, F32, DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TYPICAL_SIZE, TensorType
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.sliding_window import spatial
from tilewright.ops.conv.winograd import WinogradAttrs, transform_filter
from tilewright.ops.elementwise.define import is_pointwise
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.conv.winograd_cost import (
    MIN_GAIN,
    ConvShape,
    best_tile,
    direct_cycles,
    least_cycles,
)
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import CpuTarget

# A symbolic batch is often one image.
TYPICAL_BATCH = 1
MAX_AXES = 2


def winograd(graph: Graph, context: PassContext) -> Graph:
    """Compute wide convolutions with fewer multiplications."""
    target = context.target
    if not isinstance(target, CpuTarget):
        return graph
    turned = {n.name for n in graph.nodes if n.op == "conv" and _is_transposed_next(graph, n)}
    return rewrite_graph(graph, lambda g, n: _rule(g, n, n.name in turned, target), of=("conv",))


def _is_transposed_next(graph: Graph, n: Node) -> bool:
    """Whether only a transpose reads the result, perhaps after elementwise operators."""
    readers = graph.consumers.get(n.name, ())
    if len(readers) != 1 or n.name in graph.output_set:
        return False
    reader = readers[0]
    if reader.op == "transpose":
        return True
    return is_pointwise(get_op(reader.op)) and _is_transposed_next(graph, reader)


def winograd_tile(
    n: Node, weights: TensorType, target: CpuTarget, transposed: bool = False
) -> tuple[int, ...] | None:
    """The output tile by which a convolution is computed, in whichever layout it is now.

    `None` where it stays as it is: Winograd's method does not pay, or does not apply. `weights` is
    the type of what must be a constant; `transposed` says that the result is transposed next.
    """
    shape = _shape(n, weights, target)
    return None if shape is None else best_tile(replace(shape, transposed=transposed), target)


def winograd_share(n: Node, weights: TensorType, target: CpuTarget) -> float:
    """The part of a convolution's time that Winograd's method leaves; all where it does not pay."""
    shape = _shape(n, weights, target)
    return 1.0 if shape is None else least_cycles(shape, target) / direct_cycles(shape, target)


def is_shorter_in(dtype: DType, n: Node, weights: TensorType, target: CpuTarget) -> bool:
    """Whether a convolution takes clearly less time in `dtype`, by larger tiles, than as it is."""
    shapes = [_shape(n, replace(weights, dtype=d), target) for d in (dtype, weights.dtype)]
    if None in shapes:
        return False
    cycles = [least_cycles(s, target) for s in shapes if s is not None]
    return cycles[0] * MIN_GAIN < cycles[1]


def _shape(n: Node, weights: TensorType, target: CpuTarget) -> ConvShape | None:
    """A convolution in numbers; `None` where Winograd's method does not apply."""
    attrs = n.attrs
    if n.op != "conv" or type(attrs) is not ConvAttrs or not _applies(attrs, weights, target):
        return None
    filters, channels, *window = (as_int(d) or 0 for d in weights.shape)
    sizes = tuple(_typical(d, TYPICAL_SIZE) for d in spatial(attrs.layout, n.type.shape))
    batch = _typical(n.type.shape[0], TYPICAL_BATCH)
    if 0 in (*sizes, *window, channels, filters):
        return None
    return ConvShape(batch, sizes, tuple(window), channels, filters, weights.dtype.bits)


def _applies(attrs: ConvAttrs, weights: TensorType, target: CpuTarget) -> bool:
    steps = {*attrs.strides, *attrs.dilations}
    computed = (F32, F16) if target.computes_in_f16 else (F32,)
    return (
        attrs.groups == 1
        and steps == {1}
        and len(attrs.strides) <= MAX_AXES
        and weights.dtype in computed
    )


def _typical(size: Expr, typical: int) -> int:
    return evaluate(size, dict.fromkeys(free_vars(size), typical))


def _rule(g: Rewriter, n: Node, transposed: bool, target: CpuTarget) -> str | None:
    attrs = n.attrs
    if not isinstance(attrs, ConvAttrs) or attrs.layout != "channels_last":
        return None
    tile = winograd_tile(n, g.type(n.inputs[1]), target, transposed)
    weights = None if tile is None else g.constant_data(n.inputs[1])
    if tile is None or weights is None:
        return None
    settings = WinogradAttrs(tile, weights.shape[2:], attrs.before, n.type.shape[1:-1])
    windows = g.add("winograd_input", n.inputs[0], attrs=settings)
    tiles = product((n.type.shape[0], *settings.tiles))
    rows = (const(prod(settings.points)), tiles, const(weights.shape[1]))
    left = g.add("reshape", windows, attrs=ReshapeAttrs(rows))
    products = g.add("matmul", left, g.constant(transform_filter(weights, tile)))
    grid = (*g.type(windows).shape[:-1], n.type.shape[-1])
    tiled = g.add("reshape", products, attrs=ReshapeAttrs(grid))
    return g.add("winograd_output", tiled, attrs=settings)
