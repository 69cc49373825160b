"""A fused graph as the steps of a run: kernel calls, checks, and branches with steps of their own.

The values of branches get names of their own, so that all steps share one list of values. A view
lies in the bytes of what it is a view of, the parts of a join in those of the join, and the results
of both branches of an `if` in those of the node's result; `Flat.root_of` and `Flat.spot` say where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.arith.expr import Expr, const, maximum
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.symbolic_bounds import most
from tilewright.arith.walk import free_vars, substitute
from tilewright.core.errors import Loc, UnsupportedError
from tilewright.driver.kernel.kernels import Kernel
from tilewright.driver.program.host_predicates import asked, asked_inputs
from tilewright.ir.graph.nodes import Check, Constant, Graph, Node
from tilewright.ir.types import Shape, TensorType, Type
from tilewright.ops.control.bind_dim import LearnAttrs
from tilewright.ops.control.conditional import IfAttrs, branch_dims
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.registry import get_op
from tilewright.ops.shape.data_dependent import checks_by_node
from tilewright.ops.tensor.subviews import Subview, distance, is_contiguous, room_as, subviews

# Makes the kernel of a node whose values, by their names in the node, have these rooms; told
# whether all of them begin on a boundary.
MakeKernel = Callable[[Graph, Node, dict[str, Shape], bool], Kernel]
# Where parts of values must begin for wide accesses, in bytes.
BOUNDARY = 16


@dataclass(frozen=True)
class Spot:
    """Where a value lies in the bytes of its root: elements before it, and its room.

    The room is the shape by which it is laid out, `None` if that is its own.
    """

    start: Expr
    room: Shape | None = None


_ALL = Spot(const(0))


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


@dataclass(frozen=True)
class Carry:
    """A value that a loop carries: at the start, inside a step, after it, and at the end.

    `spare` is a second buffer like that of the result: a step reads one and writes the other.
    """

    initial: str
    read: str
    written: str
    result: str
    spare: str


@dataclass(frozen=True)
class Cycle:
    """Steps that are run again and again; `begin` and `going` are truth values, or \"\"."""

    attrs: LoopAttrs
    items: tuple[Item, ...]
    carried: tuple[Carry, ...]
    begin: str
    going: str


Item = Step | Check | Branch | Learned | Cycle


@dataclass
class Flat:
    """All steps of a model in order, and the values that they read and write."""

    items: tuple[Item, ...] = ()
    steps: list[Step] = field(default_factory=list)
    types: dict[str, Type] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    inside: dict[str, Subview] = field(default_factory=dict)
    # The step before which a value is read last by what is no step: a branch reads its condition,
    # and in a loop the first step may come again after the last.
    decided: dict[str, int] = field(default_factory=dict)
    # What each late size can be: one of two, or where the first is 0 anything up to the second.
    late: dict[str, tuple[Expr, Expr]] = field(default_factory=dict)
    # The same of the sizes that count the steps of loops.
    counters: dict[str, tuple[Expr, Expr]] = field(default_factory=dict)
    # Values that a step of a loop reads or writes in changing buffers, numbered.
    carried: dict[str, int] = field(default_factory=dict)
    # Values that are alive during a whole loop: the first and the last of its steps.
    held: dict[str, tuple[int, int]] = field(default_factory=dict)
    # Inputs that conditions may be told by without a kernel, and what computes each other value.
    asked: dict[str, Expr] = field(default_factory=dict)
    makers: dict[str, Node] = field(default_factory=dict)
    # The names of those inputs that a condition is told by.
    consulted: set[str] = field(default_factory=set)

    @property
    def limits(self) -> dict[str, tuple[Expr, Expr]]:
        """What each size is at most that is not known when memory is planned."""
        return {**self.late, **self.counters}

    def told(self, value: str) -> Expr | None:
        """A truth value as the host can tell it from inputs that it knows."""
        return asked(value, self.asked, self.constants, self.makers) if self.asked else None

    def root_of(self, value: str) -> str:
        """The value in whose bytes `value` lies."""
        while value in self.inside:
            value = self.inside[value].host
        return value

    def spot(self, value: str) -> Spot:
        """Where in the bytes of its root `value` lies."""
        if value not in self.inside:
            return _ALL
        here = self.inside[value]
        outer, wide = self.spot(here.host), self.shape(here.host)
        if here.starts is None:
            room = outer.room
            return outer if room is None else Spot(outer.start, room_as(room, wide, here.shape))
        room = outer.room or wide
        start = simplify(outer.start + distance(here.starts, room))
        if is_contiguous(here.shape, room):
            return Spot(start)
        return Spot(start, room_as(room, here.shape, self.shape(value)))

    def is_contiguous(self, value: str) -> bool:
        """Whether a value has the bytes of its root, all of them."""
        while value in self.inside:
            if self.inside[value].starts is not None:
                return False
            value = self.inside[value].host
        return True

    def shape(self, value: str) -> Shape:
        """The shape of a value."""
        return _tensor(self, value).shape


