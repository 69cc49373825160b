"""Concat elimination: concatenate and slice tensors without copies.

    %2 = concat(%0, %1)     →     %2 = concat_view(%0, %1)    %0 and %1 are computed inside %2
    %3 = slice(%x)          →     %3 = slice_view(%x)         %3 is read inside %x

`concat_view` and `slice_view` are views without kernels; the kernels around them read and write
with the strides of the parent. A value has one place. An operand that is concatenated a second
time, or whose place is given (inputs, constants and outputs of the model), is copied into the
concatenation: that operand alone.

A `concat` or `slice` that fuses into its only reader stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.expr import as_int, const, product
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.define import is_pointwise
from tilewright.ops.op import normalize_axis
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs
from tilewright.ops.tensor.subviews import differ_in_units, is_contiguous
from tilewright.passes.context import PassContext
from tilewright.passes.fuse import FUSABLE

# Pieces shorter than a cache line are not worth the lines that they share with others.
MIN_BYTES = 64


def eliminate_concat(graph: Graph, context: PassContext) -> Graph:
    """Compute the operands of a concatenation inside it, and read slices in place."""
    if not any(n.op in ("concat", "slice") for n in graph.nodes):
        return graph
    return _Places(graph).result()


def _computed(graph: Graph) -> set[str]:
    """The values that are stored before they are joined, or have such among their parts.

    These are results of arithmetic, what is looked up at computed indices, and views of what some
    kernel computes: no other kernel can compute what it sees only through a view.
    """
    found, looked_up = set[str](), set[str]()
    for n in graph.nodes:
        row = get_op(n.op)
        at_indices = n.op == "gather" and n.inputs[1] in graph.producer
        if at_indices or (n.op == "cast" and n.inputs[0] in looked_up):
            looked_up.update(n.outputs)
        made = (n.op != "identity" and row.flops != 0) or n.name in looked_up
        seen = row.kind == "view" and n.inputs[0] in graph.producer
        if made or seen or (n.op == "concat" and not found.isdisjoint(n.inputs)):
            found.update(n.outputs)
    return found


def _anchored(graph: Graph) -> set[str]:
    """The values that are better stored than computed by their reader, among other parts."""
    found: set[str] = set()
    for n in graph.nodes:
        row = get_op(n.op)
        if any(len(graph.consumers.get(o, ())) > 1 for o in n.outputs):
            found.update(n.outputs)
        elif not is_pointwise(row):
            found.update(n.outputs if row.flops != 0 else ())
        elif any(i in found and _is_like(graph, i, n) for i in n.inputs):
            found.update(n.outputs)
    return found


def _is_like(graph: Graph, name: str, n: Node) -> bool:
    t = graph.types[name]
    return isinstance(t, TensorType) and t.shape == n.type.shape


class _Places:
    """Decides which value is a subview of which; parents before their subviews."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.given = {*graph.outputs, *(v.name for v in graph.inputs)}
        self.given |= graph.constant_by_name.keys()
        self.computed, self.anchored = _computed(graph), _anchored(graph)
        self.symbols = set(graph.symbols())
        # The joins, each with the positions of those of its inputs that lie in it.
        self.joins: dict[str, set[int]] = {}
        self.placed: set[str] = set()
        self.parts: set[str] = set()
        # Values with gaps between their rows, by the axis from which on there are none.
        self.whole_from: dict[str, int] = {}
        # What was found out about values before, which many may be part of.
        self._gaps_taken: dict[str, bool] = {}
        self._has_place: dict[str, bool] = {}

    def result(self) -> Graph:
        """The graph with its joins and parts."""
        for n in reversed(self.graph.nodes):
            if n.op == "concat":
                self._join(n)
        for n in self.graph.nodes:
            if n.op == "slice":
                self._cut(n)
        if not self.joins and not self.parts:
            return self.graph
        nodes: list[Node] = []
        for n in self.graph.nodes:
            nodes += self._rewritten(n)
        return self.graph.with_nodes(tuple(nodes))

    def _rewritten(self, n: Node) -> list[Node]:
        if n.name in self.parts:
            return [replace(n, op="slice_view")]
        if n.name not in self.joins:
            return [n]
        copies, inputs = [], list(n.inputs)
        for i, name in enumerate(n.inputs):
            if i not in self.joins[n.name]:
                inputs[i] = f"{n.name}.part{i}"
                types = (self.graph.types[name],)
                copies.append(Node("identity", (name,), (inputs[i],), types, loc=n.loc))
        return [*copies, replace(n, op="concat_view", inputs=tuple(inputs))]

    def _join(self, n: Node) -> None:
        """Make a concatenation a join if that saves a copy of something."""
        assert isinstance(n.attrs, ConcatAttrs)
        axis = normalize_axis(n.op, n.attrs.axis, n.type.rank)
        fits = {i for i, name in enumerate(n.inputs) if self._fits(n, axis, name)}
        if not self._is_profitable(n, [n.inputs[i] for i in sorted(fits)]):
            return
        if any(self._gap(n, axis, name) is None for name in n.inputs) or not self._is_early(n):
            return
        self.joins[n.name] = fits
        for i in fits:
            self._settle(n, axis, n.inputs[i])

    def _is_early(self, n: Node) -> bool:
        """Whether the sizes of a value are known before anything runs."""
        symbols = {s for d in n.type.shape for s in free_vars(d)}
        return symbols <= self.symbols

    def _settle(self, host: Node, axis: int, name: str) -> None:
        gap = self._gap(host, axis, name)
        assert gap is not None
        root = self._root(name)
        self.placed.add(root)
        if gap:
            self.whole_from[root] = gap

    def _gap(self, host: Node, axis: int, name: str) -> int | None:
        """The axis from which on a part of `host` is in one piece; 0 if all of it is.

        `None` if the pieces are too short.
        """
        shape, outer = self.graph.tensor_type(name).shape, self.whole_from.get(host.name, 0)
        if not outer and all(d is const(1) for d in shape[:axis]):
            return 0
        axis = max(axis, outer)
        return axis if self._is_long(name, axis) else None

    def _is_long(self, name: str, axis: int) -> bool:
        t = self.graph.tensor_type(name)
        size = as_int(simplify(product(t.shape[axis:]) * t.dtype.bytes))
        return size is None or size >= MIN_BYTES

    def _fits(self, host: Node, axis: int, name: str) -> bool:
        """Whether a value can be computed inside `host`."""
        root = self._root(name)
        n = self.graph.producer.get(root)
        if n is None or host.inputs.count(name) > 1 or root in self.placed:
            return False
        if self._is_given(name):
            return False
        kind = get_op(n.op).kind
        if self._gap(host, axis, name) == 0:
            return kind in FUSABLE or kind == "opaque"
        return kind in FUSABLE and self._takes_gaps(root)

    def _takes_gaps(self, name: str) -> bool:
        """Whether all readers are kernels made of formulas, which read with any strides."""
        if name not in self._gaps_taken:
            self._gaps_taken[name] = self._readers_take_gaps(name)
        return self._gaps_taken[name]

    def _readers_take_gaps(self, name: str) -> bool:
        for n in self.graph.consumers.get(name, ()):
            kind = get_op(n.op).kind
            if kind == "view":
                shapes = self.graph.tensor_type(name).shape, n.type.shape
                if not differ_in_units(*shapes) or not self._takes_gaps(n.name):
                    return False
            elif kind not in FUSABLE:
                return False
        return True

    def _is_given(self, name: str) -> bool:
        """Whether the caller has a place for a value, or for another that has the same bytes."""
        root = self._root(name)
        if root not in self._has_place:
            self._has_place[root] = self._reaches_given(root)
        return self._has_place[root]

    def _reaches_given(self, root: str) -> bool:
        pending = [root]
        while pending:
            value = pending.pop()
            if value in self.given:
                return True
            readers = self.graph.consumers.get(value, ())
            pending += [r.name for r in readers if get_op(r.op).kind == "view"]
        return False

    def _root(self, name: str) -> str:
        """The value whose bytes a view has."""
        while (n := self.graph.producer.get(name)) and get_op(n.op).kind == "view":
            name = n.inputs[0]
        return name

    def _is_profitable(self, n: Node, fitting: Sequence[str]) -> bool:
        """Whether joining saves a copy: of what is stored anyway any part, else all of them."""
        if self._is_stored(n.name):
            return any(name in self.computed for name in fitting)
        return len(fitting) == len(n.inputs) and all(map(self._is_anchored, fitting))

    def _is_stored(self, name: str) -> bool:
        """Whether a value is written to memory, as no single reader computes it itself."""
        readers = self.graph.consumers.get(name, ())
        if name in self.given or len(readers) != 1:
            return True
        if readers[0].name in self.joins:
            return True
        row = get_op(readers[0].op)
        return row.kind not in ("injective", "reduction") or row.rereads

    def _is_anchored(self, name: str) -> bool:
        return name in self.anchored or name not in self.graph.producer

    def _cut(self, n: Node) -> None:
        """Make a slice a part of what it is cut from, if its readers can read it there."""
        attrs = n.attrs
        assert isinstance(attrs, SliceAttrs)
        base = n.inputs[0]
        if self._is_given(n.name) or n.name in self.placed or set(attrs.steps) != {1}:
            return
        if not self._is_stored(n.name) or base in self.graph.constant_by_name:
            return
        if not self._is_inside(attrs, base):
            return
        gap = self._slice_gap(n)
        if gap is None or (gap and not self._takes_gaps(n.name)):
            return
        self.parts.add(n.name)
        if gap:
            self.whole_from[n.name] = gap

    def _is_inside(self, attrs: SliceAttrs, base: str) -> bool:
        sizes = self.graph.tensor_type(base).shape
        return attrs.inside or all(
            prove(const(0) <= start) and prove(stop <= size)
            for start, stop, size in zip(attrs.starts, attrs.stops, sizes, strict=True)
        )

    def _slice_gap(self, n: Node) -> int | None:
        """As `_gap`, of a slice."""
        base = n.inputs[0]
        shape, parent = n.type.shape, self.graph.tensor_type(base).shape
        outer = self.whole_from.get(self._root(base), 0)
        if not outer and is_contiguous(shape, parent):
            return 0
        cut = max((d for d in range(len(shape)) if shape[d] is not parent[d]), default=0)
        axis = max(cut, outer)
        return axis if self._is_long(n.name, axis) else None
