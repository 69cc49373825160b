"""Attention as one operator: what `fuse_attention` makes of two products and a softmax.

    y = fused_attention(q, k, v, mask, lengths, bias)    # softmax(scale * q k' + bias + mask) v

The logical shapes are `[batches, queries, size]`, `[batches, keys, size]` and
`[batches, keys, value size]`; batches of keys and values broadcast against those of queries.
Permutations describe other storage orders of the operands and of the result: the loops read and
write them in place, without transposed copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr, const, product
from tilewright.core.dtypes import BOOL, DType
from tilewright.ir.graph.text import print_attrs
from tilewright.ir.loop.annotations import ATTENTION
from tilewright.ir.loop.nodes import Func
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.accumulation import accumulator
from tilewright.ops.attention.flash_loops import flash_attention_func
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem, permuted
from tilewright.ops.op import Op, broadcast_shapes, fail, same_dtype
from tilewright.ops.reduction.softmax import FULLY_MASKED

# What a score costs besides its products.
EXP_FLOPS = 14


def _fused_attention_type(
    attrs: FusedAttentionAttrs, ins: Sequence[TensorType | None]
) -> TensorType:
    dtype = same_dtype("fused_attention", [t for t in ins[:3] if t is not None])
    p = Problem(attrs, tuple(ins), TensorType(dtype, ()))
    q, k, v = p.q, p.k, p.v
    if not len(q) == len(k) == len(v) or len(q) < 2 or not dtype.is_float:
        raise fail("fused_attention", f"{q}, {k} and {v} must be floats of one rank, at least 2")
    if q[-1] is not k[-1] or k[-2] is not v[-2] or attrs.fully_masked not in FULLY_MASKED:
        raise fail("fused_attention", f"sizes of {q}, {k} and {v} do not fit")
    batch = broadcast_shapes("fused_attention", q[:-2], k[:-2], v[:-2])
    if batch != q[:-2]:
        raise fail("fused_attention", f"batches of {k} and {v} do not broadcast to those of {q}")
    mask, lengths, bias = (*ins, None, None, None)[3:6]
    scores = (*batch, q[-2], k[-2])
    _check_mask("mask", mask, (BOOL, dtype, accumulator(dtype)), scores)
    _check_mask("bias", bias, (dtype, accumulator(dtype)), scores)
    if (lengths is None) == attrs.bottom_right:
        raise fail(
            "fused_attention", "an offset from the end needs the lengths, and only that does"
        )
    return TensorType(dtype, permuted((*q[:-1], v[-1]), attrs.y_perm))


def _check_mask(name: str, mask: TensorType | None, dtypes: Sequence[DType], scores: Shape) -> None:
    if mask is None:
        return
    if mask.dtype not in dtypes or mask.rank > len(scores):
        raise fail(
            "fused_attention",
            f"{name} {mask} must be {' or '.join(map(str, dtypes))}, and broadcast",
        )
    if broadcast_shapes("fused_attention", scores, mask.shape) != scores:
        raise fail("fused_attention", f"{name} {mask} does not broadcast to {scores}")


def _fused_attention_loops(
    attrs: FusedAttentionAttrs, ins: Sequence[TensorType | None], outs: Sequence[TensorType]
) -> Func:
    problem = Problem(attrs, tuple(ins), outs[0])
    # GPUs have other blocks, see `tiled_loops.py`; `stated_problem.py` reads this.
    func = flash_attention_func(problem)
    return replace(func, annotations=((ATTENTION.key, print_attrs(attrs)),))


def _fused_attention_flops(
    attrs: FusedAttentionAttrs, ins: Sequence[TensorType | None], outs: Sequence[TensorType]
) -> Expr:
    p = Problem(attrs, tuple(ins), outs[0])
    scores = product((*p.q[:-1], p.k[-2]))
    return scores * (p.q[-1] * 2 + p.v[-1] * 2 + const(EXP_FLOPS))


OPS = (
    Op(
        "fused_attention",
        _fused_attention_type,
        "opaque",
        FusedAttentionAttrs,
        loops=_fused_attention_loops,
        flops=_fused_attention_flops,
        doc="Attention in one kernel: products, softmax and products, block by block.",
    ),
)
