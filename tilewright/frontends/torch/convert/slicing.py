"""Operators that cut, join and pad."""

from __future__ import annotations

from typing import Any

from tilewright.arith.expr import Expr, as_expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.frontends.slice_bounds import add_slice, bounds
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext, axis_of
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs

END = const(2**63 - 1)


def part(
    c: TorchContext, n: AtenCall, x: str, axis: int, start: Expr, stop: Expr, step: int = 1
) -> str:
    """`x[start:stop:step]` along an axis, the bounds as Python has them."""
    span = bounds(start, stop, step, c.type(x).shape[axis])
    return add_slice(c.g, x, {axis: (*span, step)}, n.name)


def _range(n: AtenCall) -> tuple[Expr, Expr, int]:
    start, stop = n["start"], n["end"]
    step = as_int(as_expr(n["step"]))
    if step is None:
        raise n.unsupported("a step that is not a number", "steps must be numbers")
    first = const(0) if start is None else as_expr(start)
    return first, END if stop is None else as_expr(stop), step


def slice_(c: TorchContext, n: AtenCall) -> Result:
    """A part along one axis."""
    x = n["self"]
    return part(c, n, x, axis_of(n["dim"], c.type(x).rank), *_range(n))


def select(c: TorchContext, n: AtenCall) -> Result:
    """One position along an axis, which goes."""
    x = n["self"]
    axis, index = axis_of(n["dim"], c.type(x).rank), as_expr(n["index"])
    shape = c.type(x).shape
    stop = END if as_int(index) == -1 else simplify(index + 1)
    cut = part(c, n, x, axis, index, stop)
    return c.reshape(n, cut, shape[:axis] + shape[axis + 1 :])


def _written(c: TorchContext, n: AtenCall, axis: int, start: Expr, stop: Expr, source: str) -> str:
    """`self` with `source` in place of a run of positions."""
    x = n["self"]
    low, high = bounds(start, stop, 1, c.type(x).shape[axis])
    rows = c.type(x).shape[axis]
    ahead = add_slice(c.g, x, {axis: (const(0), low, 1)}, n.name)
    behind = add_slice(c.g, x, {axis: (high, rows, 1)}, n.name)
    parts = [p for p in (ahead, source, behind) if c.type(p).shape[axis] is not const(0)]
    if len(parts) == 1:
        return parts[0]
    return c.add(n, "concat", *parts, attrs=ConcatAttrs(axis))


def slice_scatter(c: TorchContext, n: AtenCall) -> Result:
    """A part replaced."""
    start, stop, step = _range(n)
    if step != 1:
        raise n.unsupported(f"a step of {step}", "only neighbouring positions are replaced")
    axis = axis_of(n["dim"], c.type(n["self"]).rank)
    return _written(c, n, axis, start, stop, c.cast(n, n["src"], n.dtype))


def select_scatter(c: TorchContext, n: AtenCall) -> Result:
    """One position replaced."""
    shape = list(c.type(n["self"]).shape)
    axis, index = axis_of(n["dim"], len(shape)), as_expr(n["index"])
    shape[axis] = const(1)
    source = c.reshape(n, c.cast(n, n["src"], n.dtype), shape)
    stop = END if as_int(index) == -1 else simplify(index + 1)
    return _written(c, n, axis, index, stop, source)


def concat(c: TorchContext, n: AtenCall) -> Result:
    """Joined along an axis; a vector of no elements fits everything, and adds nothing."""
    rank = n.type.rank
    given = [v for v in n["tensors"] if c.type(v).rank == rank]
    parts = [c.operand(n, v, n.dtype) for v in given]
    if len(parts) == 1:
        return parts[0]
    return c.add(n, "concat", *parts, attrs=ConcatAttrs(axis_of(n["dim"], rank)))


def split(c: TorchContext, n: AtenCall) -> Result:
    """Parts of one size each, of which the last may be smaller, or of given sizes."""
    x = n["self"]
    axis = axis_of(n["dim"], c.type(x).rank)
    sizes = n.get("split_sizes", n.get("split_size"))
    sizes = sizes if isinstance(sizes, list | tuple) else [sizes] * len(n.results)
    start: Expr = const(0)
    parts: list[str | None] = []
    for index, size in enumerate(sizes):
        stop = simplify(start + as_expr(size))
        parts.append(part(c, n, x, axis, start, stop) if index in n.used else None)
        start = stop
    return tuple(parts)


def unbind(c: TorchContext, n: AtenCall) -> Result:
    """Each position along an axis, which goes."""
    x = n["self"]
    shape = c.type(x).shape
    axis = axis_of(n["dim"], len(shape))
    rest = shape[:axis] + shape[axis + 1 :]

    def one(index: int) -> str:
        return c.reshape(n, part(c, n, x, axis, const(index), const(index + 1)), rest)

    return tuple(one(i) if i in n.used else None for i in range(len(n.results)))


def padded(c: TorchContext, n: AtenCall, mode: str, value: Any = 0) -> str:
    """Amounts are given from the last axis on, before and after it; negative ones cut."""
    x, given = n["self"], n.get("pad", n.get("padding"))
    rank = c.type(x).rank
    before: list[Expr] = [const(0)] * rank
    after: list[Expr] = [const(0)] * rank
    for i in range(len(given) // 2):
        before[rank - 1 - i] = as_expr(given[2 * i])
        after[rank - 1 - i] = as_expr(given[2 * i + 1])
    return c.add(n, "pad", x, attrs=PadAttrs(tuple(before), tuple(after), mode, value))


def constant_pad(c: TorchContext, n: AtenCall) -> Result:
    """A number around."""
    return padded(c, n, "constant", n["value"])


def pad_mode(mode: str) -> Converter:
    """What is at the border repeated or mirrored."""
    return lambda c, n: padded(c, n, mode)


CONVERTERS: dict[str, Converter] = {
    "aten.slice": slice_,
    "aten.select": select,
    "aten.slice_scatter": slice_scatter,
    "aten.select_scatter": select_scatter,
    "aten.cat": concat,
    "aten.split": split,
    "aten.split_with_sizes": split,
    "aten.unbind": unbind,
    "aten.constant_pad_nd": constant_pad,
    **{f"aten.reflection_pad{d}d": pad_mode("reflect") for d in (1, 2, 3)},
    **{f"aten.replication_pad{d}d": pad_mode("edge") for d in (1, 2, 3)},
}
