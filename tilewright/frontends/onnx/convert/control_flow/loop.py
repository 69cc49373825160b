"""Control flow: Loop.

A loop is native if its carried values keep their types, and if the memory for its stacked rows has
a bound that is known before it runs. Any other loop runs on the host, step by step.

Exporters write counters, weights and arrays as carried values, and end a loop by a condition on its
counter. Here only what changes is carried (`loop_values`), a counter is an expression over the
number of the step, and the condition becomes a number of steps (`trip_count`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from tilewright.arith.expr import Expr, Var, as_int, const, maximum
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import BOOL, I64
from tilewright.core.errors import TypeCheckError
from tilewright.frontends.onnx.backtracking import Backtracker, first_success
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, identifier
from tilewright.frontends.onnx.convert.control_flow.loop_values import Growth, LoopBody
from tilewright.frontends.onnx.convert.control_flow.trip_count import (
    conjuncts,
    if_begun,
    known_condition,
    least,
    margins,
    steps_while,
)
from tilewright.frontends.onnx.regions import Captured, region_builder
from tilewright.frontends.onnx.segments.data_dependent import (
    DataDependent,
    HostOnly,
    NeedsConcreteValue,
)
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.ops.control.loop import LoopAttrs, loop_types
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.creation import DimsAttrs, FullAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs

T = TypeVar("T")

# Steps of a loop that nothing but its condition ends.
UNBOUNDED_TRIPS = const(2**63 - 1)
# Rows for which memory is planned though a condition may leave most of it unused.
MAX_ROWS = 1 << 16


@dataclass(frozen=True)
class _Loop:
    """What is known of a Loop before its body is converted; `rows` are results that are wanted."""

    node: OnnxNode
    body: LoopBody
    initial: tuple[str, ...]
    rows: tuple[int, ...]
    captured: Captured
    counter: str
    invariant: tuple[int, ...]
    growing: Mapping[int, Growth]

    @classmethod
    def of(cls, c: OnnxContext, n: OnnxNode) -> _Loop:
        """The parts of a node."""
        graph, initial = n.graph_attr("body"), n.inputs[2:]
        if len(graph.input) != len(initial) + 2 or len(graph.output) < len(initial) + 1:
            raise n.invalid(f"body takes {len(graph.input)} values and gives {len(graph.output)}")
        if not all(initial):
            raise HostOnly(n.op_type, n.loc)
        body = LoopBody(graph)
        rows = tuple(i for i in range(len(initial), len(graph.output) - 1) if n.wants(i))
        growing = {k: g for k, g in body.growing() if c.type(initial[k]).rank}
        captured = Captured.by(c, [graph])
        invariant = tuple(body.invariant())
        return cls(n, body, initial, rows, captured, c.fresh_size(), invariant, growing)

    def counters(self, c: OnnxContext) -> Iterator[int]:
        """Carried integers that may go up by the same in every step, from a known one on."""
        for k in self.body.counters():
            known = c.g.symbolic_value(self.initial[k])
            integer = c.type(self.initial[k]).dtype.is_integer
            if integer and known is not None and known.size == 1:
                yield k

    def counted(self, c: OnnxContext, k: int, by: int) -> Expr:
        """A carried integer in a step, if each step adds `by` to it."""
        known = c.g.symbolic_value(self.initial[k])
        assert known is not None
        return simplify(known.reshape(-1)[0] + Var(self.counter) * by)

    def grown(self) -> list[int]:
        """The growing tensors that are wanted."""
        return [k for k in self.growing if self.node.wants(k)]


@dataclass(frozen=True)
class _Step:
    """A body, converted: the carried values left, and by how much each step changes a counter.

    `positive` must be positive after a step for another one to follow.
    """

    region: Graph
    carried: tuple[int, ...]
    increments: Mapping[int, int]
    positive: tuple[Expr, ...]
    conditional: bool


def loop(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A nested graph that is run while a condition holds, up to a number of times."""
    parts = _Loop.of(c, n)
    steps = dict.fromkeys(parts.counters(c), 1)
    step = convert_body(n, parts.captured, partial(_body, c, parts, steps))
    while step.increments != steps:
        steps = {k: by for k, by in step.increments.items() if steps[k] in (1, by)}
        step = convert_body(n, parts.captured, partial(_body, c, parts, steps))
    found = _add(c, parts, step)
    found |= {k: parts.initial[k] for k in parts.invariant}
    return tuple(found.get(i, "") for i in range(len(parts.body.graph.output) - 1))


