"""Bounds of slices as PyTorch, NumPy and ONNX give them, as our `slice` wants them.

A bound that depends on dynamic dimensions is clamped wherever it can be decided whether it lies
inside the tensor. Where it cannot, it is taken to lie inside, as in `positions[:sequence]`: the
result then has `sequence` elements and not `min(sequence, 512)`, which would fit nothing else. That
it does is checked when the model runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith.expr import Expr, as_int, const, minimum
from tilewright.arith.simplify import prove, simplify
from tilewright.core.errors import FrontendError
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.slicing import SliceAttrs

# Exporters write 10**9, 2**31 - 1 or 2**63 - 1 for "to the end".
OPEN_END = 10**9


def _counted(value: Expr, size: Expr) -> Expr:
    """A bound as it is given, counted from the front."""
    number = as_int(value)
    if number is None:
        is_negative = prove(value <= 0) and not prove(const(0) <= value)
        return simplify(size + value) if is_negative else simplify(value)
    return simplify(size + number) if number < 0 else value


def clamped(value: Expr, size: Expr, low: Expr, high: Expr, truncates: bool) -> Expr:
    """A start or stop within `low` and `high`; see the module's docstring for symbolic ones.

    `truncates` says that a literal bound may well lie behind the end, as in `x[:512]`.
    """
    number = as_int(value)
    if number is not None and abs(number) >= OPEN_END:
        return high if number > 0 else low
    place = _counted(value, size)
    if prove(high <= place):
        return high
    if prove(place <= low):
        return low
    is_literal = number is not None and number >= 0
    if truncates and is_literal and not prove(place <= high):
        return simplify(minimum(place, high))
    return place


def bounds(start: Expr, stop: Expr, step: int, size: Expr) -> tuple[Expr, Expr]:
    """Start and stop of a slice of a dimension as our `slice` wants them."""
    first, last = _within(start, stop, step, size)
    is_empty = last <= first if step > 0 else first <= last
    return (const(0), const(0)) if prove(is_empty) else (first, last)


def _within(start: Expr, stop: Expr, step: int, size: Expr) -> tuple[Expr, Expr]:
    """Start and stop as far as they reach in a dimension."""
    if step > 0:
        low, high = const(0), size
        return (
            clamped(start, size, low, high, truncates=False),
            clamped(stop, size, low, high, truncates=True),
        )
    # Backwards ONNX lets a start far before the front be the first element, unlike NumPy.
    before, last = const(-1), simplify(size - 1)
    first = before if as_int(size) == 0 else const(0)
    return (
        clamped(start, size, first, last, truncates=True),
        clamped(stop, size, before, last, truncates=False),
    )


def add_slice(
    g: GraphBuilder, x: str, ranges: Mapping[int, tuple[Expr, Expr, int]], name: str
) -> str:
    """`x` cut along some axes: `ranges` gives start, stop and step of an axis."""
    shape = g.type(x).shape
    whole: list[tuple[Expr, Expr, int]] = [(const(0), d, 1) for d in shape]
    each = [ranges.get(axis, full) for axis, full in enumerate(whole)]
    if each == whole:
        return x
    starts, stops, steps = zip(*each, strict=True)
    for axis, (start, stop, step) in ranges.items():
        _require_inside(g, start, stop, step, shape[axis])
    attrs = SliceAttrs(starts, stops, steps, inside=True)
    return g.add("slice", x, attrs=attrs, name=name)


def _require_inside(g: GraphBuilder, start: Expr, stop: Expr, step: int, size: Expr) -> None:
    """Check what is cut out of a dimension; numbers are clamped already."""
    low, high = (start, stop) if step > 0 else (simplify(stop + 1), simplify(start + 1))
    message = f"{low} to {high} is not within {size} elements"
    empty = as_int(simplify(high - low))
    if empty is None or empty > 0:
        inside = [const(0) <= low, low <= high, high <= size]
        if not all([g.add_check(condition, message) for condition in inside]):
            raise FrontendError("slice.bounds", message)
