"""Operator fusion by kind: what one kernel computes.

A *group* grows from its first node by taking consumers into it:

| producer group    | takes                                                                     |
|-------------------|---------------------------------------------------------------------------|
| injective         | injective; or is the prologue of a reduction, or (layout only) of an      |
|                   | out_fusable operator; or, if cheap, of one that reads each element        |
|                   | several times                                                             |
| out_fusable       | an injective epilogue with the output's shape; a large convolution on a   |
|                   | CPU also a transpose                                                      |
| reduction         | an injective epilogue with the output's shape                             |

Views and opaque operators are not fused. A producer joins a group only if it has no reader outside,
and while the group is not too large. Every pair that is not fused is reported with the reason.

    %2 = fused(%x, %w, %b) { matmul; add; relu }
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Constant, FusedAttrs, Graph, Node, Value
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.sliding_window import WindowAttrs
from tilewright.ops.elementwise.define import is_pointwise
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs
from tilewright.passes.context import PassContext, WhyNotFused
from tilewright.target.cpu import CpuTarget
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target

# What a product of bf16 packs as it reads: stored whole, it would take many times the memory.
PACKED = {"matmul_f32out": ("im2col", "pad")}
# Rearrangements that a matrix product or convolution reads through at no cost.
LAYOUT_ONLY = ("transpose", "expand")
# Operators that depend on where an element is, but read no other one.
IN_PLACE = ("mask_scores", "trilu")
FUSABLE = ("injective", "reduction", "out_fusable")
# Far more than models have between two anchors. A kernel's cost grows faster than its operators:
# long chains are cut, and cross memory once in so many.
MAX_NODES = 32
# The operations on an element that a kernel computes at most: its expressions are walked by
# recursion, which Python limits.
MAX_OPERATIONS = 150
# The same for what a kernel reads.
MAX_READS = 32
# Rows of a product that fill a tile; how many a symbolic size has is not known.
MIN_ROWS = 8


@dataclass
class _Group:
    nodes: list[Node]
    kind: str
    members: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)


def fuse(graph: Graph, context: PassContext) -> Graph:
    """Put nodes that one kernel computes into groups."""
    fuser = _Fuser(graph, context.target)
    for n in graph.nodes:
        fuser.place(n)
    context.log.not_fused += fuser.not_fused
    return fuser.result()


class _Fuser:
    def __init__(self, graph: Graph, target: Target) -> None:
        self.graph = graph
        self.target = target
        self.groups: dict[int, _Group] = {}
        self.group_of: dict[str, _Group] = {}
        self.order = {id(n): i for i, n in enumerate(graph.nodes)}
        self.not_fused: list[WhyNotFused] = []

    def place(self, n: Node) -> None:
        """Add a node to the groups of its producers where the rules allow, else start a group."""
        kind = get_op(n.op).kind
        group = _Group([], kind)
        for name in dict.fromkeys(n.inputs):
            producer = self.graph.producer.get(name)
            if producer is None:
                continue
            reason = self._obstacle(group, producer, n, kind)
            if reason is None:
                group = self._merge(group, self.group_of[producer.name])
            else:
                self.not_fused.append(WhyNotFused(_label(producer), _label(n), reason))
        group.nodes.append(n)
        group.members.update(n.outputs)
        group.reads.update(i for i in n.inputs if i and i not in group.members)
        if kind in ("out_fusable", "reduction"):
            group.kind = kind
        self.groups[id(group)] = group
        for out in n.outputs:
            self.group_of[out] = group

    def _obstacle(self, group: _Group, producer: Node, n: Node, kind: str) -> str | None:
        """Why `producer`'s group cannot take `n`; `None` if it can."""
        source = self.group_of[producer.name]
        if source is group:
            return None
        if kind not in FUSABLE or source.kind not in FUSABLE:
            op, why = (n.op, kind) if kind not in FUSABLE else (producer.op, source.kind)
            return f"{op} is {why}"
        if len(source.nodes) + len(group.nodes) >= MAX_NODES:
            return f"a kernel computes at most {MAX_NODES} operators"
        if sum(_operations(m) for m in (*source.nodes, *group.nodes, n)) > MAX_OPERATIONS:
            return f"a kernel computes at most {MAX_OPERATIONS} operations on an element"
        if not self._fits(source, group, n):
            return f"a kernel reads, and chooses among, at most {MAX_READS} values"
        if self._needed_elsewhere(source, n):
            return f"the value of {producer.op} is needed elsewhere"
        anchors = ("out_fusable", "reduction")
        if source.kind in anchors and (kind in anchors or group.kind in anchors):
            return f"a kernel has one anchor, and both sides have one ({source.kind}, {kind})"
        if source.kind == "injective":
            return self._prologue_obstacle(source, n, kind)
        return self._epilogue_obstacle(source, producer, n)

    def _fits(self, source: _Group, group: _Group, n: Node) -> bool:
        """Whether the groups and `n` together read no more values than a kernel should.

        Nor choose among more: one value that is concatenated many times is as many parts.
        """
        reads = source.reads.union(group.reads, n.inputs) - source.members - group.members
        parts = sum(_parts(m) for m in (*source.nodes, *group.nodes, n))
        return max(len(reads), parts) <= max(MAX_READS, len(set(n.inputs)))

    def _prologue_obstacle(self, source: _Group, n: Node, kind: str) -> str | None:
        if _moves_last(n) and any(map(_steps_along_last, source.nodes)):
            return f"{n.op} would gather what it moves element by element"
        if kind != "out_fusable" and not get_op(n.op).rereads:
            return self._packing_obstacle(source, n)
        free = (*LAYOUT_ONLY, *PACKED.get(n.op, ()))
        busy = [m.op for m in source.nodes if m.op not in free and not _is_cheap(m, kind)]
        if busy:
            return f"{busy[0]} would be computed again for every use in {n.op}"
        if self._takes_vectors(n) and any(_moves_last(m) for m in source.nodes):
            return f"{n.op} would read its vectors element by element"
        if self._scatters_rows(source, n):
            return f"{n.op} would compute few rows at a time"
        return None

    def _takes_vectors(self, n: Node) -> bool:
        """Whether windows are read where they lie.

        On a CPU padding makes a copy, which can rearrange them; on a GPU it is a predicate.
        """
        if not isinstance(n.attrs, WindowAttrs):
            return False
        return isinstance(self.target, GpuTarget) or not any(n.attrs.pads)

    def _scatters_rows(self, source: _Group, n: Node) -> bool:
        """Whether the rows of a product with one matrix, next to each other if copied, are not."""
        if n.op != "matmul" or n.inputs[0] not in source.members:
            return False
        rows, columns = (self.graph.tensor_type(name).shape for name in n.inputs)
        if len(rows) < 3 or len(columns) != 2 or not any(map(_keeps_last, source.nodes)):
            return False
        return (as_int(rows[-2]) or 0) < MIN_ROWS

    def _packing_obstacle(self, source: _Group, n: Node) -> str | None:
        """What a product packs stays with the product, not with what computes it."""
        readers = self.graph.consumers.get(n.name, ())
        packed = any(n.op in PACKED.get(reader.op, ()) for reader in readers)
        packed = packed or self._is_read_transposed(n)
        if packed and any(m.op not in LAYOUT_ONLY for m in source.nodes):
            return f"{n.op} is packed by the product that reads it"
        return None

    def _is_read_transposed(self, n: Node) -> bool:
        """Whether products on a GPU read a transposed value where it lies: coalesced either way."""
        readers = self.graph.consumers.get(n.name, ())
        products = all(reader.op == "matmul" for reader in readers)
        return isinstance(self.target, GpuTarget) and _moves_last(n) and products

    def _epilogue_obstacle(self, source: _Group, producer: Node, n: Node) -> str | None:
        if isinstance(n.attrs, TransposeAttrs) and not _moves_last(n):
            return None  # rows of a tile stay whole, they are only written elsewhere
        if n.op == "transpose" and self._transposes_in_l2(source, n):
            return None
        if n.op in LAYOUT_ONLY:
            return f"{n.op} would scatter the tiles of {producer.op}"
        if producer.type.shape != n.type.shape:
            return f"{n.op} changes the shape {producer.type} to {n.type}"
        if not is_pointwise(get_op(n.op)) and n.op not in IN_PLACE:
            return f"{n.op} reads other elements of {producer.op} than it writes"
        return None

    def _transposes_in_l2(self, source: _Group, n: Node) -> bool:
        """Whether a convolution transposes its result group by group of rows, while it is in L2.

        A result that fits in L2 is there anyway for a kernel of its own.
        """
        conv = next((m for m in source.nodes if _is_plain_conv(m, self.graph)), None)
        if conv is None or not isinstance(self.target, CpuTarget):
            return False
        if any(_moves_last(m) for m in source.nodes if self.order[id(m)] > self.order[id(conv)]):
            return False
        sizes = n.type.static_shape
        if sizes is None or prod(sizes) * n.type.dtype.bytes <= self.target.l2 // 2:
            return False
        assert isinstance(n.attrs, TransposeAttrs)
        filters = n.attrs.perm.index(n.type.rank - 1)
        piece = prod(sizes[filters:]) * n.type.dtype.bytes  # of one image, and one group
        if conv.op == "group_conv" and piece <= self.target.l1:
            return False  # small images side by side are better rows of one product
        least = min(sizes[filters], prod(sizes[filters + 1 :]))
        return least >= self.target.lanes(n.type.dtype.bits)

    def _needed_elsewhere(self, source: _Group, n: Node) -> bool:
        """Whether a value of `source` has a user other than its own members and `n`."""
        if not source.members.isdisjoint(self.graph.output_set):
            return True
        inside = {id(m) for m in source.nodes} | {id(n)}
        return any(
            id(user) not in inside
            for value in source.members
            for user in self.graph.consumers.get(value, ())
        )

    def _merge(self, into: _Group, source: _Group) -> _Group:
        """Join two groups; the anchor's kind wins."""
        if not into.nodes:
            return source
        source.nodes.extend(into.nodes)
        source.members |= into.members
        source.reads = (source.reads | into.reads) - source.members
        source.kind = source.kind if source.kind != "injective" else into.kind
        for value in into.members:
            self.group_of[value] = source
        self.groups.pop(id(into), None)
        return source

    def result(self) -> Graph:
        """The graph of groups, in an order in which each comes after what it reads."""
        for g in self.groups.values():
            g.nodes.sort(key=lambda m: self.order[id(m)])
        ordered = sorted(self.groups.values(), key=lambda g: self.order[id(g.nodes[-1])])
        return self.graph.with_nodes(tuple(self._node(g) for g in ordered))

    def _node(self, group: _Group) -> Node:
        last = group.nodes[-1]
        if group.kind not in FUSABLE:
            return last
        outputs = tuple(o for m in group.nodes for o in m.outputs if self._escapes(o, group))
        used = dict.fromkeys(
            i for m in group.nodes for i in m.inputs if i and i not in group.members
        )
        inlined = [c for c in self._constants(used) if _is_literal(c)]
        inputs = tuple(i for i in used if i not in {c.name for c in inlined})
        body = _canonical(group.nodes, inputs, inlined, outputs, self.graph)
        types = tuple(self.graph.types[o] for o in outputs)
        return Node("fused", inputs, outputs, types, FusedAttrs(group.kind), (body,), last.loc)

    def _escapes(self, value: str, group: _Group) -> bool:
        users = self.graph.consumers.get(value, ())
        inside = {id(m) for m in group.nodes}
        return value in self.graph.output_set or any(id(u) not in inside for u in users)

    def _constants(self, names: Iterable[str]) -> list[Constant]:
        known = self.graph.constant_by_name
        return [known[n] for n in names if n in known]


