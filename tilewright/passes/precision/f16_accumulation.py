"""f16 accumulation: products of f16 sum chunks in f16, and the sums of chunks in f32.

    matmul(x, w)     →   matmul_f16acc(x, w)                            sums that divide into chunks
    conv(x, w)       →   cast[f16](conv(cast[f32](x), cast[f32](w)))  sums that do not

Vectors of f16 hold twice as many elements as those of f32. A sum of a few terms loses little in
f16; `ops.accumulation` defines the size of a chunk, and which sums divide into chunks.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import F16, F32
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.accumulation import F16_CHUNK, accumulation_chunk
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import CpuTarget

PRODUCTS = ("matmul", "conv")


def f16_accumulation(graph: Graph, context: PassContext) -> Graph:
    """Let products of f16 sum a few terms at a time in f16; those that cannot are done in f32."""
    target = context.target
    if context.precision != "fp16" or not isinstance(target, CpuTarget):
        return graph
    return rewrite_graph(graph, _shortened) if target.computes_in_f16 else graph


def _shortened(g: Rewriter, n: Node) -> str | None:
    if (
        isinstance(n.attrs, FusedAttentionAttrs)
        and not n.attrs.f16_accumulate
        and n.type.dtype == F16
    ):
        size = as_int(n.type.shape[-1])
        short = size is not None and size <= F16_CHUNK
        return (
            g.add("fused_attention", *n.inputs, attrs=replace(n.attrs, f16_accumulate=True))
            if short
            else None
        )
    if n.op not in PRODUCTS or g.type(n.inputs[0]).dtype != F16:
        return None
    if accumulation_chunk(sum_extents(g, n)) is not None:
        return g.add(f"{n.op}_f16acc", *n.inputs, attrs=n.attrs)
    wide = (g.add("cast", i, attrs=CastAttrs(F32)) for i in n.inputs)
    return g.add("cast", g.add(n.op, *wide, attrs=n.attrs), attrs=CastAttrs(F16))


def sum_extents(g: Rewriter, n: Node) -> tuple[int, ...]:
    """The extents of the loops that a product sums over, 0 where not known."""
    weights = g.type(n.inputs[1]).shape
    if n.op == "matmul":
        return (as_int(weights[-2]) or 0,)
    return tuple(as_int(d) or 0 for d in (*weights[2:], weights[1]))
