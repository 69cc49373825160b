"""Building graphs: every added node is typed at once, and integer results are tracked symbolically.

    g = GraphBuilder("block")
    x = g.input("x", tensor(F32, Var("N"), 64))
    y = g.add("relu", x)
    graph = g.graph(y)

The value of a small integer tensor is kept as expressions (`symbolic_value`). It turns shape
arithmetic into attributes: a front end asks for the value of a Reshape's shape operand and never
emits the nodes that compute it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from tilewright.arith.expr import FALSE, TRUE, Binary, Cast, Const, Expr, Unary, const
from tilewright.arith.operators import DIVISIONS
from tilewright.arith.simplify import simplify
from tilewright.core.config import config
from tilewright.core.dtypes import BOOL, I64, DType, from_numpy
from tilewright.core.errors import NOWHERE, Error, Loc, TypeCheckError
from tilewright.ir.graph.dims import symbols_of
from tilewright.ir.graph.nodes import Attrs, Check, Constant, Graph, Node, Value
from tilewright.ir.types import MAX_BYTES, MAX_RANK, Shape, TensorType, Type
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.op import Op, broadcast_shapes
from tilewright.ops.registry import get_op
from tilewright.ops.shape.assumptions import assumptions
from tilewright.ops.shape.dim_equalities import DimEqualities
from tilewright.ops.tensor.manipulation import ReshapeAttrs

# Integer tensors up to this many elements are tracked; shapes and index lists are far smaller.
KNOWN_LIMIT = 256

ZERO = const(0)


class GraphBuilder:
    """Appends typed nodes; value names are kept where given and made unique."""

    def __init__(self, name: str, loc: Loc = NOWHERE) -> None:
        self.name = name
        self.loc = loc
        self.inputs: list[Value] = []
        self.constants: list[Constant] = []
        self.nodes: list[Node] = []
        self.checks: dict[Expr, Check] = {}
        self.equalities = DimEqualities()
        self.types: dict[str, Type] = {}
        self._known: dict[str, np.ndarray | None] = {}
        self._data: dict[str, np.ndarray] = {}
        self._counts: dict[str, int] = {}
        self._remembered: dict[Hashable, tuple[tuple[Type, ...], Mapping[Expr, str]]] = {}

    def input(self, name: str, type: Type) -> str:
        """Declare a graph input."""
        name = self._define(name, type)
        self.inputs.append(Value(name, type))
        return name

    def constant(self, data: np.ndarray, name: str = "c") -> str:
        """Add a constant; the array is kept by reference."""
        type = TensorType(from_numpy(data.dtype), tuple(const(d) for d in data.shape))
        name = self._define(name, type)
        self.take_constant(Constant(name, type, data))
        return name

    def take_constant(self, constant: Constant) -> None:
        """Add a constant of another graph as it is."""
        name, data = constant.name, constant.data
        self.types[name] = constant.type
        self.constants.append(constant)
        self._data[name] = data
        self._known[name] = constant_as_exprs(data)

    def add(
        self,
        op: str,
        *inputs: str,
        attrs: Attrs | None = None,
        name: str = "v",
        loc: Loc | None = None,
    ) -> str:
        """Append a node with one output and return its name."""
        return self.add_many(op, *inputs, attrs=attrs, names=(name,), loc=loc)[0]

    def add_many(
        self,
        op: str,
        *inputs: str,
        attrs: Attrs | None = None,
        names: Sequence[str] = (),
        loc: Loc | None = None,
    ) -> tuple[str, ...]:
        """Append a node and return the names of all its outputs; "" is an absent input."""
        attrs = get_op(op).attrs() if attrs is None else attrs
        loc = loc or self.loc
        try:
            types, found = self._inferred(op, attrs, inputs)
        except Error as error:
            raise error.at(loc) from None
        self._note(found, loc)
        types = self.equalities.of(types)
        wanted = [*names, *(f"{names[0] if names else 'v'}_{i}" for i in range(len(types)))]
        outputs = tuple(self._define(n, t) for n, t in zip(wanted, types, strict=False))
        self.nodes.append(Node(op, inputs, outputs, types, attrs, (), loc))
        self._track(self.nodes[-1])
        return outputs

    def cast(self, x: str, dtype: DType) -> str:
        """A value in another element type; itself where it has it already."""
        return x if self.type(x).dtype == dtype else self.add("cast", x, attrs=CastAttrs(dtype))

    def reshape(self, x: str, shape: Sequence[Expr]) -> str:
        """A value under another shape; itself where it has it already."""
        wanted = tuple(simplify(d) for d in shape)
        if self.type(x).shape == wanted:
            return x
        return self.add("reshape", x, attrs=ReshapeAttrs(wanted))

    def broadcast(self, op: str, *shapes: Shape, loc: Loc | None = None) -> Shape:
        """The shape that others broadcast to; sizes not known yet are compared at run time."""
        loc = loc or self.loc
        try:
            with assumptions() as found:
                shape = broadcast_shapes(op, *shapes)
        except Error as error:
            raise error.at(loc) from None
        self._note(found, loc)
        return tuple(self.equalities.expr(d) for d in shape)

    def _note(self, assumed: Mapping[Expr, str], loc: Loc) -> None:
        """Check at run time what has been assumed of sizes."""
        for condition, message in assumed.items():
            self.add_check(self.equalities.expr(condition), message, loc)

    def _inferred(
        self, op: str, attrs: Attrs, inputs: Sequence[str]
    ) -> tuple[tuple[Type, ...], Mapping[Expr, str]]:
        """The types of a node and what they assume; layers repeat, so it is remembered."""
        given = tuple(self.equalities.of(self.types[i]) if i else None for i in inputs)
        key = (op, attrs, given)
        if key not in self._remembered:
            row = get_op(op)
            with assumptions() as found:
                types = row.infer(attrs, given)
            if row.decompose is not None and symbols_of(given):
                found |= _assumed_by_parts(row, attrs, given)
            self._remembered[key] = types if isinstance(types, tuple) else (types,), found
        return self._remembered[key]

    def add_control(
        self,
        op: str,
        inputs: Sequence[str],
        regions: Sequence[Graph],
        attrs: Attrs,
        names: Sequence[str] = (),
        loc: Loc | None = None,
    ) -> tuple[str, ...]:
        """Append a node of control flow and return the names of its outputs."""
        rule = get_op(op).region_types
        assert rule is not None, op
        try:
            types = rule(attrs, [self.types[i] if i else None for i in inputs], regions)
        except Error as error:
            raise error.at(loc or self.loc) from None
        wanted = [*names, *(f"{op}_{i}" for i in range(len(names), len(types)))]
        outputs = tuple(self._define(n, t) for n, t in zip(wanted, types, strict=False))
        given = tuple(inputs), outputs, types, attrs, tuple(regions)
        self.nodes.append(Node(op, *given, loc or self.loc))
        return outputs

    def inherit(self, outer: GraphBuilder) -> None:
        """Know of equal sizes what a graph around this one knows."""
        for condition in outer.checks:
            self.equalities.add(condition)

    def capture(self, outer: GraphBuilder, value: str) -> str:
        """Make a value of a graph around this one known here: a constant again, or an input."""
        data = outer.constant_data(value)
        if data is not None:
            return self.constant(data, value)
        name = self.input(value, outer.types[value])
        if outer.symbolic_value(value) is not None:
            self._known[name] = outer._known[value]
        return name

    def add_check(self, condition: Expr, message: str, loc: Loc | None = None) -> bool:
        """Let the graph hold only where `condition` does; false if it certainly never does."""
        condition = simplify(condition)
        if condition is not TRUE:
            self._check_divisors(condition)
            self.checks.setdefault(condition, Check(condition, message, loc or self.loc))
            self.equalities.add(condition)
        return condition is not FALSE

    def _check_divisors(self, e: Expr) -> None:
        """Let nothing be divided by 0 in `e`."""
        for by in divisors(e):
            if not isinstance(by, Const):
                self.add_check(by.ne(0), f"a size is divided by {by}, which is 0")

    def constant_data(self, name: str) -> np.ndarray | None:
        """The data of a value that is a constant, else `None`."""
        return self._data.get(name)

    def symbolic_value(self, name: str) -> np.ndarray | None:
        """An integer or bool tensor as an object array of expressions, if it is known."""
        return self._known.get(name)

    def set_symbolic_value(self, name: str, element: Expr) -> None:
        """Let a tensor of one integer be known as an expression."""
        self._known[name] = _object_array([element], (1,) * self.type(name).rank)

    def set_symbolic_elements(
        self, name: str, elements: Sequence[Expr], shape: Sequence[int]
    ) -> None:
        """Let a tensor of integers be known as expressions."""
        self._known[name] = _object_array(elements, shape)

    def type(self, name: str) -> TensorType:
        """The type of a value that must be a tensor."""
        found = self.equalities.of(self.types[name])
        assert isinstance(found, TensorType), name
        return found

    def graph(self, *outputs: str) -> Graph:
        """Everything added so far as a graph with these outputs."""
        return Graph(
            self.name,
            tuple(self.inputs),
            tuple(self.constants),
            tuple(self.nodes),
            outputs,
            self.loc,
            tuple(self.checks.values()),
        )

    def propagated_value(
        self, op: str, attrs: Attrs, inputs: Sequence[str], type: Type
    ) -> np.ndarray | None:
        """The value that a node of this type would have, as `symbolic_value` gives it."""
        if not self.may_propagate(op, type):
            return None
        given = [self.symbolic_value(i) for i in inputs if i]
        known = [k for k in given if k is not None]
        if len(known) < len(given):
            return None
        rule = get_op(op).propagate
        assert rule is not None
        value = rule(attrs, known)
        return value if value is not None and value.size <= KNOWN_LIMIT else None

    def may_propagate(self, op: str, type: Type) -> bool:
        """Whether a node of this type has a value that is known where its operands are."""
        if not isinstance(type, TensorType):
            return False
        return (type.dtype.is_integer or type.dtype == BOOL) and get_op(op).propagate is not None

    def _track(self, n: Node) -> None:
        self._known[n.name] = self.propagated_value(n.op, n.attrs, n.inputs, n.types[0])
        if n.op in ("div", "mod") and self._known[n.name] is not None:
            known = self.symbolic_value(n.inputs[1])
            assert known is not None
            for by in known.reshape(-1):
                if not isinstance(by, Const):
                    self.add_check(by.ne(0), f"{n.op} by a size that is 0")

    def _define(self, name: str, type: Type) -> str:
        if isinstance(type, TensorType):
            _check_extent(type)
            for dim in type.shape:
                self._check_divisors(dim)
        candidate = name
        while candidate in self.types:  # counting on from last time: many constants have one name
            self._counts[name] = self._counts.get(name, 0) + 1
            candidate = f"{name}_{self._counts[name]}"
        self.types[candidate] = type
        return candidate


def _assumed_by_parts(row: Op, attrs: Attrs, given: Sequence[Type | None]) -> dict[Expr, str]:
    """What the operators assume that another one is defined by.

    Passes that put them in its place take it as granted.
    """
    assert row.decompose is not None
    g = GraphBuilder(row.name)
    row.decompose(g, attrs, [g.input("x", t) if t is not None else "" for t in given])
    return {condition: check.message for condition, check in g.checks.items()}


def constant_as_exprs(data: np.ndarray) -> np.ndarray | None:
    """A small integer or bool tensor as an object array of expressions."""
    if data.dtype.kind not in "iub" or data.size > KNOWN_LIMIT:
        return None
    dtype = BOOL if data.dtype.kind == "b" else I64
    return _object_array([const(int(v), dtype) for v in data.reshape(-1)], data.shape)


def _object_array(items: Sequence[object], shape: Sequence[int]) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def known_integers(value: np.ndarray) -> list[int] | None:
    """A known value as plain integers, `None` if any element is symbolic."""
    flat = value.reshape(-1)
    return [int(e.value) for e in flat] if all(isinstance(e, Const) for e in flat) else None


def _check_extent(type: TensorType) -> None:
    """Refuse what no machine can hold, so that sizes are numbers of 64 bits everywhere."""
    size = type.dtype.bytes
    for dim in type.shape:
        if isinstance(dim, Const):
            size *= max(1, int(dim.value))
            if dim.value < 0:
                raise TypeCheckError("tensor.extent", f"{type} has a negative size")
        elif ZERO in divisors(dim):
            raise TypeCheckError("tensor.extent", f"a size of {type} is divided by zero")
    most = min(MAX_BYTES, config().memory_limit_gb * 10**9)
    if size > most or type.rank > MAX_RANK:
        raise TypeCheckError(
            "tensor.extent",
            f"a tensor of type {type if type.rank <= MAX_RANK else type.dtype} and rank"
            f" {type.rank} is too large",
            help=f"at most {most:.0f} bytes (TW_MEMORY_LIMIT_GB) and {MAX_RANK} axes",
        )


def divisors(e: Expr) -> list[Expr]:
    """What is divided by in `e`, wherever that is computed whatever the sizes are."""
    parts, pending = {e: None}, [e]
    for part in pending:
        match part:
            case Binary(a=a, b=b):
                inner: tuple[Expr, ...] = (a, b)
            case Unary(a=a) | Cast(a=a):
                inner = (a,)
            case _:
                inner = ()
        pending += [x for x in inner if x not in parts]
        parts.update(dict.fromkeys(inner))
    return [p.b for p in parts if isinstance(p, Binary) and p.op in DIVISIONS]
