"""Control flow: Loop.

A loop is native if its carried values keep their types, and if the memory for its stacked rows has
a bound that is known before it runs. Any other loop runs on the host, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tilewright.arith.expr import Const, Expr, Var, as_int, const, maximum
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import BOOL, I64
from tilewright.core.errors import TypeCheckError
from tilewright.frontends.onnx.backtracking import Backtracker, first_success
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, identifier
from tilewright.frontends.onnx.regions import Captured, region_builder
from tilewright.frontends.onnx.segments.data_dependent import (
    DataDependent,
    HostOnly,
    NeedsConcreteValue,
)
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.ops.control.loop import LoopAttrs, loop_types
from tilewright.ops.tensor.creation import DimsAttrs

# Steps of a loop that nothing but its condition ends.
ENDLESS = const(2**63 - 1)
# Rows for which memory is planned though a condition may leave most of it unused.
MAX_ROWS = 1 << 16


@dataclass(frozen=True)
class _Loop:
    """What is known of a Loop before its body is converted; `rows` are results that are wanted."""

    node: OnnxNode
    initial: tuple[str, ...]
    rows: tuple[int, ...]
    captured: Captured
    counter: str


def loop(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A nested graph that is run while a condition holds, up to a number of times."""
    body, initial = n.graph_attr("body"), n.inputs[2:]
    if len(body.input) != len(initial) + 2 or len(body.output) < len(initial) + 1:
        raise n.invalid(f"body takes {len(body.input)} values and gives {len(body.output)}")
    if not all(initial):
        raise HostOnly(n.op_type, n.loc)
    results = range(len(body.output) - 1)
    rows = tuple(i for i in results[len(initial) :] if n.wants(i))
    parts = _Loop(n, initial, rows, Captured.by(c, [body]), c.fresh_size())
    region = convert_body(n, parts.captured, partial(_body, c, parts))
    kept = (*range(len(initial)), *rows)
    names = [identifier(n.outputs[i]) if n.wants(i) else "loop" for i in kept]
    found = dict(zip(kept, _add(c, parts, region, names), strict=True))
    return tuple(found.get(i, "") for i in results)


def _body(c: OnnxContext, parts: _Loop, backtracker: Backtracker) -> Graph:
    """The graph of one step; it says whether to go on only where that is not always so."""
    body, count = parts.node.graph_attr("body"), len(parts.initial)
    number, going, *carried = (v.name for v in body.input)
    g = region_builder(c, body.name)
    pairs = zip(carried, parts.initial, strict=True)
    values = {name: g.input(identifier(name), c.type(first)) for name, first in pairs}
    values = {**parts.captured.define(c, g), **values}
    values[number] = g.add("dims", attrs=DimsAttrs((Var(parts.counter),), ()))
    values[going] = g.constant(np.array(True))
    goes_on, *results = c.nested(c.inner(g, values, backtracker), body)
    kept = [*results[:count], *(results[i] for i in parts.rows)]
    known = g.symbolic_value(goes_on)
    always = known is not None and all(isinstance(e, Const) and e.value for e in known.reshape(-1))
    return g.graph(*kept) if always else g.graph(goes_on, *kept)


def convert_body(n: OnnxNode, captured: Captured, attempt: Callable[[Backtracker], Graph]) -> Graph:
    """The graph of one step; what waits for something inside of it must run on the host."""
    try:
        return first_success(attempt)
    except NeedsConcreteValue as error:
        if error.value in captured.names:
            raise
        raise HostOnly(n.op_type, n.loc) from error
    except DataDependent as error:
        raise HostOnly(n.op_type, n.loc) from error


def add_loop(
    c: OnnxContext,
    n: OnnxNode,
    given: Sequence[str],
    region: Graph,
    attrs: LoopAttrs,
    count: Callable[[], Expr],
    names: Sequence[str] = (),
) -> tuple[str, ...]:
    """Append a loop; where its steps do not fit together, the host must run it.

    The number of steps is asked for only once it is sure that the loop can be native.
    """
    types = [c.type(v) if v else None for v in given]
    try:
        loop_types(attrs, types, [region])
    except TypeCheckError as error:
        raise HostOnly(n.op_type, n.loc) from error
    outputs = c.g.add_control(
        "loop", given, [region], replace(attrs, trip_count=count()), names, n.loc
    )
    # Rows have their size also where no step is taken, and so nothing checked that checks a step.
    for output in outputs[attrs.carried :]:
        for size in c.type(output).shape:
            c.g.add_check(const(0) <= size, f"{n.op_type}: there are no rows of {size}", n.loc)
    return outputs


def _add(c: OnnxContext, parts: _Loop, region: Graph, names: Sequence[str]) -> tuple[str, ...]:
    n, carried = parts.node, len(parts.initial)
    begin = _begin(c, n)
    conditional = len(region.outputs) > carried + len(parts.rows)
    trip_count_dim = c.fresh_size() if parts.rows and (conditional or begin) else ""
    attrs = LoopAttrs(parts.counter, const(0), carried, conditional, trip_count_dim)
    given = [begin or "", *parts.initial, *parts.captured.operands(c)]
    count = partial(_count, c, parts, region, begin, bool(trip_count_dim))
    return add_loop(c, n, given, region, attrs, count, names)


def _begin(c: OnnxContext, n: OnnxNode) -> str | None:
    """The condition under which a loop begins: "" if it certainly does, `None` if it does not."""
    name = n.input(1)
    if not name:
        return ""
    if c.type(name).dtype != BOOL:
        raise n.invalid(f"its condition is {c.type(name)}", "use a tensor of one truth value")
    known = c.g.symbolic_value(name)
    if known is None or known.size != 1 or not isinstance(known.reshape(-1)[0], Const):
        return name
    return "" if known.reshape(-1)[0].value else None


def _count(c: OnnxContext, parts: _Loop, region: Graph, begin: str | None, early: bool) -> Expr:
    """The most steps that there are; memory must not depend on a number that may be anything."""
    n = parts.node
    if begin is None:
        return const(0)
    name = n.input(0)
    if name and not c.type(name).dtype.is_integer:
        raise n.invalid(f"its number of steps is {c.type(name)}", "use a tensor of one integer")
    known = c.g.symbolic_value(name) if name else None
    if known is not None:
        count = simplify(n.only(known, 0))
        if early and (as_int(count) or 0) > MAX_ROWS:
            raise HostOnly(n.op_type, n.loc)
        return count if prove(const(0) <= count) else simplify(maximum(count, const(0)))
    if parts.rows or _mentions(region, parts.counter):
        raise c.needs_value(n, 0, sizes=True) if name else HostOnly(n.op_type, n.loc)
    if not name:
        return ENDLESS
    zero = c.constant(np.zeros((1,) * c.type(name).rank), I64)
    return c.bind_dim(n, c.add(n, "max", c.cast(n, name, I64), zero), ENDLESS)


def _mentions(region: Graph, size: str) -> bool:
    """Whether a size decides about the memory that a nested graph needs."""
    types = [t for n in region.walk() for t in n.types if isinstance(t, TensorType)]
    return any(size in free_vars(d) for t in types for d in t.shape)


CONVERTERS: dict[str, Converter] = {"Loop": loop}
