"""A fused graph as the steps of a run: kernel calls, checks, and branches with steps of their own.

The values of branches get names of their own, so that all steps share one list of values. A view
lies in the bytes of what it is a view of, and the results of both branches of an `if` lie in the
bytes of the node's result; `Flat.root_of` says where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tilewright.arith.expr import Expr, const, maximum
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, substitute
from tilewright.core.errors import Loc
from tilewright.driver.kernels import Kernel
from tilewright.ir.graph.nodes import Check, Constant, Graph, Node
from tilewright.ir.types import Type
from tilewright.ops.control import IfAttrs, late_pairs
from tilewright.ops.learn import LearnAttrs
from tilewright.ops.table import op_row

MakeKernel = Callable[[Graph, Node], Kernel]


@dataclass(frozen=True)
class Step:
    """One kernel call: the node it came from, and the kernel."""

    node: Node
    kernel: Kernel


@dataclass(frozen=True)
class Branch:
    """Steps of which one list is run: the value or the expression that decides, and both lists.

    `late` are sizes that are known from there on, by name, as either list has them.
    """

    condition: str | Expr
    branches: tuple[tuple[Item, ...], tuple[Item, ...]]
    late: dict[str, tuple[Expr, Expr]]


@dataclass(frozen=True)
class Learned:
    """A value in memory that is from there on a size, of that name and at most so large."""

    value: str
    name: str
    limit: Expr
    loc: Loc


Item = Step | Check | Branch | Learned


@dataclass
class Flat:
    """All steps of a model in order, and the values that they read and write."""

    items: tuple[Item, ...] = ()
    steps: list[Step] = field(default_factory=list)
    types: dict[str, Type] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    root: dict[str, str] = field(default_factory=dict)
    # The number of the step before which a branch reads its condition, or a size its value.
    decided: dict[str, int] = field(default_factory=dict)
    # What each late size is at most: one of two, or anything up to the second.
    late: dict[str, tuple[Expr, Expr]] = field(default_factory=dict)

    def root_of(self, value: str) -> str:
        """The value in whose bytes `value` lies."""
        while value in self.root:
            value = self.root[value]
        return value


def flatten(graph: Graph, kernel: MakeKernel) -> Flat:
    """The steps of a graph."""
    flat = Flat(types=dict(graph.types))
    names = {name: name for name in graph.types}
    flat.constants = dict(graph.constant_by_name)
    flat.items = _items(flat, graph, names, kernel)
    return flat


def _items(flat: Flat, graph: Graph, names: dict[str, str], kernel: MakeKernel) -> tuple[Item, ...]:
    """The steps of a graph whose values have these names in the whole."""
    items: list[Item] = list(graph.checks)
    for n in graph.nodes:
        here = _renamed(n, names)
        if isinstance(n.attrs, IfAttrs):
            items.append(_branch(flat, here, n.attrs, kernel))
        elif isinstance(n.attrs, LearnAttrs):
            items.append(_learned(flat, here, n.attrs))
        elif n.op != "fused" and op_row(n.op).kind == "view":
            flat.root[here.name] = here.inputs[0]
        else:
            flat.steps.append(Step(here, kernel(graph, n)))
            items.append(flat.steps[-1])
    return tuple(items)


def _renamed(n: Node, names: dict[str, str]) -> Node:
    inputs = tuple(names[i] if i else "" for i in n.inputs)
    return replace(n, inputs=inputs, outputs=tuple(names[o] for o in n.outputs))


def _learned(flat: Flat, n: Node, attrs: LearnAttrs) -> Learned:
    value = n.inputs[0]
    flat.root[n.name] = value
    flat.decided[value] = max(flat.decided.get(value, 0), len(flat.steps))
    flat.late[attrs.name] = (const(0), attrs.limit)
    return Learned(value, attrs.name, attrs.limit, n.loc)


def _branch(flat: Flat, n: Node, attrs: IfAttrs, kernel: MakeKernel) -> Branch:
    condition: str | Expr = n.inputs[0] if attrs.condition is None else attrs.condition
    if isinstance(condition, str):
        flat.decided[condition] = max(flat.decided.get(condition, 0), len(flat.steps))
    lists = tuple(
        _region(flat, n, region, word, kernel)
        for region, word in zip(n.regions, ("then", "else"), strict=True)
    )
    late = late_pairs(attrs, n.regions)
    flat.late.update(late)
    return Branch(condition, (lists[0], lists[1]), late)


def _region(flat: Flat, n: Node, region: Graph, word: str, kernel: MakeKernel) -> tuple[Item, ...]:
    given = zip(region.inputs, n.inputs[1:], strict=True)
    names = {v.name: name for v, name in given}
    for name, t in region.types.items():
        if name not in names:
            names[name] = _fresh(flat, f"{n.name}.{word}.{name}")
            flat.types[names[name]] = t
    flat.constants.update((names[c.name], c) for c in region.constants)
    items = _items(flat, region, names, kernel)
    for result, output in zip(region.outputs, n.outputs, strict=True):
        flat.root[flat.root_of(names[result])] = output
    return items


def _fresh(flat: Flat, name: str) -> str:
    while name in flat.types:
        name += "_"
    return name


def limit(e: Expr, late: Mapping[str, tuple[Expr, Expr]]) -> Expr:
    """The most that a size can be while late sizes are not known: each lies between two."""
    for name in free_vars(e):
        if name in late:
            either = [substitute(e, {name: value}) for value in late[name]]
            return simplify(maximum(limit(either[0], late), limit(either[1], late)))
    return e