def _is_literal(c: Constant) -> bool:
    """Whether a constant is one number that an expression can spell."""
    return c.data.size == 1 and c.type.dtype.kind != "complex"


def _is_cheap(n: Node, reader: str) -> bool:
    """Whether to compute a value anew at each of the few times that an injective operator reads."""
    row = get_op(n.op)
    return reader == "injective" and is_pointwise(row) and row.flops == 1


def _operations(n: Node) -> int:
    """The arithmetic operations on an element, where an operator has a number of them."""
    flops = get_op(n.op).flops
    return flops if isinstance(flops, int) else 0


def _parts(n: Node) -> int:
    """How many values an element is chosen among."""
    return len(n.inputs) if isinstance(n.attrs, ConcatAttrs) else 0


def _is_plain_conv(n: Node, graph: Graph) -> bool:
    """Whether this is a convolution of f32, groups being an axis: others have other tiles."""
    attrs = n.attrs
    if n.op == "group_conv" and isinstance(attrs, WindowAttrs):
        plain = attrs.layout == "channels_last"
    else:
        plain = type(attrs) is ConvAttrs and attrs.groups == 1
    return plain and all(graph.tensor_type(i).dtype is F32 for i in n.inputs)


def _moves_last(n: Node) -> bool:
    return isinstance(n.attrs, TransposeAttrs) and n.attrs.perm[-1] != n.type.rank - 1