def _body(
    c: OnnxContext, parts: _Loop, increments: Mapping[int, int], backtracker: Backtracker
) -> _Step:
    """The graph of one step; it says whether to go on only where data decide that."""
    graph, names = parts.body.graph, parts.body.carried
    other = {*increments, *parts.invariant, *parts.growing}
    carried = tuple(k for k in range(len(names)) if k not in other)
    g = region_builder(c, graph.name)
    values = {names[k]: g.input(identifier(names[k]), c.type(parts.initial[k])) for k in carried}
    values = {**parts.captured.define(c, g), **values}
    values |= {names[k]: g.capture(c.g, parts.initial[k]) for k in parts.invariant}
    values[graph.input[0].name] = _number(g, Var(parts.counter))
    values[graph.input[1].name] = g.constant(np.array(True))
    for k, by in increments.items():
        values[names[k]] = _number(g, parts.counted(c, k, by), c.type(parts.initial[k]))
    for k in parts.growing:
        empty = c.type(parts.initial[k])
        values[names[k]] = g.add("full", attrs=FullAttrs(empty.shape, 0, empty.dtype))
    goes_on, *results = c.nested(c.inner(g, values, backtracker), graph)
    changes = {k: _change(g, results[k], parts.counted(c, k, by)) for k, by in increments.items()}
    positive, conditions = _split(g, goes_on, parts.counter)
    kept = [results[k] for k in (*carried, *parts.rows)]
    kept += [values[parts.growing[k].piece] for k in parts.grown()]
    for further in conditions[1:]:
        conditions[0] = g.add("and", conditions[0], further)
    return _Step(
        g.graph(*conditions[:1], *kept),
        carried,
        {k: by for k, by in changes.items() if by is not None},
        tuple(positive),
        bool(conditions),
    )


def _number(g: GraphBuilder, value: Expr, like: TensorType | None = None) -> str:
    """An integer that is known, as a tensor."""
    shape = (1,) * (like.rank if like else 0)
    made = g.add("dims", attrs=DimsAttrs((value,), shape))
    return g.cast(made, like.dtype) if like else made


def _change(g: GraphBuilder, result: str, before: Expr) -> int | None:
    """By how much an integer differs from what it was before, if that is always the same."""
    after = g.symbolic_value(result)
    if after is None or after.size != 1:
        return None
    return as_int(simplify(after.reshape(-1)[0] - before))


def _split(g: GraphBuilder, goes_on: str, counter: str) -> tuple[list[Expr], list[str]]:
    """What must be positive for another step, and the conditions that must hold beside that."""
    positive: list[Expr] = []
    others: list[str] = []
    for name in conjuncts(g, goes_on):
        known = known_condition(g, name)
        found = None if known is None else margins(known)
        if found is None or any(_steps(e, counter) is None for e in found):
            others.append(name)
        else:
            positive += found
    return positive, others


def _steps(positive: Expr, counter: str, begins: Sequence[Expr] = ()) -> Expr | None:
    """How many steps there are while an expression is positive: one if it never is."""
    if counter not in free_vars(positive):
        return const(1) if positive is const(0) else None
    return steps_while(positive, counter, begins)


def _checked_steps(region: Graph, counter: str) -> Iterator[Expr]:
    """Upper bounds of the trip count: with one step more, a check of the body has failed."""
    for check in region.checks:
        for positive in margins(check.condition) or ():
            if counter in free_vars(positive) and (most := steps_while(positive, counter, ())):
                yield most


def convert_body(n: OnnxNode, captured: Captured, attempt: Callable[[Backtracker], T]) -> T:
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


