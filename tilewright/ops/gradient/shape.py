"""Gradients of operators that move, repeat, cut and join elements."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
from tilewright.ops.gradient.formula import (
    Rule,
    add_rows,
    count_up,
    padded,
    part,
    total,
)
from tilewright.ops.op import flat, normalize_axis
from tilewright.ops.tensor.manipulation import ReverseAttrs, TileAttrs, TriluAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs
from tilewright.ops.traced_value import Value


def _tile(attrs: TileAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    shape = ins[0].shape
    pairs = zip(attrs.repeats, shape, strict=True)
    apart = dy.reshape(tuple(n for pair in pairs for n in pair))
    return (total(apart, range(0, 2 * len(shape), 2), keepdims=False),)


def _reverse(attrs: ReverseAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    return (dy.apply("reverse", attrs=attrs),)


def _trilu(
    attrs: TriluAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> tuple[Value | None, ...]:
    return (dy.apply("trilu", *ins[1:], attrs=attrs), *(None for _ in ins[1:]))


def _slice(attrs: SliceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """Each element back where it was taken, zeros between and around."""
    shape = ins[0].shape
    down = tuple(d for d, step in enumerate(attrs.steps) if step < 0)
    if down:
        dy = dy.apply("reverse", attrs=ReverseAttrs(down))
    before: list[Expr] = []
    after: list[Expr] = []
    for d, (start, step) in enumerate(zip(attrs.starts, attrs.steps, strict=True)):
        count = dy.shape[d]
        first = simplify(start + (count - 1) * step) if step < 0 else start
        dy = _spread(dy, d, abs(step))
        before.append(first)
        after.append(simplify(shape[d] - first - dy.shape[d]))
    return (padded(dy, before, after),)


def _spread(x: Value, axis: int, step: int) -> Value:
    """Elements of a dimension `step` apart, zeros behind each."""
    if step == 1:
        return x
    shape = x.shape
    apart = x.reshape((*shape[: axis + 1], const(1), *shape[axis + 1 :]))
    none = [const(0)] * (len(shape) + 1)
    behind = [const(step - 1) if d == axis + 1 else n for d, n in enumerate(none)]
    long = (*shape[:axis], simplify(shape[axis] * step), *shape[axis + 1 :])
    return padded(apart, none, behind).reshape(long)


def _concat(attrs: ConcatAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value, ...]:
    axis = normalize_axis("concat", attrs.axis, len(dy.shape))
    found: list[Value] = []
    place: Expr = const(0)
    for x in ins:
        end = simplify(place + x.shape[axis])
        found.append(part(dy, axis, place, end))
        place = end
    return tuple(found)


def _pad(attrs: PadAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value | None, ...]:
    if attrs.mode != "constant":
        return (_repeated(attrs, ins[0], dy), *(None for _ in ins[1:]))
    minus = [[simplify(const(0) - n) for n in side] for side in (attrs.before, attrs.after)]
    dx = padded(dy, *minus)
    if len(ins) == 1:
        return (dx,)
    every = range(len(dy.shape))
    rest = total(dy, every, keepdims=False) - total(dx, every, keepdims=False)
    return dx, rest.reshape(ins[1].shape)


def _repeated(attrs: PadAttrs, x: Value, dy: Value) -> Value:
    """Axis by axis, each element is added where the padding took it from."""
    for axis, (before, after) in enumerate(zip(attrs.before, attrs.after, strict=True)):
        if before is const(0) and after is const(0):
            continue
        size = x.shape[axis]
        places = count_up(dy, size).apply("pad", attrs=PadAttrs((before,), (after,), attrs.mode))
        dy = add_rows(dy, axis, size, places, "clip")
    return dy


RULES: dict[str, Rule] = {
    "tile": _tile,
    "reverse": _reverse,
    "trilu": _trilu,
    "slice": _slice,
    "slice_view": _slice,
    "concat": _concat,
    "concat_view": _concat,
    "pad": _pad,
    **dict.fromkeys(("full", "range", "eye_like", "dims", "bind_dim"), flat),
}
