"""Attention of com.microsoft: Attention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding.

All become ONNX's attention on queries, keys and values of their own. A mask of 0 and 1 hides keys
altogether, where these operators add a large negative number to their scores.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL, I64
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.frontends.onnx.node_scope import traced
from tilewright.ops.attention.attention import AttentionAttrs
from tilewright.ops.attention.rotary import RotaryAttrs
from tilewright.ops.tensor.creation import DimsAttrs, RangeAttrs
from tilewright.ops.tensor.manipulation import ExpandAttrs, TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.ops.traced_value import where

DOMAIN = "com.microsoft"


def _cut(c: OnnxContext, x: str, axis: int, start: Expr, stop: Expr) -> str:
    return add_slice(c, x, {axis: (start, simplify(stop), 1)}, "part")


def _part(c: OnnxContext, n: OnnxNode, x: str, axis: int, index: int) -> str:
    """One of several tensors stacked along an axis."""
    shape = c.shape(n, x, 5)
    cut = _cut(c, x, axis, const(index), const(index + 1))
    return add_reshape(c, n, cut, (*shape[:axis], *shape[axis + 1 :]))


def _range(c: OnnxContext, n: OnnxNode, start: Expr, count: Expr) -> str:
    return c.add(n, "range", attrs=RangeAttrs(start, const(1), count))


def _scale(n: OnnxNode) -> float | None:
    """The factor of the scores; 0 stands for the usual one."""
    return n.float_attr("scale", 0.0) or None


def _mask(c: OnnxContext, n: OnnxNode, mask: str, bias: str, keys: Expr) -> str:
    """A mask of keys `[batch, keys]`, or their numbers `[batch]`, and a bias, in one tensor."""
    if not mask:
        return bias
    shape = c.type(mask).shape
    if len(shape) == 1:
        places = _range(c, n, const(0), keys)
        count = c.cast(n, add_reshape(c, n, mask, (shape[0], const(1), const(1), const(1))), I64)
        seen = c.add(n, "less", places, count)
    elif len(shape) in (2, 3):
        seen = c.cast(n, mask, BOOL)
        middle = (const(1), const(1)) if len(shape) == 2 else (const(1),)
        seen = add_reshape(c, n, seen, (shape[0], *middle, *shape[1:]))
    else:
        raise n.unsupported(f"a mask {c.type(mask)}", "lengths, or a mask of keys of rank 2 or 3")
    if not bias:
        return seen
    given = traced(c, n, bias)
    return where(traced(c, n, seen), given, given.number(-np.inf)).name


def _biased(c: OnnxContext, n: OnnxNode, parts: list[str], bias: str) -> list[str]:
    """Queries, keys and values with the bias of each, which are side by side in one vector."""
    if not bias:
        return parts
    start: Expr = const(0)
    added = []
    for x in parts:
        stop = start + c.shape(n, x, 3)[2]
        added.append(c.add(n, "add", x, _cut(c, bias, 0, start, stop)))
        start = simplify(stop)
    return added


def attention(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The products that make queries, keys and values belong to it."""
    rows = c.add(n, "matmul", n.required(0), n.required(1))
    if n.has_input(2):
        rows = c.add(n, "add", rows, n.input(2))
    return self_attention(c, n, rows, (n.input(3), n.input(5)), n.input(4))


