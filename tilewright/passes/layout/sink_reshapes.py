"""Sink reshapes: they move down through the graph, past what can be computed before them.

    add(reshape(a), b)               →   reshape(add(a, reshape(b)))
    matmul(reshape(a), w)            →   reshape(matmul(a, w))
    gather(a, reshape(i))            →   reshape(gather(a, i))
    reduce(reshape(a), axes)         →   reshape(reduce(a, axes where they were))
    transpose(reshape(transpose(a))) →   reshape(transpose(a))
    transpose(reshape(group_conv(a))) →  reshape(transpose(group_conv(a)))
    reshape(transpose(reshape(a)))   →   transpose(a)
    reshape(reshape(a))              →   reshape(a), or a

A reshape costs nothing, but prevents fusion: a residual that is added after it cannot be a part of
the product before it. So an elementwise operator moves before a reshape of which it is the only
reader, if its other operands can be reshaped for free. Transposes are sunk in the same pass, since
each kind may enable the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod

import numpy as np

from tilewright.arith.expr import Expr, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape
from tilewright.ops.elementwise.define import is_pointwise
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.manipulation import (
    ReshapeAttrs,
    TransposeAttrs,
    common_runs,
    static_sizes,
)
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.context import PassContext
from tilewright.passes.layout.sink_transposes import sink_transpose
from tilewright.passes.rewriter import Rewriter, rewrite_graph

ONE = const(1)
Runs = list[tuple[slice, slice]]
# The most elements of a constant that has to be repeated to take another shape.
MAX_REPEATED = 1 << 16
# Models take two or three walks. Rearrangements that do not join pile up and are carried along all
# the same, each walk by one step: as many walks as nodes would take time quadratic in them.
MAX_WALKS = 16


def sink_reshapes(graph: Graph, context: PassContext) -> Graph:
    """Move reshapes and transposes toward the outputs, joining and cancelling them on the way."""
    for _ in range(MAX_WALKS):
        result = rewrite_graph(graph, _sink)
        if result is graph:
            break
        # What is left behind after each walk would count as a reader in the next.
        graph = dce(result, context)
    return graph


def _sink(g: Rewriter, n: Node) -> str | tuple[str, ...] | None:
    found = sink_transpose(g, n)
    if found is not None or not n.inputs or n.op == "fused":
        return found
    if is_pointwise(get_op(n.op)):
        return _sink_pointwise(g, n)
    if isinstance(n.attrs, ReduceAttrs):
        return _sink_reduce(g, n)
    rule = _RULES.get(n.op)
    return None if rule is None else rule(g, n)


def _reshaped(g: Rewriter, value: str) -> str | None:
    """What a value is a reshape of."""
    producer = g.producer(value) if value else None
    return producer.inputs[0] if producer is not None and producer.op == "reshape" else None


def _reshape(g: Rewriter, value: str, shape: Shape) -> str:
    """A value under another shape; itself if that is the one it has."""
    if g.type(value).shape == shape:
        return value
    base = _reshaped(g, value)
    if base is not None:
        return _reshape(g, base, shape)
    return g.add("reshape", value, attrs=ReshapeAttrs(shape))


def _runs(old: Shape, new: Shape) -> Runs:
    """Two shapes of equal size cut into runs of equal size, dimension by dimension at both ends."""
    pairs = list(zip(old, new, strict=False))
    front = next((i for i, (a, b) in enumerate(pairs) if a is not b), len(pairs))
    back = 0
    while back < len(pairs) - front and old[-1 - back] is new[-1 - back]:
        back += 1
    ends, middle = (len(old) - back, len(new) - back), []
    if front < max(ends):
        middle = common_runs(old[front : ends[0]], new[front : ends[1]])
    return [
        *((slice(i, i + 1), slice(i, i + 1)) for i in range(front)),
        *((_shifted(a, front), _shifted(b, front)) for a, b in middle),
        *((slice(a, a + 1), slice(b, b + 1)) for a, b in zip(*_ranges(ends, back), strict=True)),
    ]


def _shifted(s: slice, by: int) -> slice:
    return slice(s.start + by, s.stop + by)


def _ranges(starts: tuple[int, int], count: int) -> tuple[range, range]:
    return range(starts[0], starts[0] + count), range(starts[1], starts[1] + count)


def _sink_pointwise(g: Rewriter, n: Node) -> str | None:
    """Compute in the shape of an operand that was reshaped for this node only."""
    for value in n.inputs:
        base = _reshaped(g, value)
        if base is None or g.type(value).shape != n.type.shape or not _only_here(g, value, base):
            continue
        shape = g.type(base).shape
        runs = _runs(shape, n.type.shape)
        operands = [_operand(g, i, shape, n.type.shape, runs) for i in n.inputs]
        if any(o is None for o in operands):
            continue
        inner = g.add(n.op, *(o for o in operands if o is not None), attrs=n.attrs)
        if g.type(inner).shape == shape:
            return _reshape(g, inner, n.type.shape)
    return None


def _only_here(g: Rewriter, value: str, base: str) -> bool:
    """Whether a node computes `base` that a single reader could be fused with."""
    read_once = g.use_count(value) <= 1 and g.use_count(base) <= 1
    return read_once and _is_computed(g, base)


def _is_computed(g: Rewriter, value: str) -> bool:
    producer = g.producer(value)
    return producer is not None and get_op(producer.op).kind in (
        "injective",
        "reduction",
        "out_fusable",
    )


def _operand(g: Rewriter, value: str, old: Shape, new: Shape, runs: Runs) -> str | None:
    """An operand as it broadcasts to `old` instead of `new`, `None` if that costs something."""
    if not value or all(d is ONE for d in g.type(value).shape):
        return value
    data = g.constant_data(value)
    if data is not None:
        return _constant(g, data, old, new, runs)
    given = g.type(value).shape
    padded = (ONE,) * (len(new) - len(given)) + given
    shape: list[Expr] = []
    for before, after in runs:
        ours = padded[after]
        if all(d is ONE for d in ours):
            shape += [ONE] * len(old[before])
        elif ours == new[after]:
            shape += old[before]
        else:
            return None
    base = _reshaped(g, value) or value
    if g.type(base).shape != tuple(shape) and _only_here(g, value, base):
        return None  # its own kernel could as well take this node in
    return _reshape(g, value, tuple(shape))


def _constant(g: Rewriter, data: np.ndarray, old: Shape, new: Shape, runs: Runs) -> str | None:
    """A constant in the other shape, repeated where it broadcasts along a part of a run."""
    full = data.reshape((1,) * (len(new) - data.ndim) + data.shape)
    repeated, shape = list(full.shape), list[int]()
    for before, after in runs:
        if all(s == 1 for s in full.shape[after]):
            shape += [1] * len(old[before])
            continue
        ours, theirs = static_sizes(new[after]), static_sizes(old[before])
        if ours is None or theirs is None:
            return None
        repeated[after] = ours
        shape += theirs
    if tuple(repeated) != full.shape and prod(repeated) > MAX_REPEATED:
        return None
    return g.constant(np.broadcast_to(full, repeated).reshape(shape))


def _sink_reduce(g: Rewriter, n: Node) -> str | None:
    """Reduce over the runs that the axes are; each must be reduced as a whole."""
    base = _reshaped(g, n.inputs[0])
    if base is None:
        return None
    assert isinstance(n.attrs, ReduceAttrs)
    old, new = g.type(base).shape, g.type(n.inputs[0]).shape
    axes, found = {a % len(new) for a in n.attrs.axes}, list[int]()
    for before, after in _runs(old, new):
        ours = set(range(len(new))[after])
        if ours and ours <= axes:
            found += range(len(old))[before]
        elif ours & axes:
            return None
    if not found:
        return None
    inner = g.add(n.op, base, attrs=replace(n.attrs, axes=tuple(found), keepdims=True))
    return _reshape(g, inner, n.type.shape)


def _sink_matmul(g: Rewriter, n: Node) -> str | None:
    """Rows times a matrix, whatever shape the rows are arranged in."""
    base = _reshaped(g, n.inputs[0])
    if base is None or g.type(n.inputs[1]).rank != 2:
        return None
    old, new = g.type(base).shape, g.type(n.inputs[0]).shape
    if len(old) < 2 or old[-1] is not new[-1]:
        return None
    return _reshape(g, g.add(n.op, base, n.inputs[1], attrs=n.attrs), n.type.shape)


def _sink_gather(g: Rewriter, n: Node) -> str | None:
    """Look up by indices in the shape in which they are computed."""
    data, indices = n.inputs
    base = _reshaped(g, indices)
    if base is None or not _only_here(g, indices, base):
        return None
    return _reshape(g, g.add(n.op, data, base, attrs=n.attrs), n.type.shape)


def _sink_transpose(g: Rewriter, n: Node) -> str | None:
    """Join a transpose with one, or a convolution in groups, before the reshape of its operand.

    Runs of dimensions must move as a whole.
    """
    base = _reshaped(g, n.inputs[0])
    if base is None or not (_is_made_by(g, base, "transpose") or _sums_groups(g, base)):
        return None
    order = _order_of_base(g, base, n)
    if order is None:
        return None
    inner = g.add("transpose", base, attrs=TransposeAttrs(order))
    return _reshape(g, inner, n.type.shape)


def _is_made_by(g: Rewriter, value: str, op: str) -> bool:
    producer = g.producer(value)
    return producer is not None and producer.op == op


def _sums_groups(g: Rewriter, value: str) -> bool:
    """Whether a convolution in groups computes a value, perhaps with elementwise operators."""
    producer = g.producer(value)
    while producer is not None and is_pointwise(get_op(producer.op)):
        producer = g.producer(producer.inputs[0])
    return producer is not None and producer.op == "group_conv"


def _order_of_base(g: Rewriter, base: str, n: Node) -> tuple[int, ...] | None:
    """How the dimensions of `base` move if a transpose moves those that it is reshaped to."""
    assert isinstance(n.attrs, TransposeAttrs)
    perm, place = n.attrs.perm, 0
    old, new = g.type(base).shape, g.type(n.inputs[0]).shape
    runs = {after.start: (before, after) for before, after in _runs(old, new) if new[after]}
    order: list[int] = [a for a, d in enumerate(old) if not _lies_in(a, runs.values())]
    while place < len(perm):
        before, after = runs.get(perm[place], (slice(0, 0), slice(0, 0)))
        size = after.stop - after.start
        if not size or perm[place : place + size] != tuple(range(after.start, after.stop)):
            return None
        order += range(before.start, before.stop)
        place += size
    return tuple(order)


def _lies_in(axis: int, runs: Iterable[tuple[slice, slice]]) -> bool:
    return any(before.start <= axis < before.stop for before, _ in runs)


def _merge(g: Rewriter, n: Node) -> str | None:
    """Reshape what was reshaped before, or nothing at all."""
    value = n.inputs[0]
    if g.type(value).shape != n.type.shape and _reshaped(g, value) is None:
        return _between_reshapes(g, n)
    return _reshape(g, value, n.type.shape)


def _between_reshapes(g: Rewriter, n: Node) -> str | None:
    """Transpose in the shape that dimensions had before they were joined, and have again behind."""
    transposed = g.producer(n.inputs[0])
    if transposed is None or transposed.op != "transpose" or g.use_count(transposed.name) > 1:
        return None
    base = _reshaped(g, transposed.inputs[0])
    order = None if base is None else _order_of_base(g, base, transposed)
    if base is None or order is None:
        return None
    old = g.type(base).shape
    if tuple(old[a] for a in order) != n.type.shape:
        return None
    return g.add("transpose", base, attrs=TransposeAttrs(order))


_RULES: dict[str, Callable[[Rewriter, Node], str | None]] = {
    "gather": _sink_gather,
    "matmul": _sink_matmul,
    "reshape": _merge,
    "transpose": _sink_transpose,
}
