"""Control flow: Scan, a loop over the slices of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tilewright.arith.expr import Expr, Var, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64
from tilewright.frontends.onnx.backtracking import Backtracker
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, identifier
from tilewright.frontends.onnx.convert.control_flow.loop import add_loop, convert_body
from tilewright.frontends.onnx.regions import Captured, region_builder
from tilewright.ir.graph.nodes import Graph
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import SliceAttrs


@dataclass(frozen=True)
class _Scan:
    """A Scan: its states and what it goes through, by our names, and in which direction.

    `backward` has the numbers of the tensors that are read, or written, from their ends.
    """

    node: OnnxNode
    states: tuple[str, ...]
    scanned: tuple[str, ...]
    axes: tuple[int, ...]
    count: Expr
    reads_backward: tuple[int, ...]
    writes_backward: tuple[int, ...]


def scan(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A nested graph that is run for each slice of some tensors."""
    return _batches(c, n) if n.opset < 9 else _slices(c, n)


def _slices(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Since version 9: any axis, in either direction, in and out."""
    states, scanned = _parts(n, n.inputs)
    axes = _list(n, "scan_input_axes", len(scanned))
    axes = tuple(
        normalize_axis(n.op_type, a, c.type(x).rank) for a, x in zip(axes, scanned, strict=True)
    )
    sizes = [c.type(x).shape[axis] for x, axis in zip(scanned, axes, strict=True)]
    _require_same(c, n, sizes)
    rows = len(n.graph_attr("body").output) - len(states)
    reads = _backward(n, "scan_input_directions", len(scanned))
    writes = _backward(n, "scan_output_directions", rows)
    found = _scan(c, _Scan(n, states, scanned, axes, sizes[0], reads, writes))
    outputs = zip(found[len(states) :], _list(n, "scan_output_axes", rows), strict=True)
    return (*found[: len(states)], *(_moved(c, n, y, axis) for y, axis in outputs))


def _batches(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Version 8: a scan along the second axis for each index of the first.

    Each may end early, and its rows are then filled up with zeros.
    """
    states, scanned = _parts(n, n.inputs[1:])
    sizes = [c.type(x).shape for x in scanned]
    if any(len(shape) < 2 for shape in sizes) or not all(c.type(s).rank for s in states):
        raise n.invalid("an input has no axis of batches, or none of slices")
    _require_same(c, n, [shape[0] for shape in sizes] + [c.type(s).shape[0] for s in states])
    _require_same(c, n, [shape[1] for shape in sizes])
    captured, counter = Captured.by(c, [n.graph_attr("body")]), c.fresh_size()
    lengths = n.input(0)
    given = [v for v in (*states, *scanned, lengths) if v]
    g = region_builder(c, "batch")
    inner = [g.capture(c.g, v) for v in given]
    context = c.inner(g, captured.define(c, g))
    one = [_slice(g, v, 0, Var(counter)) for v in inner]
    length, count = sizes[0][1], len(states)
    if lengths:
        length = context.bind_dim(n, context.cast(n, one.pop(), I64), length)
    backward = _backward(n, "directions", len(scanned))
    axes = (0,) * len(scanned)
    parts = _Scan(n, tuple(one[:count]), tuple(one[count:]), axes, length, backward, ())
    found = list(_scan(context, parts))
    rows = [_filled(g, y, sizes[0][1]) for y in found[count:]]
    region = g.graph(*found[:count], *rows)
    operands = [v for v in given if c.constant_of(v) is None]
    attrs = LoopAttrs(counter, sizes[0][0], 0)
    names = _names(n)
    return add_loop(
        c, n, ["", *operands, *captured.operands(c)], region, attrs, lambda: sizes[0][0], names
    )


def _scan(c: OnnxContext, parts: _Scan) -> tuple[str, ...]:
    """The states at the end, then the rows of all slices."""
    n = parts.node
    captured, counter = Captured.by(c, [n.graph_attr("body")]), c.fresh_size()
    region = convert_body(n, captured, partial(_body, c, parts, captured, counter))
    attrs = LoopAttrs(counter, parts.count, len(parts.states), backward=parts.writes_backward)
    operands = [v for v in parts.scanned if c.constant_of(v) is None]
    given = ["", *parts.states, *operands, *captured.operands(c)]
    return add_loop(c, n, given, region, attrs, lambda: parts.count, _names(n))


def _body(
    c: OnnxContext, parts: _Scan, captured: Captured, counter: str, backtracker: Backtracker
) -> Graph:
    """The graph of one step, which cuts its slices itself."""
    body = parts.node.graph_attr("body")
    names = [identifier(v.name) for v in body.input]
    g = region_builder(c, body.name)
    states = [g.input(name, c.type(s)) for name, s in zip(names, parts.states, strict=False)]
    scanned = [g.capture(c.g, x) for x in parts.scanned]
    values = captured.define(c, g)
    for number, (x, axis) in enumerate(zip(scanned, parts.axes, strict=True)):
        at: Expr = Var(counter)
        at = parts.count - 1 - at if number in parts.reads_backward else at
        states.append(_slice(g, x, axis, at))
    values.update((v.name, s) for v, s in zip(body.input, states, strict=True))
    return g.graph(*c.nested(c.inner(g, values, backtracker), body))


def _slice(g: GraphBuilder, value: str, axis: int, at: Expr) -> str:
    """The slice of a tensor at an index that lies inside, without that axis."""
    shape = g.type(value).shape
    starts = tuple(simplify(at) if d == axis else const(0) for d in range(len(shape)))
    stops = tuple(simplify(at + 1) if d == axis else size for d, size in enumerate(shape))
    attrs = SliceAttrs(starts, stops, (1,) * len(shape), inside=True)
    cut = g.add("slice", value, attrs=attrs)
    return g.add("reshape", cut, attrs=ReshapeAttrs((*shape[:axis], *shape[axis + 1 :])))


def _filled(g: GraphBuilder, value: str, size: Expr) -> str:
    """Rows with zeros behind them, `size` in all."""
    shape = g.type(value).shape
    if shape[0] is size:
        return value
    none = tuple(const(0) for _ in shape)
    return g.add("pad", value, attrs=PadAttrs(none, (simplify(size - shape[0]), *none[1:])))


def _moved(c: OnnxContext, n: OnnxNode, value: str, axis: int) -> str:
    """Rows that are stacked along the first axis, along another."""
    rank = c.type(value).rank
    axis = normalize_axis(n.op_type, axis, rank)
    if axis == 0:
        return value
    order = (*range(1, axis + 1), 0, *range(axis + 1, rank))
    return c.add(n, "transpose", value, attrs=TransposeAttrs(order))


def _parts(n: OnnxNode, given: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The states and the tensors that are scanned."""
    body, scanned = n.graph_attr("body"), n.int_attr("num_scan_inputs")
    states = len(given) - scanned
    if scanned < 1 or states < 0 or not all(given):
        raise n.invalid(f"{scanned} of its {len(given)} inputs are to be scanned")
    if len(body.input) != len(given) or len(body.output) < states:
        raise n.invalid(f"body takes {len(body.input)} values and gives {len(body.output)}")
    return tuple(given[:states]), tuple(given[states:])


def _list(n: OnnxNode, name: str, count: int) -> tuple[int, ...]:
    found = n.ints_attr(name, (0,) * count)
    if len(found) != count:
        raise n.invalid(f"{name} has {len(found)} numbers for {count} tensors")
    return found


def _backward(n: OnnxNode, name: str, count: int) -> tuple[int, ...]:
    found = _list(n, name, count)
    if not set(found) <= {0, 1}:
        raise n.invalid(f"{name} is {list(found)}", "use 0 for forward, 1 for backward")
    return tuple(i for i, direction in enumerate(found) if direction)


def _require_same(c: OnnxContext, n: OnnxNode, sizes: Sequence[Expr]) -> None:
    for other in sizes[1:]:
        message = f"Scan: its inputs have {sizes[0]} and {other} slices"
        if not c.g.add_check(sizes[0].eq(other), message, n.loc):
            raise n.invalid(f"its inputs have {sizes[0]} and {other} slices")


def _names(n: OnnxNode) -> list[str]:
    return [identifier(name) if name else "scan" for name in n.outputs]


CONVERTERS: dict[str, Converter] = {"Scan": scan}
