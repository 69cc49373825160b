"""Control flow on values of tensors: torch's cond, while_loop, scan and map.

    torch.cond(x.sum() > 0, positive, negative, (x,))       %y = if(%c, %x) {graph ... graph ...}
    torch.while_loop(goes_on, step, (i, x))                 %i, %x = loop(%begin, %i, %x) {...}

Their functions are graphs in the graph. What these take is given to them as operands; they read
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import GraphModule

from tilewright.arith.expr import Expr, Var, const
from tilewright.arith.simplify import simplify
from tilewright.core.errors import Loc, UnsupportedError
from tilewright.frontends.torch.context import TorchContext, ValueName
from tilewright.ir.graph.nodes import Graph
from tilewright.ops.control.conditional import IfAttrs
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.ops.tensor.slicing import SliceAttrs

# Steps of a loop that only its condition ends.
_UNBOUNDED = const(2**63 - 1)
Inline = Callable[[TorchContext, GraphModule, Sequence[Any]], list[Any]]
"""Appends the operators of a module for the values that it takes; gives its results."""


class ControlCall:
    """A call of one of these, its arguments by place, in the graph that it stands in."""

    def __init__(
        self, c: TorchContext, inline: Inline, name: str, args: Sequence[Any], loc: Loc
    ) -> None:
        self.c, self.inline, self.name, self.args, self.loc = c, inline, name, args, loc

    def tensors(self, given: Sequence[Any]) -> list[str]:
        """Operands that are carried: they must be tensors."""
        for value in given:
            if not isinstance(value, ValueName):
                raise self.refused(f"it carries a {type(value).__name__}, which is no tensor")
        return [str(value) for value in given]

    def refused(self, what: str) -> UnsupportedError:
        """The error for what has no counterpart here."""
        return UnsupportedError(
            "torch.control", f"{self.name}: {what}", loc=self.loc, help="pass tensors, not numbers"
        )

    def region(self) -> GraphBuilder:
        """The builder of a nested graph, which knows of sizes what is known around it."""
        g = GraphBuilder(self.name, self.loc)
        g.inherit(self.c.g)
        return g

    def run(self, g: GraphBuilder, module: GraphModule, given: Sequence[Any]) -> list[str]:
        """The tensors that a function gives, its operators in a nested graph."""
        inner = TorchContext(g, is_seeded=self.c.is_seeded, is_nested=True)
        values = [ValueName(v) if isinstance(v, str) else v for v in given]
        return self.tensors(self.inline(inner, module, values))

    def add(
        self, op: str, first: str, given: Sequence[str], regions: Sequence[Graph], attrs: Any
    ) -> tuple[str, ...]:
        """Append a node of control flow; constants are no operands, its graphs have them."""
        operands = [v for v in given if self.c.g.constant_data(v) is None]
        names = [self.name]
        return self.c.g.add_control(op, [first, *operands], regions, attrs, names, self.loc)

    def as_operands(self, values: Sequence[str]) -> list[str]:
        """Values of which none is a constant: what a loop carries is no constant inside."""
        g = self.c.g
        fixed = [g.constant_data(v) is not None for v in values]
        return [g.add("identity", v) if f else v for v, f in zip(values, fixed, strict=True)]


def _capture(call: ControlCall, g: GraphBuilder, values: Sequence[Any]) -> list[Any]:
    """What a nested graph has for values around it, each captured once; numbers stay."""
    seen: dict[str, str] = {}
    for value in values:
        if isinstance(value, str) and value not in seen:
            seen[value] = g.capture(call.c.g, value)
    return [seen[v] if isinstance(v, str) else v for v in values]


def _distinct(values: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(v for v in values if isinstance(v, str)))


def cond(call: ControlCall) -> tuple[str, ...]:
    """One of two functions."""
    chosen, then, other, given = call.args
    if isinstance(chosen, bool):
        found = call.inline(call.c, then if chosen else other, list(given))
        return tuple(call.tensors(found))
    call.tensors([chosen])
    regions = []
    for module in (then, other):
        g = call.region()
        found = call.run(g, module, _capture(call, g, given))
        regions.append(g.graph(*_computed(g, found)))
    return call.add("if", chosen, _distinct(given), regions, IfAttrs())


def while_loop(call: ControlCall) -> tuple[str, ...]:
    """A function that is run on its own results while another one says so."""
    goes_on, step, initial, others = call.args
    carried = call.as_operands(call.tensors(initial))
    (begin,) = call.inline(call.c, goes_on, [*map(ValueName, carried), *others])
    g = call.region()
    before = [g.input(f"carried_{i}", call.c.type(v)) for i, v in enumerate(carried)]
    taken = _capture(call, g, others)
    after = call.run(g, step, [*before, *taken])
    (again,) = call.run(g, goes_on, [*after, *taken])
    region = g.graph(*_computed(g, [again, *after]))
    attrs = LoopAttrs(f"{call.name}_step", _UNBOUNDED, len(carried), conditional=True)
    return call.add("loop", begin, [*carried, *_distinct(others)], [region], attrs)


def scan(call: ControlCall) -> tuple[str, ...]:
    """A function of what it carries and of one row of each tensor after another."""
    step, initial, rows, others = call.args
    return _over_rows(call, step, call.as_operands(call.tensors(initial)), rows, others)


def map_rows(call: ControlCall) -> tuple[str, ...]:
    """A function of one row of each tensor."""
    function, rows, others = call.args
    return _over_rows(call, function, [], rows, others)


def _over_rows(
    call: ControlCall,
    step: GraphModule,
    carried: list[str],
    rows: Sequence[Any],
    others: Sequence[Any],
) -> tuple[str, ...]:
    counter = f"{call.name}_step"
    tensors = call.tensors(rows)
    g = call.region()
    before = [g.input(f"carried_{i}", call.c.type(v)) for i, v in enumerate(carried)]
    captured = _capture(call, g, [*tensors, *others])
    slices = [_row(g, value, Var(counter)) for value in captured[: len(tensors)]]
    after = call.run(g, step, [*before, *slices, *captured[len(tensors) :]])
    attrs = LoopAttrs(counter, call.c.type(tensors[0]).shape[0], len(carried))
    region = g.graph(*_computed(g, after))
    return call.add("loop", "", [*carried, *_distinct([*tensors, *others])], [region], attrs)


def _row(g: GraphBuilder, value: str, at: Expr) -> str:
    """The row of a tensor at an index that lies inside."""
    shape = g.type(value).shape
    starts, stops = (at, *(const(0),) * (len(shape) - 1)), (simplify(at + 1), *shape[1:])
    cut = g.add("slice", value, attrs=SliceAttrs(starts, stops, (1,) * len(shape), inside=True))
    return g.add("reshape", cut, attrs=ReshapeAttrs(shape[1:]))


def _computed(g: GraphBuilder, results: Sequence[str]) -> list[str]:
    """Results that are each computed by a node of their own."""
    fresh = {out for n in g.nodes for out in n.outputs}
    found: list[str] = []
    for name in results:
        ours = name in fresh and name not in found
        found.append(name if ours else g.add("identity", name, name="result"))
    return found


CONTROL_FLOW: dict[str, Callable[[ControlCall], tuple[str, ...]]] = {
    "cond": cond,
    "while_loop": while_loop,
    "scan": scan,
    "map_impl": map_rows,
}
"""By the names of torch's higher-order operators."""
