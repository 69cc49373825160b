"""Transposed convolutions as one GEMM of all taps, followed by `col2im`, where that is faster.

    conv_transpose(x, w)   →   col2im(matmul(w', x))

With constant weights they would be decomposed to plain convolutions, one for some of the phases
each (`polyphase`). Those are slow where they have few filters; see `conv_transpose_cost`.
"""

from __future__ import annotations

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import F32, F64
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.conv.conv import ConvTransposeAttrs
from tilewright.ops.conv.conv_transpose import convolve_blocks
from tilewright.passes.context import PassContext
from tilewright.passes.conv.conv_transpose_cost import TransposedShape, is_gemm_faster
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import CpuTarget

# A symbolic batch is often one image.
TYPICAL_BATCH = 1


def conv_transpose_to_gemm(graph: Graph, context: PassContext) -> Graph:
    """Compute transposed convolutions as one GEMM and `col2im` where that is faster."""
    target = context.target
    # A GEMM of constant rows and columns that are computed is not one for 16-bit units.
    if not isinstance(target, CpuTarget) or context.precision != "f32":
        return graph
    return rewrite_graph(graph, lambda g, n: _rule(g, n, target), of=("conv_transpose",))


def _rule(g: Rewriter, n: Node, target: CpuTarget) -> str | None:
    attrs = n.attrs
    if n.op != "conv_transpose" or not isinstance(attrs, ConvTransposeAttrs):
        return None
    if attrs.layout != "channels_first" or n.type.dtype not in (F32, F64):
        return None
    shape = _shape(g, n, attrs)
    if shape is None or not is_gemm_faster(shape, target):
        return None
    return convolve_blocks(g, attrs, *n.inputs)


def _shape(g: Rewriter, n: Node, attrs: ConvTransposeAttrs) -> TransposedShape | None:
    """The node in numbers; `None` where one of them is not known."""
    x, w = (g.type(name).shape for name in n.inputs)
    size, result, weights = ([as_int(d) or 0 for d in s] for s in (x[2:], n.type.shape[2:], w))
    if 0 in (*size, *result, *weights):
        return None
    return TransposedShape(
        as_int(x[0]) or TYPICAL_BATCH,
        tuple(size),
        tuple(result),
        tuple(weights[2:]),
        attrs.strides,
        attrs.before,
        weights[0] // attrs.groups,
        weights[1] * attrs.groups,
        attrs.groups,
        n.type.dtype.bits,
    )
