"""Partition of a model into segments: what can be compiled now, and what remains.

A node is pending if it needs the *value* of an input that determines ranks or attributes (axes, a
shape, a computed trip count), if its operator runs on the *host*, or if it reads from a pending
node. All other nodes form one graph, a segment. After it has run, the needed values are constants,
and the next segment can be imported:

    segment = import_segment(remaining, {"x": TensorType(...), "axes": np.array([1])})

ONNX functions are inlined, and so is the branch of an `If` whose condition is known, so that each
of their nodes is partitioned on its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from onnx import GraphProto

from tilewright.arith.expr import Const, const
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import BOOL, STRING, from_numpy
from tilewright.core.errors import Error, FrontendError, Loc
from tilewright.frontends.onnx.context import OnnxContext, identifier
from tilewright.frontends.onnx.convert_node import convert_node, nested_graph, onnx_node
from tilewright.frontends.onnx.functions import function_body
from tilewright.frontends.onnx.importer import with_outputs
from tilewright.frontends.onnx.model.constants import Lazy, graph_constants, model_constants
from tilewright.frontends.onnx.model.read import DOMAINS, Model
from tilewright.frontends.onnx.model.toposort import ordered
from tilewright.frontends.onnx.segments.data_dependent import (
    DataDependent,
    HostOnly,
    NeedsConcreteValue,
)
from tilewright.frontends.onnx.segments.host.table import host_ops
from tilewright.frontends.onnx.segments.inline import branch_nodes, function_nodes
from tilewright.frontends.onnx.segments.pending_node import (
    PendingNode,
    host_op,
    node_key,
    pending_node,
)
from tilewright.frontends.onnx.segments.symbolic_ints import SymbolicInts
from tilewright.frontends.onnx.table import converters
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder

# Operators of the host whose results are no tensors, so that what reads them runs there as well.
_GIVE_SEQUENCES = (
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SplitToSequence",
)


# An operator, and the values that its node gives, which no other node gives.
@dataclass(frozen=True, eq=False)
class OnnxRemainingGraph:
    """Nodes of a model that have not run yet, constants they may read, and what they must give."""

    model: Model
    nodes: tuple[PendingNode, ...]
    constants: Mapping[str, Lazy]
    outputs: tuple[str, ...]

    def reads(self) -> frozenset[str]:
        """All values that the nodes read, or that are to be given, constants left out."""
        found = frozenset(self.outputs).union(*(p.reads for p in self.nodes))
        return found - self.constants.keys()

    def constant(self, name: str) -> np.ndarray:
        """The data of a constant."""
        return read_constant(self.constants[name], self.model.file)

    def segment(self, given: Mapping[str, Given]) -> OnnxSegment:
        """What can be compiled with the `given` values."""
        return import_segment(self, given)

    def nested(self, node: PendingNode, graph: GraphProto, known: set[str]) -> OnnxRemainingGraph:
        """The whole of a graph inside a node, which may read the values that are `known`."""
        return nested_remaining_graph(self, graph, node.opsets, known)


class NonTensor:
    """A value that is no tensor: a sequence, an optional, a map."""


Given = TensorType | np.ndarray | SymbolicInts | NonTensor | None


@dataclass(frozen=True, eq=False)
class OnnxSegment:
    """A graph to run now (`None` if there is nothing), then nodes on the host, then the rest.

    `inputs` and `outputs` are the ONNX names in the graph's order. `wants` are values that nodes of
    the rest must know, `sizes` those that they must know as sizes.
    """

    graph: Graph | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    hosts: tuple[PendingNode, ...]
    rest: OnnxRemainingGraph
    wants: frozenset[str]
    sizes: frozenset[str]
    texts: Mapping[str, np.ndarray]  # those of the inputs that are constants
    carriers: Mapping[str, tuple[str, tuple[int, ...]]]  # inputs whose shapes are numbers of others


def remaining_graph(model: Model) -> OnnxRemainingGraph:
    """The whole of a model."""
    graph = model.proto.graph
    constants = model_constants(model)
    inputs = {v.name for v in graph.input}
    return _remaining_graph(model, graph, constants, inputs | constants.keys(), model.opsets)


def nested_remaining_graph(
    remaining: OnnxRemainingGraph, graph: GraphProto, opsets: Mapping[str, int], known: set[str]
) -> OnnxRemainingGraph:
    """A nested graph, whose nodes may read the values that are `known` around it."""
    own = graph_constants(graph, remaining.model.reader)
    constants: dict[str, Lazy] = {**remaining.constants, **own}
    inputs = {v.name for v in graph.input}
    return _remaining_graph(
        remaining.model, graph, constants, inputs | known | constants.keys(), opsets
    )


def _remaining_graph(
    model: Model,
    graph: GraphProto,
    constants: Mapping[str, Lazy],
    defined: Iterable[str],
    opsets: Mapping[str, int],
) -> OnnxRemainingGraph:
    nodes = ordered(graph.node, set(defined), model.file)
    pending = tuple(pending_node(proto, opsets, model.file) for proto in nodes)
    return OnnxRemainingGraph(model, pending, constants, tuple(v.name for v in graph.output))


def import_segment(remaining: OnnxRemainingGraph, given: Mapping[str, Given]) -> OnnxSegment:
    """What can be computed from the `given` values: types of tensors, or arrays that are known."""
    return _SegmentImport(remaining, given).segment()


@dataclass
class _SegmentImport:
    """One segment being imported: nodes are converted one after another, or wait."""

    remaining: OnnxRemainingGraph
    given: Mapping[str, Given]
    rest: list[PendingNode] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)
    wants: set[str] = field(default_factory=set)
    sizes: set[str] = field(default_factory=set)
    hosted: set[PendingNode] = field(default_factory=set)
    computed: list[str] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    inputs: dict[str, str] = field(default_factory=dict)
    texts: dict[str, np.ndarray] = field(default_factory=dict)
    carriers: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = self.remaining.model
        self.constants = dict(self.remaining.constants)
        g = GraphBuilder(identifier(model.proto.graph.name or model.file), Loc(model.file))
        nested = partial(nested_graph, model)
        opset, texts = model.opsets.get("", 0), self._text_input
        self.c = OnnxContext(g, opset, nested=nested, whole=False, text_input=texts)

    def segment(self) -> OnnxSegment:
        work = deque(self.remaining.nodes)
        while work:
            p = work.popleft()
            work.extendleft(reversed(self._take(p)))
        hosts, rest = self._hosts()
        needed = set(self.remaining.outputs).union(*(p.reads for p in self.rest))
        results = [name for name in self.computed if name in needed]
        after = replace(self.remaining, nodes=tuple(rest), constants=self.constants)
        graph, inputs = self._graph(results)
        return OnnxSegment(
            graph,
            inputs,
            tuple(results),
            tuple(hosts),
            after,
            frozenset(self.wants),
            frozenset(self.sizes),
            self.texts,
            self.carriers,
        )

    def _take(self, p: PendingNode) -> list[PendingNode]:
        """Convert a node, or let it wait; gives the nodes that it is made of, if it is a group."""
        made = len(self.c.g.nodes)
        try:
            group = self._written_out(p)
            if group is not None:
                return group
            if p.reads & self.blocked or self._is_hosted(p):
                self._wait(p)
                return []
            self._define(p.reads)
            c = replace(self.c, opset=p.opsets.get("", self.c.opset))
            convert_node(c, p.proto, p.opsets, p.loc)
            self.computed += p.writes
            self.read |= p.reads
        except DataDependent as error:
            # What it has been converted to so far may read what is no input of this segment.
            del self.c.g.nodes[made:]
            if isinstance(error, NeedsConcreteValue):
                (self.sizes if error.sizes else self.wants).add(error.value)
            elif isinstance(error, HostOnly):
                self.hosted.add(p)
            self._wait(p)
        return []

    def _wait(self, p: PendingNode) -> None:
        self.rest.append(p)
        self.blocked.update(p.writes)

    def _is_hosted(self, p: PendingNode) -> bool:
        """Whether the host must run a node: for its operator, or for a value that is no tensor."""
        if any(isinstance(self.given.get(name), NonTensor) for name in p.reads):
            return True
        key = node_key(p)
        return p in self.hosted or (key in host_ops() and key not in converters())

    def _define(self, names: Iterable[str]) -> None:
        """Give values that come from before the segment a name in its graph."""
        for name in sorted(names):
            if name in self.c.values:
                continue
            if name in self.constants:
                value: Given = read_constant(self.constants[name], self.remaining.model.file)
            else:
                value = self.given[name]
            if isinstance(value, np.ndarray) and value.dtype.kind == "O":
                # the number of a text is another one in every run
                self.texts[name] = value
                value = TensorType(STRING, tuple(map(const, value.shape)))
            if isinstance(value, TensorType):
                self.c.values[name] = self.c.g.input(identifier(name), value)
                self.inputs[self.c.values[name]] = name
                self.c.above_one.update(*map(free_vars, value.shape))
            elif isinstance(value, np.ndarray):
                self.c.values[name] = self.c.g.constant(value, identifier(name))
            elif isinstance(value, SymbolicInts):
                self.c.values[name] = self._symbolic_input(name, value)
            else:
                self.c.values[name] = ""

    def _symbolic_input(self, name: str, value: SymbolicInts) -> str:
        """A tensor whose elements are numbers and symbols; see `symbolic_ints`."""
        g, shape = self.c.g, value.array.shape
        elements = value.elements(identifier(name).replace(".", "_"))
        type = TensorType(from_numpy(value.array.dtype), tuple(map(const, shape)))
        ours = g.input(identifier(name), type)
        self.inputs[ours] = name
        g.set_symbolic_elements(ours, elements, shape)
        places = value.places()
        if places:
            carrier = f"<sizes in {name}>"
            symbols = (*(elements[i] for i in places), const(0))
            self.c.above_one.update(*map(free_vars, symbols))
            self.inputs[g.input(identifier(carrier), TensorType(BOOL, symbols))] = carrier
            self.carriers[carrier] = (name, places)
            self.read.add(carrier)
        return ours

    def _text_input(self, g: GraphBuilder, texts: np.ndarray) -> str:
        """Strings that a node has, as an input of the segment."""
        if g is not self.c.g:
            raise DataDependent("onnx.texts", "a nested graph has texts of its own")
        name = f"<texts {len(self.texts)}>"
        self.texts[name] = texts
        self.read.add(name)
        ours = g.input(identifier(name), TensorType(STRING, tuple(map(const, texts.shape))))
        self.inputs[ours] = name
        return ours

    def _written_out(self, p: PendingNode) -> list[PendingNode] | None:
        """The nodes of a function, or of the branch that is taken; else `None`."""
        key = node_key(p)
        if key == "If":
            return self._branch(p)
        if key in converters() or key in host_ops() or p.reads & self.blocked:
            return None
        self._define(p.reads)
        n = onnx_node(self.c, p.proto, p.opsets, p.loc)
        body = function_body(n, [self.c.type(i) if i else None for i in n.inputs])
        if body is None:
            return None
        opsets = {"" if o.domain in DOMAINS else o.domain: o.version for o in body.opset_import}
        nodes = function_nodes(body, p.proto)
        return [replace(pending_node(node, opsets, ""), loc=p.loc) for node in nodes]

    def _branch(self, p: PendingNode) -> list[PendingNode] | None:
        """The nodes of the branch that an `If` takes, if that is known.

        It must be known where the branches handle values that are no tensors.
        """
        condition = p.proto.input[0]
        if condition in self.blocked:
            return None
        self._define([condition])
        known = self.c.g.symbolic_value(self.c.values[condition])
        if known is None or known.size != 1 or not isinstance(known.reshape(-1)[0], Const):
            if any(isinstance(self.given.get(name), NonTensor) for name in p.reads):
                raise NeedsConcreteValue("If", condition, "its condition", p.loc)
            return None
        taken = "then_branch" if known.reshape(-1)[0].value else "else_branch"
        branch = next((a.g for a in p.proto.attribute if a.name == taken), None)
        if branch is None:
            raise FrontendError("onnx.node", f"If: attribute {taken!r} is missing", loc=p.loc)
        self.constants.update(graph_constants(branch, self.remaining.model.reader))
        file = self.remaining.model.file
        return [pending_node(node, p.opsets, file) for node in branch_nodes(branch, p.proto)]

    def _hosts(self) -> tuple[list[PendingNode], list[PendingNode]]:
        """The waiting nodes that the host can run right after this segment, and the others."""
        known = {*self.given, *self.computed, *self.constants}
        values = {name for name, v in self.given.items() if isinstance(v, NonTensor)}
        hosts, rest = [], []
        for p in self.rest:
            hosted = bool(p.reads & values) or self._is_hosted(p)
            if p.reads <= known and hosted and host_op(p) is not None:
                hosts.append(p)
                known.update(p.writes)
                if node_key(p) in _GIVE_SEQUENCES or (
                    node_key(p) == "Identity" and p.reads & values
                ):
                    values.update(p.writes)
            else:
                rest.append(p)
        return hosts, rest

    def _graph(self, results: list[str]) -> tuple[Graph | None, tuple[str, ...]]:
        """The graph that computes `results`, with the inputs that it reads."""
        if not results:
            return None, ()
        graph = with_outputs(self.c, results)
        # what only nodes that wait would read is no input yet; a size may be all that is read of it
        inputs = tuple(v for v in graph.inputs if self.inputs[v.name] in self.read)
        return replace(graph, inputs=inputs), tuple(self.inputs[v.name] for v in inputs)


def read_constant(constant: Lazy, file: str) -> np.ndarray:
    """The data of a constant; no node is at hand to name where it cannot be read."""
    try:
        return constant()
    except Error as error:
        raise error.at(Loc(file)) from error.__cause__
