"""Operators that cut, join and pad: Slice, Split, Concat, Pad, CenterCropPad."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, as_int, ceildiv, const
from tilewright.arith.simplify import simplify
from tilewright.frontends import slice_bounds
from tilewright.frontends.onnx.context import (
    Converter,
    OnnxContext,
    OnnxNode,
    axes_of,
    identifier,
)
from tilewright.frontends.onnx.convert.data_dependent import bound_dim, elements, sliced
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs


def add_slice(
    c: OnnxContext,
    x: str,
    ranges: dict[int, tuple[Expr, Expr, int]],
    name: str,
) -> str:
    """`x` cut along some axes: `ranges` gives start, stop and step of an axis."""
    return slice_bounds.add_slice(c.g, x, ranges, identifier(name))


def slice_(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A slice; bounds are attributes before version 10 and inputs since."""
    x = n.required(0)
    shape = c.type(x).shape
    if n.has_attr("starts"):
        starts: Sequence[Expr] = [const(v) for v in n.ints_attr("starts")]
        stops: Sequence[Expr] = [const(v) for v in n.ints_attr("ends")]
    elif any(c.g.symbolic_value(n.required(i)) is None for i in (1, 2)):
        return (_data_dependent_slice(c, n),)
    else:
        starts, stops = c.known_ints(n, 1), c.known_ints(n, 2)
    axes = axes_of(c, n, 3)
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = c.static_ints(n, 4) if n.has_input(4) else (1,) * len(starts)
    if not len(starts) == len(stops) == len(axes) == len(steps) or 0 in steps:
        raise n.invalid("starts, ends, axes and steps do not fit each other")
    ranges = {}
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        axis = normalize_axis("Slice", axis, len(shape))
        ranges[axis] = (*slice_bounds.bounds(start, stop, step, shape[axis]), step)
    return (add_slice(c, x, ranges, n.outputs[0]),)


def _data_dependent_slice(c: OnnxContext, n: OnnxNode) -> str:
    """A slice between bounds that the model computes; along which axes must be known."""
    x = n.required(0)
    axes = axes_of(c, n, 3)
    rank = c.type(x).rank
    starts, stops = (elements(c, n, index, most=rank) for index in (1, 2))
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = c.static_ints(n, 4) if n.has_input(4) else (1,) * len(starts)
    if not len(starts) == len(stops) == len(axes) == len(steps) or 0 in steps:
        raise n.invalid("starts, ends, axes and steps do not fit each other")
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        axis = normalize_axis("Slice", axis, rank)
        x = sliced(c, n, x, axis, (start, stop), step)
    return x


def concat(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Tensors joined along `axis`, before version 4 by default the channels."""
    if len(n.inputs) == 1:
        return (n.required(0),)
    axis = n.int_attr("axis", 1 if n.opset < 4 else None)
    return (c.add(n, "concat", *n.inputs, attrs=ConcatAttrs(axis)),)


def split(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """One slice an output, so that each goes with what uses it."""
    x = n.required(0)
    shape = c.type(x).shape
    axis = normalize_axis("Split", n.int_attr("axis", 0), len(shape))
    start: Expr = const(0)
    outputs = []
    for name, size in zip(n.outputs, _split_sizes(c, n, shape[axis]), strict=False):
        stop = simplify(start + size)
        outputs.append(add_slice(c, x, {axis: (start, stop, 1)}, name or "split"))
        start = stop
    return tuple(outputs)


def _split_sizes(c: OnnxContext, n: OnnxNode, size: Expr) -> list[Expr]:
    if n.has_attr("split"):
        given: list[Expr] = [const(v) for v in n.ints_attr("split")]
    elif n.has_input(1) and c.g.symbolic_value(n.input(1)) is None:
        given = [bound_dim(c, n, part, size) for part in elements(c, n, 1, n.n_outputs)]
    elif n.has_input(1):
        given = list(c.known_ints(n, 1))
    else:
        # Equal parts; the last is smaller where they do not divide the whole.
        count = n.int_attr("num_outputs", n.n_outputs)
        if count != n.n_outputs:
            raise n.invalid(f"num_outputs is {count}, it has {n.n_outputs} outputs")
        part = simplify(ceildiv(size, count))
        given = [part] * (count - 1) + [simplify(size - part * (count - 1))]
    message = f"parts of {', '.join(map(str, given))} do not split {size} elements"
    whole = sum(given, const(0)).eq(size)
    if len(given) < n.n_outputs or not c.g.add_check(whole, f"Split: {message}", n.loc):
        raise n.invalid(message)
    return given


def zeros(rank: int) -> list[Expr]:
    """No padding in any dimension."""
    return [const(0)] * rank


def pad(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Padding; amounts and value are attributes before version 11 and inputs since."""
    given = "paddings" if n.opset < 2 else "pads"
    x = n.required(0)
    rank = c.type(x).rank
    if n.has_attr(given):
        amounts: Sequence[Expr] = [const(v) for v in n.ints_attr(given)]
    else:
        amounts = c.known_ints(n, 1)
    axes = c.static_ints(n, 3) if n.has_input(3) else tuple(range(rank))
    if len(amounts) != 2 * len(axes):
        raise n.invalid(f"{len(amounts)} pads for {len(axes)} dimensions")
    before, after = zeros(rank), zeros(rank)
    for i, axis in enumerate(axes):
        axis = normalize_axis("Pad", axis, rank)
        before[axis], after[axis] = amounts[i], amounts[len(axes) + i]
    if all(as_int(p) == 0 for p in (*before, *after)):
        return (x,)
    for size, *added in zip(c.type(x).shape, before, after, strict=True):
        left = size + added[0] + added[1]
        if not c.g.add_check(const(0) <= left, f"Pad: {size} elements cannot lose more", n.loc):
            raise n.invalid(f"of {size} elements {left} would be left")
    mode = n.str_attr("mode", "constant")
    value, operands = _pad_value(c, n) if mode == "constant" else (0, ())
    attrs = PadAttrs(tuple(before), tuple(after), mode, value)
    return (c.add(n, "pad", x, *operands, attrs=attrs),)


def _pad_value(c: OnnxContext, n: OnnxNode) -> tuple[float | int, tuple[str, ...]]:
    """The padding as a number where it is known, else as an operand."""
    if n.has_attr("value"):
        return n.float_attr("value"), ()
    if not n.has_input(2):
        return 0, ()
    data = c.constant_of(n.input(2))
    if data is None or data.dtype.kind == "c":  # no attribute holds a complex number
        return 0, (n.input(2),)
    return n.only(data.tolist(), 2), ()


def center_crop_pad(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Each axis cut or padded evenly at both ends to a given size."""
    x = n.required(0)
    shape, wanted = c.type(x).shape, c.known_ints(n, 1)
    axes = n.ints_attr("axes", range(len(shape)))
    before, after = zeros(len(shape)), zeros(len(shape))
    if len(axes) != len(wanted):
        raise n.invalid(f"{len(wanted)} sizes for {len(axes)} axes")
    for axis, size in zip(axes, wanted, strict=True):
        axis = normalize_axis("CenterCropPad", axis, len(shape))
        total = simplify(size - shape[axis])
        before[axis] = simplify(total / 2)  # toward zero, so that cropping mirrors padding
        after[axis] = simplify(total - before[axis])
    return (c.add(n, "pad", x, attrs=PadAttrs(tuple(before), tuple(after))),)


CONVERTERS: dict[str, Converter] = {
    "Slice": slice_,
    "Concat": concat,
    "Split": split,
    "Pad": pad,
    "CenterCropPad": center_crop_pad,
}