def _add(c: OnnxContext, parts: _Loop, step: _Step) -> dict[int, str]:
    """Append the loop; its results by number, but for those that it does not change."""
    n, grown = parts.node, parts.grown()
    begin, begins = _begin(c, n)
    rows, region = [*parts.rows, *grown], step.region
    early = step.conditional or bool(begin)
    dim = early and (rows or any(map(n.wants, step.increments)))
    attrs = LoopAttrs(
        parts.counter,
        const(0),
        len(step.carried),
        step.conditional,
        c.fresh_size() if dim else "",
    )
    given = [begin, *(parts.initial[k] for k in step.carried), *parts.captured.operands(c)]
    given += [v for k in parts.invariant if c.constant_of(v := parts.initial[k]) is None]
    count = partial(_count, c, parts, step, begins, bool(rows))
    names = [identifier(n.outputs[i]) if n.wants(i) else "loop" for i in (*step.carried, *rows)]
    if names:
        outputs = add_loop(c, n, given, region, attrs, count, names)
        node = c.g.nodes[-1]
        assert isinstance(node.attrs, LoopAttrs)
        taken = node.attrs.steps
    elif dim:  # data say how far it counts, and nothing but a step's results can carry that
        raise HostOnly(n.op_type, n.loc)
    else:  # all that it does is to count, or nothing that is wanted
        outputs, taken = (), const(0) if early else count()
    found = dict(zip((*step.carried, *rows), outputs, strict=True))
    found |= {k: _joined(c, parts, k, found[k]) for k in grown}
    for k, by in step.increments.items():
        if n.wants(k):
            last = parts.counted(c, k, 0) + taken * by
            found[k] = _number(c.g, simplify(last), c.type(parts.initial[k]))
    return found


def _joined(c: OnnxContext, parts: _Loop, k: int, rows: str) -> str:
    """A tensor that has grown: what it was at first, and behind it the pieces of all steps."""
    n, initial = parts.node, parts.initial[k]
    count, *piece = c.type(rows).shape
    axis = normalize_axis("Concat", parts.growing[k].axis, len(piece))
    order = (*range(1, axis + 1), 0, *range(axis + 1, len(piece) + 1))
    moved = c.add(n, "transpose", rows, attrs=TransposeAttrs(order)) if axis else rows
    shape = (*piece[:axis], simplify(count * piece[axis]), *piece[axis + 1 :])
    joined = c.add(n, "reshape", moved, attrs=ReshapeAttrs(shape))
    if c.type(initial).shape[axis] is const(0):
        return joined
    return c.add(n, "concat", initial, joined, attrs=ConcatAttrs(axis))


def _begin(c: OnnxContext, n: OnnxNode) -> tuple[str, list[Expr]]:
    """The condition under which a loop begins if data decide it, else what must be positive."""
    name = n.input(1)
    if not name:
        return "", []
    if c.type(name).dtype != BOOL:
        raise n.invalid(f"its condition is {c.type(name)}", "use a tensor of one truth value")
    known = known_condition(c.g, name)
    found = None if known is None else margins(known)
    return (name, []) if found is None else ("", found)


def _count(
    c: OnnxContext, parts: _Loop, step: _Step, begins: Sequence[Expr], has_rows: bool
) -> Expr:
    """The most steps that there are; memory must not depend on a number that may be anything."""
    n = parts.node
    if const(0) in begins:
        return const(0)
    name = n.input(0)
    if name and not c.type(name).dtype.is_integer:
        raise n.invalid(f"its number of steps is {c.type(name)}", "use a tensor of one integer")
    known = c.g.symbolic_value(name) if name else None
    found = (_steps(e, parts.counter, begins) for e in step.positive)
    bounds = [e for e in found if e is not None]
    if known is not None:
        bounds.append(simplify(maximum(n.only(known, 0), const(0))))
    bounds = bounds or list(_checked_steps(step.region, parts.counter))
    if bounds:
        count = if_begun(least(bounds), begins)
        if step.conditional and has_rows and (as_int(count) or 0) > MAX_ROWS:
            raise HostOnly(n.op_type, n.loc)
        if known is not None or not name:
            return count
    elif has_rows or _mentions(step.region, parts.counter):
        raise c.needs_value(n, 0, sizes=True) if name else HostOnly(n.op_type, n.loc)
    else:
        count = UNBOUNDED_TRIPS
    if not name:
        return count
    return c.bind_dim(n, _limited(c, n, name, count), count)


def _limited(c: OnnxContext, n: OnnxNode, name: str, most: Expr) -> str:
    """A number of steps that is data, not below 0 and not above `most`."""
    given = c.cast(n, name, I64)
    zero = c.constant(np.zeros((1,) * c.type(name).rank), I64)
    given = c.add(n, "max", given, zero)
    return given if most is UNBOUNDED_TRIPS else c.add(n, "min", given, _number(c.g, most))


def _mentions(region: Graph, size: str) -> bool:
    """Whether a size decides about the memory that a nested graph needs."""
    types = [t for n in region.walk() for t in n.types if isinstance(t, TensorType)]
    return any(size in free_vars(d) for t in types for d in t.shape)


CONVERTERS: dict[str, Converter] = {"Loop": loop}
