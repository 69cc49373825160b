"""Attention with bf16 operands on a matrix unit (AMX), where the precision allows it.

    fused_attention(q, k, v)   →   fused_attention(q, k, v) {bf16_operands=true}

Queries, keys, values and softmax weights are rounded as they are packed for the unit; scores, the
softmax and all sums are f32.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.attention.problem import UNIT_TILE, FusedAttentionAttrs, Problem
from tilewright.passes.context import PassContext, PrecisionNote
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import CpuTarget

# Fewer queries than this leave most of a block of rows empty.
MIN_ROWS = UNIT_TILE // 2


def bf16_attention(graph: Graph, context: PassContext) -> Graph:
    """Let the products of attention run in bf16 where the machine gains by it, if allowed."""
    target = context.target
    if context.precision != "bf16" or not isinstance(target, CpuTarget):
        return graph

    def rule(g: Rewriter, n: Node) -> str | None:
        if n.op != "fused_attention":
            return None
        assert isinstance(n.attrs, FusedAttentionAttrs)
        types = [g.type(i) if i else None for i in n.inputs]
        obstacle = _obstacle(Problem(n.attrs, tuple(types), n.type), target)
        reason = obstacle or "the machine multiplies tiles of bf16, sums in f32"
        what = " x ".join(f"{t}" for t in types[:3])
        precision = "f32" if obstacle else "bf16"
        note = PrecisionNote(n.name, f"fused_attention {what}", precision, reason)
        context.log.precision.append(note)
        if obstacle:
            return None
        return g.add("fused_attention", *n.inputs, attrs=replace(n.attrs, bf16_operands=True))

    return rewrite_graph(graph, rule)


def _obstacle(p: Problem, target: CpuTarget) -> str | None:
    """Why attention stays in f32."""
    if target.bf16_gemm != "amx":
        return "this machine has no unit for matrices of bf16"
    if p.out.dtype != F32:
        return f"its operands are {p.out.dtype}"
    rows, keys = as_int(p.q[-2]), as_int(p.k[-2])
    if rows is None or keys is None:
        return "its lengths are known only when it runs"
    if rows < MIN_ROWS or keys < MIN_ROWS:
        return f"{rows} queries of {keys} keys leave most of a tile empty"
    if keys > p.key_block:
        return f"its {keys} keys are walked in blocks"
    sizes = as_int(p.q[-1]) or 1, as_int(p.v[-1]) or 1
    if any(size % UNIT_TILE for size in sizes):
        return f"heads of {sizes[0]} and {sizes[1]} are not made of whole tiles"
    return None
