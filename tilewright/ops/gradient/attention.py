"""Gradients of what attention is made of; `attention` itself is differentiated as its products."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import as_int, const
from tilewright.arith.simplify import simplify
from tilewright.ops.attention.attention import MaskAttrs
from tilewright.ops.attention.rotary import RotaryAttrs
from tilewright.ops.gradient.formula import Parts, Rule, part, value, wide
from tilewright.ops.op import GraphOps
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.ops.traced_value import Value, where


def _mask_scores(
    _: MaskAttrs, ins: Sequence[Value | None], y: Value, dy: Value
) -> tuple[Value | None, ...]:
    """What is hidden is -inf, and has no slope."""
    mask = (*ins, None)[1]
    seen = where(y.apply("equal", float("-inf")), dy.number(0), dy)
    added = None
    if mask is not None and mask.dtype.is_float:
        last = len(seen.shape) - 1
        narrow = mask.shape[-1] is not const(1) and mask.shape[-1] is not seen.shape[-1]
        added = part(seen, last, 0, mask.shape[-1]) if narrow else seen
        if mask.shape[-1] is const(1) and as_int(seen.shape[-1]) != 1:
            added = part(seen, last, 0, 1)  # the keys beyond the only one of the mask are hidden
    return (seen, added, None)[: len(ins)]


def _rotary(g: GraphOps, attrs: RotaryAttrs, ins: Sequence[str]) -> str:
    """Pairs are taken apart, rotated, and put together again; the rest of a head stays."""
    x, cos, sin = (value(g, name) for name in ins[:3])
    size = attrs.size or as_int(x.shape[-1])
    assert size is not None
    if len(ins) > 3 and ins[3]:
        cos, sin = (t.apply("gather", value(g, ins[3]), attrs=GatherAttrs(0)) for t in (cos, sin))
    batch, length, half = cos.shape
    one = const(1)
    table = (batch, one, length, half) if attrs.heads_first else (batch, length, one, half)
    c, s = (wide(t).reshape(table) for t in (cos, sin))
    real = wide(x)
    if attrs.interleaved:
        first, second = (part(real, 3, k, size - 1 + k, 2) for k in (0, 1))
    else:
        first, second = part(real, 3, 0, size // 2), part(real, 3, size // 2, size)
    turned = [first * c - second * s, second * c + first * s]
    if attrs.interleaved:
        apart = (*turned[0].shape, one)
        turned = [t.reshape(apart) for t in turned]
        pairs = turned[0].apply("concat", turned[1], attrs=ConcatAttrs(4))
        rotated = pairs.reshape((*x.shape[:3], const(size)))
    else:
        rotated = turned[0].apply("concat", turned[1], attrs=ConcatAttrs(3))
    if as_int(simplify(x.shape[-1] - size)) != 0:
        rest = part(real, 3, size, x.shape[-1])
        rotated = rotated.apply("concat", rest, attrs=ConcatAttrs(3))
    return rotated.cast(x.dtype).name


RULES: dict[str, Rule] = {"mask_scores": _mask_scores}
PARTS: dict[str, Parts] = {"rotary_embedding": _rotary}
NO_GRADIENT = {
    "fused_attention": "passes make it of products and a softmax, of which gradients are taken"
    " before",
}
