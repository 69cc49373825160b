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
    distinct_axes,
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
    axes = distinct_axes(n, axes, len(shape))
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
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
    axes = distinct_axes(n, axes, rank)
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
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
        rest = simplify(size - part * (count - 1))
        fits = const(0) < rest if n.has_attr("num_outputs") else rest.eq(part)
        c.require(n, fits, f"{size} elements do not make {count} parts")
        given = [part] * (count - 1) + [rest]
    what = f"parts of {', '.join(map(str, given))} do not split {size} elements"
    if len(given) < n.n_outputs:
        raise n.invalid(what)
    c.require(n, sum(given, const(0)).eq(size), what)
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
    axes = distinct_axes(n, axes, rank)
    if len(amounts) != 2 * len(axes):
        raise n.invalid(f"{len(amounts)} pads for {len(axes)} dimensions")
    before, after = zeros(rank), zeros(rank)
    for i, axis in enumerate(axes):
        before[axis], after[axis] = amounts[i], amounts[len(axes) + i]
    if all(as_int(p) == 0 for p in (*before, *after)):
        return (x,)
    for size, *added in zip(c.type(x).shape, before, after, strict=True):
        left = simplify(size + added[0] + added[1])
        c.require(n, const(0) <= left, f"of {size} elements {left} would be left")
    mode = n.str_attr("mode", "constant")
    if mode == "constant":
        value, operands = _pad_value(c, n)
        attrs = PadAttrs(tuple(before), tuple(after), mode, value)
        return (c.add(n, "pad", x, *operands, attrs=attrs),)
    return (_pad_from_elements(c, n, x, before, after, mode),)


def _pad_from_elements(
    c: OnnxContext, n: OnnxNode, x: str, before: Sequence[Expr], after: Sequence[Expr], mode: str
) -> str:
    """Padding made of the elements that negative amounts leave, which are cut first."""
    cut: dict[int, tuple[Expr, Expr, int]] = {}
    for axis, (size, *ends) in enumerate(zip(c.type(x).shape, before, after, strict=True)):
        first, last = (const(max(-(as_int(end) or 0), 0)) for end in ends)
        if first is not const(0) or last is not const(0):
            c.require(n, first + last < size, f"no element of {size} is left for mode {mode!r}")
            cut[axis] = (first, simplify(size - last), 1)
    if cut:
        x = add_slice(c, x, cut, "kept")
    wider = [tuple(_positive(end) for end in ends) for ends in (before, after)]
    for size, *added in zip(c.type(x).shape, *wider, strict=True):
        _require_elements(c, n, size, added, mode)
    return c.add(n, "pad", x, attrs=PadAttrs(wider[0], wider[1], mode))


def _positive(amount: Expr) -> Expr:
    number = as_int(amount)
    return amount if number is None else const(max(number, 0))


def _require_elements(
    c: OnnxContext, n: OnnxNode, size: Expr, added: Sequence[Expr], mode: str
) -> None:
    """A dimension has the elements that padding on either side is made of."""
    for amount in added:
        c.require(n, const(0) <= amount, f"a padding of {amount}")
        enough = amount < size if mode == "reflect" else const(0) < size
        c.require(n, amount.eq(0) | enough, f"mode {mode!r} makes no {amount} more of {size}")


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
