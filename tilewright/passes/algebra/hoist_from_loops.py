"""Products that do not depend on what a loop carries are computed before it, for all steps at once.

    loop {i, h, x} {                                  %xw = matmul(%x, %w)
      %xi = x[i]                                      loop {i, h, xw} {
      %a = matmul(%xi, %w)                     →        %a = xw[i]
      %b = matmul(%h, %r)                               %b = matmul(%h, %r)
      return tanh(%a + %b)                              return tanh(%a + %b)
    }                                                 }

What a step computes from its slice of a tensor is a slice of what is computed from the tensor. One
product of all rows reads the weights once, where one row a step reads them every time. A product
that is the same in all steps is hoisted as it is. The joined form of a cell, `matmul(concat(x[i],
h), w)`, is first taken apart into a product of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.arith.expr import Expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.dims import symbols_of
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.ops.control.loop import LoopAttrs, local_sizes
from tilewright.ops.elementwise.define import is_pointwise
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

PURE = ("injective", "reduction", "out_fusable", "view")
ZERO, ONE = const(0), const(1)


@node
class Steps:
    """That a value is the slice at `index` of something with `extent` slices; invariant: 0 and 1.

    A value that is the same in every step has the extent 1.
    """

    index: Expr
    extent: Expr


INVARIANT = Steps(ZERO, ONE)


def hoist_from_loops(graph: Graph, context: PassContext) -> Graph:
    """Compute products of a loop's inputs before it, for all steps at once."""
    return rewrite_graph(graph, _rule, of=("loop",))


def _rule(g: Rewriter, n: Node) -> tuple[str, ...] | None:
    if not isinstance(n.attrs, LoopAttrs):
        return None
    body = _split_products(n.regions[0], _Dependence(n.regions[0], n.attrs).steps)
    found = _Dependence(body, n.attrs)
    hoisted = found.hoisted()
    if not hoisted:
        return None
    outside = _Outside(
        g, found, dict(zip((v.name for v in body.inputs), n.inputs[1:], strict=True))
    )
    values = [outside.value(name) for name in hoisted]
    region = _with_slices(body, found, {h: g.type(v) for h, v in zip(hoisted, values, strict=True)})
    return g.add_control("loop", [*n.inputs, *values], [region], n.attrs, n.outputs, n.loc)


class _Dependence:
    """Which values of a body depend on the number of the step only, and how."""

    def __init__(self, body: Graph, attrs: LoopAttrs) -> None:
        self.body = body
        self.inside = {attrs.induction_var} | local_sizes(body)
        self.steps: dict[str, Steps] = {c.name: INVARIANT for c in body.constants}
        self.steps |= {v.name: INVARIANT for v in body.inputs[attrs.carried :]}
        for n in body.nodes:
            found = self._of(n)
            if found is not None:
                self.steps.update((o, found) for o in n.outputs)

    def _of(self, n: Node) -> Steps | None:
        """How the results of a node depend on the step, `None` if on what is carried too."""
        given = [self.steps.get(i) for i in n.inputs if i]
        if None in given or n.regions or get_op(n.op).kind not in PURE or self._may_fail(n):
            return None
        slices = dict.fromkeys(s for s in given if s is not None and s != INVARIANT)
        if symbols_of((n.attrs, n.types)) & self.inside:
            return None if slices else self._slice(n)
        if not slices:
            return INVARIANT
        return next(iter(slices)) if len(slices) == 1 and self._is_batched(n) else None

    def _may_fail(self, n: Node) -> bool:
        """Whether a node checks its indices: it must not fail before a loop that takes no step."""
        types = [self.body.types[i] if i else None for i in n.inputs]
        return get_op(n.op).checks(n.attrs, types) > 0

    def _slice(self, n: Node) -> Steps | None:
        """A node that takes one slice of a tensor from outside, another one in every step."""
        if not isinstance(n.attrs, SliceAttrs) or not n.attrs.inside:
            return None
        axis = sliced_axis(n, self.body)
        if axis is None:
            return None
        index = n.attrs.starts[axis]
        return Steps(index, self.body.tensor_type(n.inputs[0]).shape[axis])

    def _is_batched(self, n: Node) -> bool:
        """Whether a node can be computed of all slices at once."""
        if n.op == "matmul":
            return self._is_product(n)
        return is_pointwise(get_op(n.op)) or isinstance(n.attrs, ReshapeAttrs | TransposeAttrs)

    def _is_product(self, n: Node) -> bool:
        """Whether a node multiplies rows of a step with one matrix."""
        rows, columns = (self.body.tensor_type(i) for i in n.inputs)
        return self.steps[n.inputs[1]] == INVARIANT and rows.rank >= 2 and columns.rank == 2

    def hoisted(self) -> list[str]:
        """The values that are computed outside and read by what stays."""
        outside: set[str] = set()
        for n in self.body.nodes:
            if n.name in self.steps and (self._is_work(n) or not outside.isdisjoint(n.inputs)):
                outside.update(n.outputs)
        read = {i for n in self.body.nodes if n.name not in outside for i in n.inputs}
        read |= self.body.output_set
        return [o for n in self.body.nodes for o in n.outputs if o in outside and o in read]

    def _is_work(self, n: Node) -> bool:
        """Whether a node is worth to be computed outside: not what is only looked at or moved."""
        kind = get_op(n.op).kind
        return kind in ("out_fusable", "reduction")


