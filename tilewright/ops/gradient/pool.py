"""Gradients of pooling: what each window gets of its result, summed where windows overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.errors import UnsupportedError
from tilewright.ir.types import Shape
from tilewright.ops.conv.col2im import Col2ImAttrs
from tilewright.ops.conv.pool import (
    AveragePoolAttrs,
    LpPoolAttrs,
    PoolAttrs,
    PoolIndicesAttrs,
)
from tilewright.ops.conv.sliding_window import spatial
from tilewright.ops.gradient.conv import channels_first, laid_out
from tilewright.ops.gradient.formula import (
    Rule,
    constant,
    expand,
    modulo,
    scattered,
    size_of,
    wide,
)
from tilewright.ops.op import flat
from tilewright.ops.traced_value import Value, where


def _max_pool(attrs: PoolAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """To the first of the greatest elements of each window."""
    x = ins[0]
    at = PoolIndicesAttrs(
        attrs.strides, attrs.pads, attrs.dilations, attrs.layout, attrs.kernel, attrs.ceil
    )
    found = channels_first(x.apply("max_pool_indices", attrs=at), attrs.layout)
    image = channels_first(x, attrs.layout)
    batch, channels, *sizes = image.shape
    lines = image.reshape((batch, channels, size_of(tuple(sizes))))
    # Positions are counted through all channels: within its own, each is the rest.
    place = found.reshape((batch, channels, size_of(found.shape[2:])))
    place = modulo(place, lines.shape[-1])
    new = channels_first(dy, attrs.layout).reshape(place.shape)
    dx = scattered(lines, 2, place, new, "clip")
    return (laid_out(dx.reshape(image.shape), attrs.layout),)


def _average_pool(
    attrs: AveragePoolAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> tuple[Value]:
    x = ins[0]
    each = channels_first(wide(dy), attrs.layout)
    image = spatial(attrs.layout, x.shape)
    for axis, counts in enumerate(_counts(attrs, image, each.shape[2:])):
        shape = [1] * len(each.shape)
        shape[2 + axis] = counts.size
        each = each / constant(each, counts.reshape(shape).astype(each.dtype.numpy))
    return (_spread(attrs, each, image).cast(x.dtype),)


def _counts(attrs: AveragePoolAttrs, image: Shape, windows: Shape) -> list[np.ndarray]:
    """Along each axis, how many elements each window counts: one number where that is the same."""
    found = []
    for axis, kernel in enumerate(attrs.kernel):
        before, after = attrs.before[axis], attrs.after[axis]
        if not attrs.ceil and (attrs.count_pads or before == after == 0):
            found.append(np.array([kernel]))
            continue
        size, count = as_int(image[axis]), as_int(windows[axis])
        if size is None or count is None:
            raise UnsupportedError(
                "autodiff.size",
                f"the gradient of average_pool with padding over a dimension of {image[axis]}",
                help="give these sizes a value with `dims`",
            )
        starts = np.arange(count) * attrs.strides[axis] - before
        taps = starts[:, None] + np.arange(kernel) * attrs.dilations[axis]
        low, high = (-before, size + after) if attrs.count_pads else (0, size)
        found.append(((low <= taps) & (taps < high)).sum(1))
    return found


def _spread(attrs: PoolAttrs, each: Value, image: Shape) -> Value:
    """One value a window, added to all elements of it; data with channels first."""
    windows = each.shape[2:]
    if _sees_all(attrs, image, windows):
        return laid_out(expand(each, (*each.shape[:2], *image)), attrs.layout)
    taps = tuple(map(const, attrs.kernel))
    batch, channels = each.shape[:2]
    every = each.reshape((batch, channels, const(1), size_of(windows)))
    blocks = expand(every, (batch, channels, size_of(taps), every.shape[-1]))
    blocks = blocks.reshape((batch, simplify(channels * size_of(taps)), every.shape[-1]))
    pads = (*attrs.before, *_padding_after(attrs, image, windows))
    at = Col2ImAttrs(image, taps, attrs.strides, pads, attrs.dilations)
    return laid_out(blocks.apply("col2im", attrs=at), attrs.layout)


def _sees_all(attrs: PoolAttrs, image: Shape, windows: Shape) -> bool:
    """Whether there is one window, and every element in it."""
    for axis, (size, count) in enumerate(zip(image, windows, strict=True)):
        known = as_int(size)
        if known is None or as_int(count) != 1 or attrs.dilations[axis] != 1:
            return False
        if attrs.kernel[axis] - attrs.before[axis] < known:
            return False
    return True


def _padding_after(attrs: PoolAttrs, image: Shape, windows: Shape) -> tuple[int, ...]:
    """The padding that windows reach into: where they are rounded up, it may be more."""
    if not attrs.ceil:
        return attrs.after
    found = []
    for axis, (size, count) in enumerate(zip(image, windows, strict=True)):
        reach = (attrs.kernel[axis] - 1) * attrs.dilations[axis] + 1 - attrs.before[axis]
        known = as_int(simplify((count - 1) * attrs.strides[axis] + reach - size))
        if known is None:
            raise UnsupportedError(
                "autodiff.size",
                f"the gradient of pooling rounded up over a dimension of {size}",
                help="give these sizes a value with `dims`",
            )
        found.append(max(known, 0))
    return tuple(found)


def _lp_pool(attrs: LpPoolAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """`dx = sign(x) |x| ** (p - 1) * sum of dy / y ** (p - 1)`; a norm of 0 has no slope."""
    x, p = wide(ins[0]), attrs.p
    norm, each = (channels_first(wide(v), attrs.layout) for v in (y, dy))
    if p > 1:
        none = norm.apply("equal", 0)
        safe = where(none, norm.number(1), norm)
        each = where(none, each.number(0), each / safe.apply("pow", p - 1))
    spread = _spread(attrs, each, spatial(attrs.layout, x.shape))
    size = x.apply("abs").apply("pow", p - 1) if p > 1 else None
    slope = x.apply("sign") if size is None else x.apply("sign") * size
    return ((slope * spread).cast(ins[0].dtype),)


RULES: dict[str, Rule] = {
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "lp_pool": _lp_pool,
    "max_pool_indices": flat,
}