def self_attention(
    c: OnnxContext, n: OnnxNode, rows: str, masks: tuple[str, str], cache: str
) -> tuple[str, ...]:
    """Attention on queries, keys and values that lie side by side in one tensor."""
    if n.int_attr("past_present_share_buffer", 0) or n.int_attr("do_rotary", 0):
        raise n.unsupported("past_present_share_buffer or do_rotary", "set them to 0")
    heads = n.int_attr("num_heads")
    *_, hidden = c.shape(n, rows, 3)
    sizes = n.ints_attr("qkv_hidden_sizes", ())
    widths = [const(s) for s in sizes] if sizes else [simplify(hidden // 3)] * 3
    parts: list[str] = []
    start: Expr = const(0)
    for width in widths:
        parts.append(_cut(c, rows, 2, start, start + width))
        start = simplify(start + width)
    past = [_part(c, n, cache, 0, i) for i in range(2)] if cache else ["", ""]
    y, keys, values = _attend(c, n, parts, (heads, heads), masks, past)
    if not n.wants(1):
        return (y,)
    shape = (const(1), *c.type(keys).shape)
    both = [add_reshape(c, n, v, shape) for v in (keys, values)]
    return y, c.add(n, "concat", *both, attrs=ConcatAttrs(0))


def _attend(
    c: OnnxContext,
    n: OnnxNode,
    parts: list[str],
    heads: tuple[int, int],
    masks: tuple[str, str],
    past: list[str],
) -> tuple[str, str, str]:
    """ONNX's attention; `masks` are a mask of keys and a bias of scores, each maybe absent."""
    keys = c.shape(n, parts[1], 3)[1]
    if past[0]:
        keys = simplify(c.shape(n, past[0], 4)[2] + keys)
    mask = _mask(c, n, *masks, keys)
    attrs = AttentionAttrs(
        *heads, bool(n.int_attr("unidirectional", 0)), _scale(n), n.float_attr("softcap", 0.0)
    )
    operands = [*parts, mask, *past]
    while not operands[-1]:
        operands.pop()
    y, all_keys, all_values, _ = c.g.add_many("attention", *operands, attrs=attrs, loc=n.loc)
    return y, all_keys, all_values


def _joined(c: OnnxContext, n: OnnxNode, x: str) -> str:
    """`[batch, heads, length, size]` as `[batch, length, heads * size]`."""
    batch, heads, length, size = c.type(x).shape
    transposed = c.add(n, "transpose", x, attrs=TransposeAttrs((0, 2, 1, 3)))
    return add_reshape(c, n, transposed, (batch, length, simplify(heads * size)))


def _operands(c: OnnxContext, n: OnnxNode) -> list[str]:
    """Queries, keys and values `[batch, length, heads * size]`, which may come in one tensor."""
    query, key = n.required(0), n.input(1)
    if not key or c.type(key).rank == 5:
        packed, first = (query, []) if not key else (key, [query])
        batch, length, heads, count, size = c.shape(n, packed, 5)
        found = [_part(c, n, packed, 3, i) for i in range(as_int(count) or 0)]
        rows = (batch, length, simplify(heads * size))
        return [*first, *(add_reshape(c, n, x, rows) for x in found)]
    parts = [query, key, n.required(2)]
    return [_joined(c, n, x) if c.type(x).rank == 4 else x for x in parts]


def multi_head_attention(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Attention on given queries, keys and values, with a bias for each."""
    parts = _biased(c, n, _operands(c, n), n.input(3))
    heads = n.int_attr("num_heads")
    past = [n.input(6), n.input(7)]
    return _attend(c, n, parts, (heads, heads), (n.input(4), n.input(5)), past)


def group_query_attention(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Heads that share keys; new keys follow all those of the past, and what is behind a
    sequence's length is not seen.
    """
    heads, kv_heads = n.int_attr("num_heads"), n.int_attr("kv_num_heads")
    for index in (9, 10, 11):
        if n.has_input(index):
            raise n.unsupported(f"input {index}", "inputs up to the tables of angles")
    if n.int_attr("smooth_softmax", 0):
        raise n.unsupported("smooth_softmax", "set it to 0")
    parts = _grouped(c, n, heads, kv_heads)
    past = [n.input(3), n.input(4)]
    before = c.shape(n, past[0], 4)[2] if past[0] else const(0)
    batch, length, _ = c.shape(n, parts[0], 3)
    total = simplify(before + length)
    _require_total(c, n, total)
    if n.int_attr("do_rotary", 0):
        parts[0] = _rotated(c, n, parts[0], heads, before)
        parts[1] = _rotated(c, n, parts[1], kv_heads, before)
    window = n.int_attr("local_window_size", -1)
    attrs = AttentionAttrs(
        heads,
        kv_heads,
        True,
        _scale(n),
        n.float_attr("softcap", 0.0),
        window - 1 if window > 0 else -1,
    )
    mask = ""
    if n.has_input(5):
        last = add_reshape(c, n, n.input(5), (batch,))
        mask = _mask(c, n, (traced(c, n, last) + 1).name, "", total)
    operands = [*parts, mask, *past]
    while not operands[-1]:
        operands.pop()
    return c.g.add_many("attention", *operands, attrs=attrs, loc=n.loc)[:3]


def _grouped(c: OnnxContext, n: OnnxNode, heads: int, kv_heads: int) -> list[str]:
    """Queries, keys and values, which may be side by side in one tensor."""
    query = n.required(0)
    if n.has_input(1):
        return [query, n.input(1), n.required(2)]
    size = simplify(c.shape(n, query, 3)[2] // (heads + 2 * kv_heads))
    ends = [size * count for count in (0, heads, heads + kv_heads, heads + 2 * kv_heads)]
    return [_cut(c, query, 2, simplify(a), b) for a, b in pairwise(ends)]


def _require_total(c: OnnxContext, n: OnnxNode, total: Expr) -> None:
    """That the past and the new keys are all that there are, where the number is known."""
    known = c.g.symbolic_value(n.input(6)) if n.has_input(6) else None
    if known is None:
        return
    given: Expr = n.only(known, 6)
    message = f"GroupQueryAttention: {given} keys are not the past and new ones, {total}"
    if not c.g.add_check(given.eq(total), message, n.loc):
        raise n.unsupported(f"{given} keys, of which {total} are given", "pass no longer a cache")


def _positions(c: OnnxContext, n: OnnxNode, start: str, batch: Expr, length: Expr) -> str:
    """The positions `[batch, length]` of sequences that all begin at `start`."""
    line = c.add(n, "add", _range(c, n, const(0), length), start)
    return c.add(n, "expand", line, attrs=ExpandAttrs((batch, length)))


def _rotated(c: OnnxContext, n: OnnxNode, x: str, heads: int, before: Expr) -> str:
    """Rows rotated by their positions, which go on behind the past."""
    batch, length, hidden = c.shape(n, x, 3)
    split = add_reshape(c, n, x, (batch, length, const(heads), simplify(hidden // heads)))
    start = c.add(n, "dims", attrs=DimsAttrs((before,), ()))
    places = _positions(c, n, start, batch, length)
    attrs = RotaryAttrs(bool(n.int_attr("rotary_interleaved", 0)), False, _angles(c, n, 7))
    rotated = c.add(n, "rotary_embedding", split, n.required(7), n.required(8), places, attrs=attrs)
    return add_reshape(c, n, rotated, (batch, length, hidden))


def _angles(c: OnnxContext, n: OnnxNode, index: int) -> int:
    """How many elements of a head the table of cosines rotates."""
    half = as_int(c.shape(n, n.required(index), 2)[1])
    if half is None:
        raise n.unsupported("a table of angles of dynamic size", "fix the dimension")
    return 2 * half


def rotary_embedding(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Positions come before the tables; a single one is where every sequence starts."""
    x, positions = n.required(0), n.required(1)
    flat = c.type(x).rank == 3
    shape = c.shape(n, x, 3 if flat else 4)
    length, heads = shape[1 if flat else 2], n.int_attr("num_heads", 0)
    rotated = _angles(c, n, 2)
    if n.int_attr("rotary_embedding_dim", 0) not in (0, rotated):
        raise n.invalid(f"rotary_embedding_dim is not {rotated}, which the tables of angles rotate")
    if flat:
        size = simplify(shape[2] // heads) if heads else const(rotated)
        x = add_reshape(c, n, x, (shape[0], length, simplify(shape[2] // size), size))
    if c.type(positions).rank == 1:
        positions = _positions(c, n, positions, shape[0], length)
    attrs = RotaryAttrs(bool(n.int_attr("interleaved", 0)), not flat, rotated)
    tables = n.required(2), n.required(3), positions
    y = c.add(n, "rotary_embedding", x, *tables, attrs=attrs)
    return (add_reshape(c, n, y, shape),)


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::Attention": attention,
    f"{DOMAIN}::MultiHeadAttention": multi_head_attention,
    f"{DOMAIN}::GroupQueryAttention": group_query_attention,
    f"{DOMAIN}::RotaryEmbedding": rotary_embedding,
}