def flatten(graph: Graph, kernel: MakeKernel, asks: bool = False) -> Flat:
    """The steps of a graph; where the host `asks`, it tells conditions by inputs if it can."""
    flat = Flat(types=dict(graph.types), asked=asked_inputs(graph) if asks else {})
    names = {name: name for name in graph.types}
    flat.constants = dict(graph.constant_by_name)
    flat.items = _items(flat, graph, names, kernel)
    return flat


def _items(flat: Flat, graph: Graph, names: dict[str, str], kernel: MakeKernel) -> tuple[Item, ...]:
    """The steps of a graph whose values have these names in the whole."""
    checks = checks_by_node(graph)
    items: list[Item] = [*next(checks)]
    renamed = [(n, _renamed(n, names)) for n in graph.nodes]
    for n, here in renamed:  # a kernel must know of the joins behind it
        for i in subviews(here, flat.types.__getitem__) if _is_view(n) else ():
            root = flat.root_of(i.value)  # what is joined may be a view of what is computed
            flat.inside[root] = replace(i, value=root)
        flat.makers.update((name, here) for name in here.outputs)
    idle = _told_instead(flat, graph, names) if flat.asked else set()
    for n, here in renamed:
        if isinstance(n.attrs, IfAttrs):
            items.append(_branch(flat, here, n.attrs, kernel))
        elif isinstance(n.attrs, LearnAttrs):
            items.append(_learned(flat, here, n.attrs))
        elif isinstance(n.attrs, LoopAttrs):
            items.append(_cycle(flat, here, n.attrs, kernel))
        elif not _is_view(n) and n.name not in idle:
            made = kernel(graph, n, _rooms(flat, n, names), _is_aligned(flat, here))
            flat.steps.append(Step(here, made))
            items.append(flat.steps[-1])
        items += next(checks)
    return tuple(items)


def _told_instead(flat: Flat, graph: Graph, names: Mapping[str, str]) -> set[str]:
    """Nodes that only give conditions which the host tells by itself."""
    decide, others = set[str](), set(graph.outputs)
    for n in graph.nodes:
        first = 1 if isinstance(n.attrs, IfAttrs) else 0
        decide.update(n.inputs[:first])
        others.update(n.inputs[first:])
    return {
        n.name
        for n in graph.nodes
        if decide.issuperset(n.outputs)
        and others.isdisjoint(n.outputs)
        and all(flat.told(names[o]) is not None for o in n.outputs)
    }


def _is_view(n: Node) -> bool:
    return n.op != "fused" and get_op(n.op).kind == "view"


def _rooms(flat: Flat, n: Node, names: dict[str, str]) -> dict[str, Shape]:
    """The rooms of those values of a node that have gaps."""
    spots = {name: flat.spot(names[name]) for name in (*n.inputs, *n.outputs) if name}
    return {name: spot.room for name, spot in spots.items() if spot.room is not None}


def _is_aligned(flat: Flat, n: Node) -> bool:
    """Whether all values of a node begin on a boundary, each in the bytes of its root."""
    return all(
        prove((flat.spot(name).start * _tensor(flat, name).dtype.bytes % BOUNDARY).eq(0))
        for name in (*n.inputs, *n.outputs)
        if name in flat.inside
    )


def _tensor(flat: Flat, value: str) -> TensorType:
    t = flat.types[value]
    assert isinstance(t, TensorType)
    return t


def _renamed(n: Node, names: dict[str, str]) -> Node:
    inputs = tuple(names[i] if i else "" for i in n.inputs)
    return n.rewired(inputs, tuple(names[o] for o in n.outputs))


def _learned(flat: Flat, n: Node, attrs: LearnAttrs) -> Learned:
    value = n.inputs[0]
    flat.inside[n.name] = Subview(n.name, value, n.type.shape)
    flat.decided[value] = max(flat.decided.get(value, 0), len(flat.steps))
    flat.late[attrs.name] = (const(0), attrs.limit)
    return Learned(value, attrs.name, attrs.limit, n.loc)


