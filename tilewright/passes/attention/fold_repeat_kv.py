"""Fold repeat_kv: grouped-query attention reads shared heads of keys and values without copies.

    %2 = expand(%k) {shape=[b, 2, 4, n, d]}               %k: f32[b, 2, 1, n, d]
    %3 = reshape(%2) {shape=[b, 8, n, d]}           →     %q5 = reshape(%q)  [b, 2, 4, m, d]
    %y = fused_attention(%q, %3, ...)                     %y5 = fused_attention(%q5, %k, ...)
                                                          %y = reshape(%y5)

Exporters repeat keys and values to one head for each head of queries. In `fused_attention`, batches
of keys and values broadcast, so the heads of queries are split into groups instead: a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

ONE = const(1)
# Heads are the second dimension of `[batch, heads, length, size]`.
RANK, HEADS = 4, 1


def fold_repeat_kv(graph: Graph, context: PassContext) -> Graph:
    """Let `fused_attention` read keys and values once, not where they were repeated."""
    return rewrite_graph(graph, _shared, of=("fused_attention",))


def _shared(g: Rewriter, n: Node) -> str | None:
    if not isinstance(n.attrs, FusedAttentionAttrs) or g.type(n.inputs[0]).rank != RANK:
        return None
    keys, values = (_once(g, x) for x in n.inputs[1:3])
    plain = not n.attrs.k_perm and not n.attrs.v_perm
    if keys is None or values is None or not plain or keys[1:] != values[1:]:
        return None
    group = keys[1:]
    q, q_perm = _split(g, n.inputs[0], n.attrs.q_perm, group)
    k, k_perm = _stored(g, keys[0])
    v, v_perm = _stored(g, values[0])
    mask, lengths, bias = (*n.inputs, "", "", "")[3:6]
    inputs = [q, k, v, _grouped(g, mask, group), lengths, _grouped(g, bias, group)]
    while not inputs[-1]:
        inputs.pop()
    y_perm = _result_order(n.attrs.y_perm)
    attrs = replace(n.attrs, q_perm=q_perm, k_perm=k_perm, v_perm=v_perm, y_perm=y_perm)
    y = g.add("fused_attention", *inputs, attrs=attrs)
    return g.add("reshape", y, attrs=ReshapeAttrs(n.type.shape))


def _once(g: Rewriter, value: str) -> tuple[str, Expr, Expr] | None:
    """What a value repeats along its heads: `[batch, heads, 1, length, size]`, heads, how often."""
    shape = g.type(value).shape
    n = g.producer(value)
    while n is not None and n.op == "reshape":
        n = g.producer(n.inputs[0])
    if n is None or n.op != "expand" or n.type.rank != RANK + 1:
        return None
    batch, heads, times, *rest = n.type.shape
    source = g.type(n.inputs[0]).shape
    if as_int(times) is None or source != (batch, heads, ONE, *rest):
        return None
    whole = (batch, simplify(heads * times), *rest)
    return (n.inputs[0], heads, times) if whole == shape else None


def _stored(g: Rewriter, value: str) -> tuple[str, tuple[int, ...]]:
    """`[batch, heads, 1, length, size]` before it was transposed, and in which order it lies."""
    n = g.producer(value)
    source = g.producer(n.inputs[0]) if n is not None and n.op == "reshape" else None
    if source is None or not isinstance(source.attrs, TransposeAttrs):
        return value, ()
    batch, heads, one, *rest = g.type(value).shape
    if source.type.shape != (batch, heads, *rest):
        return value, ()
    return _split(g, source.inputs[0], source.attrs.perm, (heads, one))


def _split(
    g: Rewriter, value: str, perm: Sequence[int], group: Sequence[Expr]
) -> tuple[str, tuple[int, ...]]:
    """A value with its heads split in two dimensions, and the order that it has then."""
    at = perm[HEADS] if perm else HEADS
    shape = g.type(value).shape
    split = g.add("reshape", value, attrs=ReshapeAttrs((*shape[:at], *group, *shape[at + 1 :])))
    places = [d + (d > at) for d in perm]
    return split, (*places[:HEADS], at, at + 1, *places[HEADS + 1 :]) if perm else ()


def _result_order(perm: Sequence[int]) -> tuple[int, ...]:
    """The order in which a result is stored whose heads have become two dimensions."""
    places = [[HEADS, HEADS + 1] if d == HEADS else [d + (d > HEADS)] for d in perm]
    return tuple(d for place in places for d in place)


def _grouped(g: Rewriter, mask: str, group: Sequence[Expr]) -> str:
    """A mask for scores whose heads are two dimensions."""
    shape: Shape = g.type(mask).shape if mask else ()
    if len(shape) < RANK - HEADS:
        return mask
    *outer, heads, queries, keys = shape
    inner = (ONE, ONE) if heads is ONE else group
    return g.add("reshape", mask, attrs=ReshapeAttrs((*outer, *inner, queries, keys)))