def sliced_axis(n: Node, graph: Graph) -> int | None:
    """The only axis of which a slice takes one element, all of the others."""
    assert isinstance(n.attrs, SliceAttrs)
    cut = []
    shape = graph.tensor_type(n.inputs[0]).shape
    bounds = zip(n.attrs.starts, n.attrs.stops, n.attrs.steps, shape, strict=True)
    for axis, (start, stop, step, size) in enumerate(bounds):
        if step != 1:
            return None
        if start is not ZERO or stop is not size:
            cut.append(axis)
    if len(cut) != 1:
        return None
    one = simplify(n.attrs.stops[cut[0]] - n.attrs.starts[cut[0]])
    return cut[0] if as_int(one) == 1 else None


@dataclass
class _Outside:
    """Adds nodes of a body to the graph around the loop; what belongs to steps has an axis more."""

    g: Rewriter
    found: _Dependence
    names: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> str:
        """The value in the graph around the loop: of all steps, or of any."""
        if name not in self.values:
            self.values[name] = self._made(name)
        return self.values[name]

    def _made(self, name: str) -> str:
        if name in self.names:
            return self.names[name]
        constant = self.found.body.constant_by_name.get(name)
        if constant is not None:
            return self.g.constant(constant.data, name)
        n = self.found.body.producer[name]
        steps = self.found.steps[name]
        if steps == INVARIANT:
            given = [self.value(i) if i else "" for i in n.inputs]
            made = self.g.add_many(n.op, *given, attrs=n.attrs, names=n.outputs, loc=n.loc)
            return made[n.outputs.index(name)]
        if isinstance(n.attrs, SliceAttrs):
            return self._slices(n, steps)
        rule = _RULES.get(n.op, _pointwise)
        return rule(self, n, steps.extent)

    def _slices(self, n: Node, steps: Steps) -> str:
        """All slices of a tensor, one after another."""
        axis, x = sliced_axis(n, self.found.body), self.value(n.inputs[0])
        assert axis is not None
        rank = self.g.type(x).rank
        if axis:
            order = (axis, *(d for d in range(rank) if d != axis))
            x = self.g.add("transpose", x, attrs=TransposeAttrs(order))
        return self.g.reshape(x, (steps.extent, *n.type.shape))

    def is_invariant(self, name: str) -> bool:
        """Whether a value has no axis of steps."""
        return self.found.steps[name] == INVARIANT


