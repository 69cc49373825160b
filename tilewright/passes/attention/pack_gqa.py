"""PackGQA (GPU): the queries of heads that share keys and values become the rows of one tile.

    %y = fused_attention(%q, %k, %v)          %q: [b, 8, 4, 1, d]     %k: [b, 8, 1, n, d]
      →
    %y = fused_attention(%q4, %k4, %v4)       %q4: [b, 8, 4, d]       %k4: [b, 8, n, d]

Keys and values are then read once for all of them. `fold_repeat_kv` brings heads into that form.
Heads are not packed where a mask or a window distinguishes their queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tilewright.arith.expr import as_int, const
from tilewright.arith.simplify import prove
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.passes.attention.gpu_attention import TILE_ROWS, fits_tensor_cores
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.gpu import GpuTarget

ONE = const(1)
# Queries are `[batch, heads, group, length, size]`.
RANK, GROUP, LENGTH = 5, 2, 3


def pack_gqa(graph: Graph, context: PassContext) -> Graph:
    """Let heads of few queries share the keys and values that they read."""
    target = context.target
    if not isinstance(target, GpuTarget):
        return graph
    return rewrite_graph(graph, partial(_joined, target), of=("fused_attention",))


def _joined(target: GpuTarget, g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if not isinstance(attrs, FusedAttentionAttrs) or g.type(n.inputs[0]).rank != RANK:
        return None
    types = tuple(g.type(x) if x else None for x in n.inputs)
    plain = _without_band(Problem(attrs, types, n.type))
    if plain is None or not fits_tensor_cores(target, plain) or not _fits(plain):
        return None
    mask, lengths, bias = (*n.inputs, "", "", "")[3:6]
    masks = [_mask(g, x, plain) for x in (mask, bias)]
    if None in masks:
        return None
    q, q_perm = _rows(g, n.inputs[0], attrs.q_perm, plain)
    k, k_perm = _without(g, n.inputs[1], attrs.k_perm, GROUP)
    v, v_perm = _without(g, n.inputs[2], attrs.v_perm, GROUP)
    inputs = [q, k, v, masks[0] or "", lengths, masks[1] or ""]
    while not inputs[-1]:
        inputs.pop()
    y_perm = tuple(d - (d > LENGTH) for d in attrs.y_perm if d != LENGTH)
    made = replace(plain.attrs, q_perm=q_perm, k_perm=k_perm, v_perm=v_perm, y_perm=y_perm)
    y = g.add("fused_attention", *inputs, attrs=made)
    return g.add("reshape", y, attrs=ReshapeAttrs(n.type.shape))


def _fits(p: Problem) -> bool:
    """Whether the queries of a group are rows that one tile has."""
    group, queries = as_int(p.q[GROUP]), as_int(p.q[LENGTH])
    if group is None or queries is None or group * queries > TILE_ROWS:
        return False
    shared = p.k[GROUP] is ONE and p.v[GROUP] is ONE
    return shared and (queries == 1 or not (p.attrs.q_perm or p.attrs.y_perm))


def _without_band(p: Problem) -> Problem | None:
    """Attention in which no query sees other keys than the rest, `None` if one does."""
    attrs = p.attrs
    if attrs.window_left < 0 and attrs.window_right < 0 and not attrs.bottom_right:
        return p
    if attrs.window_left >= 0 or p.q[LENGTH] is not ONE:
        return None
    # A single query: the last one, or one that sees all keys.
    if not attrs.bottom_right and not prove(p.k[-2] <= attrs.offset + attrs.window_right + 1):
        return None
    return replace(p, attrs=replace(attrs, window_right=-1, offset=const(0)))


def _mask(g: Rewriter, mask: str, p: Problem) -> str | None:
    """A mask for queries that are one dimension, `None` if it tells them from each other."""
    shape = g.type(mask).shape if mask else ()
    if len(shape) < 2:
        return mask
    group, length = (ONE, *shape)[-3:-1]
    if length is not ONE or (group is not ONE and p.q[LENGTH] is not ONE):
        return None
    if len(shape) == 2:
        return mask
    return g.add("reshape", mask, attrs=ReshapeAttrs((*shape[:-2], shape[-1])))


def _rows(g: Rewriter, value: str, perm: Sequence[int], p: Problem) -> tuple[str, tuple[int, ...]]:
    """Queries with those of a group in one dimension, and the order that they have then."""
    if p.q[LENGTH] is ONE:
        return _without(g, value, perm, LENGTH)
    batch, heads, group, length, size = p.q
    shape = (batch, heads, group * length, size)
    return g.add("reshape", value, attrs=ReshapeAttrs(shape)), ()


def _without(
    g: Rewriter, value: str, perm: Sequence[int], axis: int
) -> tuple[str, tuple[int, ...]]:
    """A value without a dimension of size 1, and the order that it has then."""
    at = perm[axis] if perm else axis
    shape = g.type(value).shape
    left = g.add("reshape", value, attrs=ReshapeAttrs((*shape[:at], *shape[at + 1 :])))
    return left, tuple(d - (d > at) for d in perm if d != at)