def _branch(flat: Flat, n: Node, attrs: IfAttrs, kernel: MakeKernel) -> Branch:
    condition: str | Expr = n.inputs[0] if attrs.condition is None else attrs.condition
    if isinstance(condition, str):
        told = flat.told(condition)
        if told is not None:
            condition = told
            flat.consulted |= free_vars(told)
    if isinstance(condition, str):
        flat.decided[condition] = max(flat.decided.get(condition, 0), len(flat.steps))
    lists = []
    for region, word in zip(n.regions, ("then", "else"), strict=True):
        names = _names(flat, n, region, word, n.inputs[1:])
        lists.append(_items(flat, region, names, kernel))
        for result, output in zip(region.outputs, n.outputs, strict=True):
            root = flat.root_of(names[result])
            flat.inside[root] = Subview(root, output, flat.shape(root))
    late = branch_dims(attrs, n.regions)
    flat.late.update(late)
    return Branch(condition, (lists[0], lists[1]), late)


def _cycle(flat: Flat, n: Node, attrs: LoopAttrs, kernel: MakeKernel) -> Cycle:
    """A loop: what it reads, carries and gives is alive as long as there are steps."""
    (body,), start = n.regions, len(flat.steps)
    begin, *operands = n.inputs
    carries = range(attrs.carried)
    inner = [_define(flat, f"{n.name}.{v.name}", v.type) for v in body.inputs[: attrs.carried]]
    names = _names(flat, n, body, "step", (*inner, *operands[attrs.carried :]))
    flat.counters[attrs.counter] = (const(0), attrs.count)
    items = _items(flat, body, names, kernel)
    end = len(flat.steps)
    for value in filter(None, n.inputs):
        flat.decided[value] = max(flat.decided.get(value, 0), end)
    spares = [_define(flat, f"{n.outputs[k]}.spare", n.types[k]) for k in carries]
    flat.held.update((value, (start, end)) for value in (*n.outputs, *spares))
    results = [names[o] for o in body.outputs]
    going = results.pop(0) if attrs.conditional else ""
    if going:
        flat.decided[going] = end
    roots = [flat.root_of(value) for value in results]
    for value in (*inner, *roots[: attrs.carried]):
        flat.carried[value] = len(flat.carried)
    _place_rows(flat, n, attrs, roots)
    if attrs.late:
        flat.late[attrs.late] = (const(0), attrs.count)
    carried = tuple(
        Carry(operands[k], inner[k], roots[k], n.outputs[k], spares[k]) for k in carries
    )
    return Cycle(attrs, items, carried, begin, going)


def _place_rows(flat: Flat, n: Node, attrs: LoopAttrs, roots: Sequence[str]) -> None:
    """Let what a step computes be written where its row of a result is."""
    rows = zip(roots[attrs.carried :], n.outputs[attrs.carried :], strict=True)
    for number, (root, output) in enumerate(rows):
        _, *shape = flat.shape(output)
        starts = (attrs.row_index(number), *(const(0) for _ in shape))
        flat.inside[root] = Subview(root, output, (const(1), *shape), starts)


def _names(flat: Flat, n: Node, region: Graph, word: str, given: Sequence[str]) -> dict[str, str]:
    """The names in the whole of a nested graph's values, of which some are given."""
    pairs = zip(region.inputs, given, strict=True)
    names = {v.name: _seen_as(flat, name, v.type) for v, name in pairs}
    for name, t in region.types.items():
        if name not in names:
            names[name] = _define(flat, f"{n.name}.{word}.{name}", t)
    flat.constants.update((names[c.name], c) for c in region.constants)
    return names


def _seen_as(flat: Flat, name: str, type: Type) -> str:
    """A value under the type that a nested graph has for it: its sizes may be spelt otherwise."""
    if not name or flat.types[name] == type or not isinstance(type, TensorType):
        return name
    if flat.spot(name).room is not None:
        return name
    view = _define(flat, f"{name}.seen", type)
    flat.inside[view] = Subview(view, name, type.shape)
    return view


def _define(flat: Flat, name: str, type: Type) -> str:
    """A value of its own, called like this or similarly."""
    while name in flat.types:
        name += "_"
    flat.types[name] = type
    return name


def limit(e: Expr, late: Mapping[str, tuple[Expr, Expr]]) -> Expr:
    """The most that a size can be while late sizes are not known.

    Each of them is one of two, or where the first is 0 anything up to the second.
    """
    for name in sorted(free_vars(e) & late.keys()):
        first, last = late[name]
        if first is const(0):
            found = most(e, {name: last})
            if found is None:
                raise _unlimited(e)
            return limit(found, late)
        either = [substitute(e, {name: value}) for value in (first, last)]
        return simplify(maximum(limit(either[0], late), limit(either[1], late)))
    return e


def _unlimited(e: Expr) -> UnsupportedError:
    return UnsupportedError(
        "driver.unlimited",
        f"how large the size {e} can become is not known before the model runs",
        help="use sizes that grow with what the model counts, or that are constant",
    )
