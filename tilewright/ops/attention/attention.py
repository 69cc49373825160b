"""Scaled dot-product attention: the operator, and the masking of its scores.

    attention(q, k, v, mask, past_k, past_v, lengths) -> y, present_k, present_v, scores

Queries are `[batch, heads, length, size]`, or `[batch, length, heads * size]`; several query heads
may share a head of keys and values. It decomposes into products, `mask_scores` and a softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tilewright.arith.dtype_limits import lowest
from tilewright.arith.expr import TRUE, Expr, as_expr, as_int, cast, const, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL, I64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.accumulation import accumulator
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.op import GraphOps, Op, broadcast_index, broadcast_shapes, fail, same_dtype
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.shape.assumptions import same_size
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs

# What the fourth result holds, in the order of computation.
SCORES = ("raw", "capped", "masked", "softmax")


@node
class AttentionAttrs(Attrs):
    """`q_heads` and `kv_heads` are for 3-d operands; a negative window side is unbounded.

    `scale` is applied to the products, 1 / sqrt(head size) by default; `softcap` 0 is none;
    `precision` is the type the softmax is computed in, by default that of the operands.
    """

    q_heads: int = 0
    kv_heads: int = 0
    causal: bool = False
    scale: float | None = None
    softcap: float = 0.0
    window_left: int = -1
    window_right: int = -1
    scores: str = "raw"
    precision: DType | None = None


@node
class MaskAttrs(Attrs):
    """Query `i` sees key `j` if `i + offset - window_left <= j <= i + offset + window_right`.

    A negative side is unbounded. `bottom_right` aligns the window at the last query and the last
    valid key of each sample: its offset is the number of valid keys less that of queries.
    """

    offset: Expr
    window_left: int = -1
    window_right: int = -1
    bottom_right: bool = False


def _mask_type(attrs: MaskAttrs, ins: Sequence[TensorType | None]) -> TensorType:
    scores, mask, lengths = (*ins, None, None)[:3]
    assert scores is not None
    if scores.rank < 3 or not scores.dtype.is_float:
        raise fail("mask_scores", f"scores {scores} must be floats of rank 3 or more")
    if mask is not None:
        if mask.dtype not in (BOOL, scores.dtype) or not 0 < mask.rank <= scores.rank:
            wanted = f"bool or {scores.dtype}, of rank 1 to {scores.rank}"
            raise fail("mask_scores", f"mask {mask} must be {wanted}")
        # The last axis may be shorter, which masks the keys beyond it.
        seen = broadcast_shapes("mask_scores", scores.shape[:-1], mask.shape[:-1])
        if seen != scores.shape[:-1]:
            raise fail("mask_scores", f"mask {mask} does not broadcast to {scores}")
    if lengths is not None and (lengths.rank != 1 or not lengths.dtype.is_integer):
        raise fail("mask_scores", f"lengths {lengths} must be a vector of integers")
    if attrs.bottom_right and lengths is None:
        raise fail("mask_scores", "an offset from the end needs the lengths")
    return scores


def _mask_scores(
    b: Builder, attrs: MaskAttrs, ins: Sequence[Tensor | None], outs: Sequence[TensorType]
) -> Tensor:
    scores, mask, lengths = (*ins, None, None)[:3]
    assert scores is not None
    hidden = lowest(scores.dtype)

    def element(*index: Expr) -> Expr:
        value: Expr = scores.at(*index)
        if mask is not None:
            value = _apply_mask(mask, value, index, scores.shape[-1])
        place = index[0], index[-2], index[-1]
        return select(_in_band(attrs, lengths, scores.shape[-2], place), value, hidden)

    return b.compute("y", scores.shape, element)


def _apply_mask(mask: Tensor, value: Expr, index: Sequence[Expr], keys: Expr) -> Expr:
    outer = broadcast_index(mask.shape[:-1], index[:-1])
    covered = TRUE if mask.shape[-1] is keys else index[-1] < mask.shape[-1]
    given = mask.at(*outer, index[-1], when=None if covered is TRUE else covered)
    if mask.dtype == BOOL:
        return select(given, value, lowest(value.dtype))
    return select(covered, value + given, lowest(value.dtype))


def _in_band(
    attrs: MaskAttrs, lengths: Tensor | None, queries: Expr, index: tuple[Expr, Expr, Expr]
) -> Expr:
    n, i, j = index
    seen: Expr = TRUE
    offset = attrs.offset
    if lengths is not None:
        length = cast(I64, lengths.at(n))
        seen = j < length
        if attrs.bottom_right:
            offset = length - queries
    if attrs.window_right >= 0:
        seen = seen & (j <= i + offset + attrs.window_right)
    if attrs.window_left >= 0:
        seen = seen & (i + offset <= j + attrs.window_left)
    return seen


def _heads(attrs: AttentionAttrs, q: TensorType, k: TensorType) -> tuple[int, int]:
    """How many heads queries have, and keys and values."""
    if q.rank == 4:
        queries, keys = as_int(q.shape[1]), as_int(k.shape[1])
    else:
        queries, keys = attrs.q_heads, attrs.kv_heads
    if not queries or not keys or queries % keys:
        raise fail("attention", f"{queries} query heads do not fit {keys} key heads")
    return queries, keys


def _sizes(t: TensorType, heads: int) -> tuple[Expr, Expr, Expr]:
    """Batch, length and head size of an operand."""
    if t.rank == 4:
        return t.shape[0], t.shape[2], t.shape[3]
    return t.shape[0], t.shape[1], simplify(t.shape[2] // heads)


def _attention_type(
    attrs: AttentionAttrs, ins: Sequence[TensorType | None]
) -> tuple[TensorType, ...]:
    q, k, v, _, past_k, past_v, _ = (*ins, *(None,) * 7)[:7]
    assert q is not None
    assert k is not None
    assert v is not None
    if not q.rank == k.rank == v.rank or q.rank not in (3, 4):
        raise fail("attention", f"{q}, {k} and {v} must all have rank 3, or all rank 4")
    if any(past is not None and past.rank != 4 for past in (past_k, past_v)):
        raise fail("attention", f"past keys {past_k} and values {past_v} must have rank 4")
    if attrs.scores not in SCORES or (past_k is None) != (past_v is None):
        raise fail("attention", "needs past keys and values together, and a known scores kind")
    dtype = same_dtype("attention", [q, k])
    q_heads, kv_heads = _heads(attrs, q, k)
    (batch, queries, query_size), (_, keys, size) = _sizes(q, q_heads), _sizes(k, kv_heads)
    _, values, value_size = _sizes(v, kv_heads)
    equal = [(query_size, size), (keys, values)]
    if past_k is not None and past_v is not None:
        equal += [(past_k.shape[3], size), (past_v.shape[3], value_size)]
        equal += [(past_k.shape[2], past_v.shape[2])]
    if any(same_size("attention", a, b) is None for a, b in equal):
        raise fail("attention", f"the sizes of {q}, {k} and {v} do not fit")
    total = keys if past_k is None else simplify(past_k.shape[2] + keys)
    heads, kv = const(q_heads), const(kv_heads)
    y: Shape = (
        (batch, heads, queries, value_size)
        if q.rank == 4
        else (batch, queries, simplify(heads * value_size))
    )
    return (
        TensorType(dtype, y),
        TensorType(k.dtype, (batch, kv, total, size)),
        TensorType(v.dtype, (batch, kv, total, value_size)),
        TensorType(dtype, (batch, heads, queries, total)),
    )


def _attention(g: GraphOps, attrs: AttentionAttrs, ins: Sequence[str]) -> tuple[str, ...]:
    q, k, v, mask, past_k, past_v, lengths = (*ins, *("",) * 7)[:7]
    flat = g.type(q).rank == 3
    q_heads, kv_heads = _heads(attrs, g.type(q), g.type(k))
    keys = _with_past(g, past_k, _split_heads(g, k, kv_heads))
    values = _with_past(g, past_v, _split_heads(g, v, kv_heads))
    # Heads that share keys are a dimension of their own, in which keys and values are one.
    groups = (q_heads,) if q_heads == kv_heads else (kv_heads, q_heads // kv_heads)
    q = _split_heads(g, q, *groups)
    mask = _mask_of_groups(g, mask, groups) if mask else ""
    scores = {"raw": _products(g, attrs, q, keys)}
    scores["capped"] = _softcap(g, scores["raw"], attrs.softcap)
    band = MaskAttrs(
        g.type(past_k).shape[2] if past_k else const(0),
        attrs.window_left,
        0 if attrs.causal else attrs.window_right,
        bottom_right=bool(lengths),
    )
    masks = bool(mask or lengths or band.window_left >= 0 or band.window_right >= 0)
    scores["masked"] = scores["capped"]
    if masks:
        scores["masked"] = g.add("mask_scores", scores["capped"], mask, lengths, attrs=band)
    scores["softmax"] = _weights(g, attrs, scores["masked"], masks)
    y = _weighted(g, scores["softmax"], values)
    y, shown = _join_heads(g, y, flat), _join_heads(g, scores[attrs.scores])
    return y, keys, values, shown


def _reshape(g: GraphOps, x: str, *shape: Expr | int) -> str:
    dims = tuple(as_expr(d) for d in shape)
    return x if g.type(x).shape == dims else g.add("reshape", x, attrs=ReshapeAttrs(dims))


def _split_heads(g: GraphOps, x: str, *heads: int) -> str:
    """`[batch, length, heads * size]` as `[batch, heads, length, size]`; 4-d ones are that.

    Heads may be several dimensions, in groups.
    """
    if g.type(x).rank == 4 and len(heads) == 1:
        return x
    if g.type(x).rank == 4:
        batch, _, length, size = g.type(x).shape
        return _reshape(g, x, batch, *heads, length, size)
    batch, length, hidden = g.type(x).shape
    split = _reshape(g, x, batch, length, *heads, simplify(hidden // prod(heads)))
    rank = len(heads) + 3
    transposed = TransposeAttrs((0, *range(2, rank - 1), 1, rank - 1))
    return g.add("transpose", split, attrs=transposed)


def _mask_of_groups(g: GraphOps, mask: str, groups: Sequence[int]) -> str:
    """A mask for scores whose heads are `groups`: its own heads are all of them, or one."""
    shape = g.type(mask).shape
    if len(shape) < 3:
        return mask
    *batch, heads, queries, keys = shape
    own = (1,) * len(groups) if as_int(heads) == 1 else groups
    return _reshape(g, mask, *batch, *own, queries, keys)


def _join_heads(g: GraphOps, x: str, flat: bool = False) -> str:
    """`[batch, *heads, length, size]` with one dimension of heads, or none if it is to be flat."""
    batch, *heads, length, size = g.type(x).shape
    every = simplify(prod(heads, start=const(1)))
    if not flat:
        return _reshape(g, x, batch, every, length, size)
    rank = g.type(x).rank
    transposed = TransposeAttrs((0, rank - 2, *range(1, rank - 2), rank - 1))
    rows = g.add("transpose", x, attrs=transposed)
    return _reshape(g, rows, batch, length, simplify(every * size))


def _with_past(g: GraphOps, past: str, x: str) -> str:
    return g.add("concat", past, x, attrs=ConcatAttrs(2)) if past else x


def _scalar(g: GraphOps, value: float, like: str) -> str:
    return g.constant(np.asarray(value, dtype=g.type(like).dtype.numpy))


def _shared(g: GraphOps, x: str, rank: int) -> str:
    """Keys or values for queries of this rank: all heads of a group share one."""
    batch, heads, length, size = g.type(x).shape
    return x if rank == 4 else _reshape(g, x, batch, heads, 1, length, size)


def _products(g: GraphOps, attrs: AttentionAttrs, q: str, keys: str) -> str:
    """Scaled products of queries and keys."""
    *_, size = g.type(q).shape
    scale = attrs.scale
    if scale is None:
        known = as_int(size)
        if known is None:
            raise fail("attention", "the head size must be known, or the scale be given")
        scale = 1 / float(np.sqrt(max(known, 1)))  # the sum of no products is 0 at any scale
    scaled = _scaled(g, q, scale)
    rank = g.type(q).rank
    transposed = TransposeAttrs((*range(rank - 2), rank - 1, rank - 2))
    return g.add("matmul", scaled, g.add("transpose", _shared(g, keys, rank), attrs=transposed))


def _scaled(g: GraphOps, q: str, scale: float) -> str:
    """Queries scaled by a number that is not rounded to their type: all scores would be off."""
    own = g.type(q).dtype
    if accumulator(own) == own or float(np.asarray(scale, own.numpy)) == scale:
        return g.add("mul", q, _scalar(g, scale, q))
    wide = g.add("cast", q, attrs=CastAttrs(accumulator(own)))
    scaled = g.add("mul", wide, _scalar(g, scale, wide))
    return g.add("cast", scaled, attrs=CastAttrs(own))


def _softcap(g: GraphOps, scores: str, cap: float) -> str:
    if cap <= 0:
        return scores
    limit = _scalar(g, cap, scores)
    return g.add("mul", g.add("tanh", g.add("div", scores, limit)), limit)


def _weights(g: GraphOps, attrs: AttentionAttrs, scores: str, masks: bool) -> str:
    own = g.type(scores).dtype
    precision = attrs.precision or own
    if precision != own:
        scores = g.add("cast", scores, attrs=CastAttrs(precision))
    rows = SoftmaxAttrs(-1, fully_masked="zero" if masks else "nan")
    weights = g.add("softmax", scores, attrs=rows)
    return weights if precision == own else g.add("cast", weights, attrs=CastAttrs(own))


def _weighted(g: GraphOps, weights: str, values: str) -> str:
    own, dtype = g.type(weights).dtype, g.type(values).dtype
    if dtype != own:
        weights = g.add("cast", weights, attrs=CastAttrs(dtype))
    y = g.add("matmul", weights, _shared(g, values, g.type(weights).rank))
    return y if dtype == own else g.add("cast", y, attrs=CastAttrs(own))


OPS = (
    Op(
        "attention",
        _attention_type,
        "opaque",
        AttentionAttrs,
        decompose=_attention,
        flops=lambda a, ins, outs: outs[3].elements * (ins[0].shape[-1] + outs[0].shape[-1]) * 2,
        doc="Scaled dot-product attention with masks, shared key heads and a key-value cache.",
    ),
    Op(
        "mask_scores",
        _mask_type,
        "injective",
        MaskAttrs,
        te=_mask_scores,
        flops=2,
        doc="Scores with -inf where a mask, a band or the number of valid keys hides a key.",
    ),
)