def _steps_along_last(n: Node) -> bool:
    return isinstance(n.attrs, SliceAttrs) and abs(n.attrs.steps[-1]) > 1


def _keeps_last(n: Node) -> bool:
    return isinstance(n.attrs, TransposeAttrs) and not _moves_last(n)


def _label(n: Node) -> str:
    return f"{n.op} {n.name}"


def _canonical(
    nodes: list[Node],
    inputs: tuple[str, ...],
    constants: list[Constant],
    outputs: tuple[str, ...],
    graph: Graph,
) -> Graph:
    """The group as a graph whose names do not depend on where it stands: equals look equal."""
    names = {"": ""}
    names.update((name, f"x{i}") for i, name in enumerate(inputs))
    names.update((c.name, f"c{i}") for i, c in enumerate(constants))
    for m in nodes:
        names.update((o, f"v{len(names)}") for o in m.outputs)
    body = tuple(
        m.rewired(tuple(names[i] for i in m.inputs), tuple(names[o] for o in m.outputs))
        for m in nodes
    )
    title = "_".join(dict.fromkeys(m.op for m in nodes))
    return Graph(
        title,
        tuple(Value(names[i], graph.types[i]) for i in inputs),
        tuple(Constant(names[c.name], c.type, c.data) for c in constants),
        body,
        tuple(names[o] for o in outputs),
        nodes[-1].loc,
    )