def _pointwise(outside: _Outside, n: Node, extent: Expr) -> str:
    """Operands broadcast behind the axis of steps."""
    given = []
    for name in n.inputs:
        value = outside.value(name)
        if not outside.is_invariant(name):
            shape = outside.found.body.tensor_type(name).shape
            missing = (ONE,) * (n.type.rank - len(shape))
            value = outside.g.reshape(value, (extent, *missing, *shape))
        given.append(value)
    return outside.g.add(n.op, *given, attrs=n.attrs, loc=n.loc)


def _matmul(outside: _Outside, n: Node, extent: Expr) -> str:
    """The rows of all steps are rows of one product."""
    g, x = outside.g, outside.value(n.inputs[0])
    *sizes, width = g.type(x).shape
    rows = g.reshape(x, (product(tuple(sizes)), width))
    found = g.add("matmul", rows, outside.value(n.inputs[1]), attrs=n.attrs, loc=n.loc)
    return g.reshape(found, (extent, *n.type.shape))


def _reshape(outside: _Outside, n: Node, extent: Expr) -> str:
    return outside.g.reshape(outside.value(n.inputs[0]), (extent, *n.type.shape))


def _transpose(outside: _Outside, n: Node, extent: Expr) -> str:
    assert isinstance(n.attrs, TransposeAttrs)
    order = (0, *(d + 1 for d in n.attrs.perm))
    return outside.g.add("transpose", outside.value(n.inputs[0]), attrs=TransposeAttrs(order))


_RULES: dict[str, Callable[[_Outside, Node, Expr], str]] = {
    "matmul": _matmul,
    "reshape": _reshape,
    "transpose": _transpose,
}


def _with_slices(body: Graph, found: _Dependence, hoisted: dict[str, TensorType]) -> Graph:
    """The body with values that come from outside: as they are, or each step its slice of them."""
    g = Rewriter(body)
    inputs, names = list(body.inputs), {}
    for name, type in hoisted.items():
        steps = found.steps[name]
        if steps == INVARIANT:
            names[name] = g.input(f"{name}.hoisted", type)
            continue
        x = g.input(f"{name}.steps", type)
        starts = (steps.index, *(ZERO for _ in type.shape[1:]))
        stops = (simplify(steps.index + 1), *type.shape[1:])
        attrs = SliceAttrs(starts, stops, (1,) * type.rank, inside=True)
        cut = g.add("slice", x, attrs=attrs)
        names[name] = g.reshape(cut, body.tensor_type(name).shape)
    added = g.inputs[len(inputs) :]
    nodes = tuple(
        n.rewired(tuple(names.get(i, i) for i in n.inputs), n.outputs) for n in body.nodes
    )
    return replace(
        body,
        inputs=(*body.inputs, *added),
        nodes=(*g.nodes, *nodes),
        outputs=tuple(names.get(o, o) for o in body.outputs),
    )


def _split_products(body: Graph, steps: dict[str, Steps]) -> Graph:
    """Products of joined rows of which some are known before the loop, as sums of products."""

    def rule(g: Rewriter, n: Node) -> str | None:
        joined = g.producer(n.inputs[0]) if n.op == "matmul" else None
        if joined is None or not isinstance(joined.attrs, ConcatAttrs):
            return None
        rank, known = joined.type.rank, [i in steps for i in joined.inputs]
        if joined.attrs.axis % rank != rank - 1 or all(known) or not any(known):
            return None
        weights = g.constant_data(n.inputs[1])
        return None if weights is None or weights.ndim != 2 else _sum(g, n, joined, weights)

    return rewrite_graph(body, rule, of=("matmul",))


def _sum(g: Rewriter, n: Node, joined: Node, weights: np.ndarray) -> str | None:
    """The sum of the products of what is joined, each with its rows of the weights."""
    total, first = "", 0
    for part in joined.inputs:
        size = as_int(g.type(part).shape[-1])
        if size is None:
            return None
        rows = g.constant(weights[first : first + size])
        term = g.add("matmul", part, rows, attrs=n.attrs)
        total = g.add("add", total, term) if total else term
        first += size
    return total
