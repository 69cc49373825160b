"""Patterns over the nodes of a graph, and rules made of them: what is replaced by what, and when.

    x, y = wild("x y"); c, d = const("c d")
    GraphRule("mul-mul", (x * c) * d, x * (c * d), when=lambda c, d: ...)

`wild` matches any value, `const` any constant, a number a constant that holds just that number. A
name that occurs twice must match the same value twice. Operands of `add`, `mul`, `min` and `max`
may change places. `product(0.5, x, y)` matches every way of multiplying these together. In a
result, operators whose operands are all constants are computed at once.

A condition, and a function that gives a result's attributes, take what they need by name: the data
of a constant, the type of any other value, the attributes of a node matched with `attrs="name"`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from math import copysign, isclose
from typing import Any

import numpy as np

from tilewright.core.dtypes import DType
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs, Node
from tilewright.ir.scalar_semantics import quiet
from tilewright.ops.elementwise.define import Accepts, floats
from tilewright.ops.interpret import evaluate_node
from tilewright.passes.rewriter import Rewriter

COMMUTATIVE = frozenset(("add", "mul", "min", "max"))
# Products are followed through at most this many factors: repeated squares grow exponentially.
MAX_FACTORS = 8
# Constants up to this many elements are looked through for being all the same number.
MAX_UNIFORM = 1 << 14

Found = dict[str, Any]
AttrsOf = Callable[..., Attrs]


class _ConstantName(str):
    """The name of a value that was matched for being a constant."""


class GraphPattern:
    """A shape of values; its operators build larger patterns."""

    def match(self, g: Rewriter, value: str, found: Found) -> Iterator[Found]:
        """Every way in which a value has this shape: what each name stands for."""
        raise NotImplementedError

    def build(self, g: Rewriter, found: Found, like: DType) -> str:
        """The value of this shape, with the names replaced; numbers are of dtype `like`."""
        raise NotImplementedError

    def __add__(self, other: Operand) -> OpPattern:
        return apply("add", self, other)

    def __radd__(self, other: float) -> OpPattern:
        return apply("add", other, self)

    def __sub__(self, other: Operand) -> OpPattern:
        return apply("sub", self, other)

    def __mul__(self, other: Operand) -> OpPattern:
        return apply("mul", self, other)

    def __truediv__(self, other: Operand) -> OpPattern:
        return apply("div", self, other)

    def __rtruediv__(self, other: float) -> OpPattern:
        return apply("div", other, self)

    def __neg__(self) -> OpPattern:
        return apply("neg", self)


Operand = GraphPattern | float


@dataclass(frozen=True)
class Wildcard(GraphPattern):
    """Any value; only a constant where `constant` is set."""

    name: str
    constant: bool = False

    def match(self, g: Rewriter, value: str, found: Found) -> Iterator[Found]:
        """Bind the name, or compare with what it is bound to."""
        if self.name in found:
            if found[self.name] == value:
                yield found
        elif not self.constant:
            yield {**found, self.name: value}
        elif g.constant_data(value) is not None:
            yield {**found, self.name: _ConstantName(value)}

    def build(self, g: Rewriter, found: Found, like: DType) -> str:
        """What the name is bound to."""
        value: str = found[self.name]
        return value


@dataclass(frozen=True)
class NamedPattern(GraphPattern):
    """What another pattern matches, under a name that the result may use."""

    name: str
    pattern: GraphPattern

    def match(self, g: Rewriter, value: str, found: Found) -> Iterator[Found]:
        """Match the pattern, then bind the name."""
        for deeper in self.pattern.match(g, value, found):
            yield from Wildcard(self.name).match(g, value, deeper)

    def build(self, g: Rewriter, found: Found, like: DType) -> str:
        """What the name is bound to."""
        value: str = found[self.name]
        return value


@dataclass(frozen=True)
class ConstantPattern(GraphPattern):
    """A constant all of whose elements are one number; the two zeros of floats differ."""

    value: float

    def match(self, g: Rewriter, value: str, found: Found) -> Iterator[Found]:
        """Compare with what the constant holds."""
        data = g.constant_data(value)
        number = None if data is None else uniform(data)
        if number == self.value and copysign(1, number) == copysign(1, self.value):
            yield found

    def build(self, g: Rewriter, found: Found, like: DType) -> str:
        """The number as a constant of rank 0."""
        return g.constant(np.asarray(self.value, like.numpy))


@dataclass(frozen=True)
class OpPattern(GraphPattern):
    """An operator on operands; `attrs` names its attributes, or in a result gives them."""

    op: str
    operands: tuple[GraphPattern, ...]
    attrs: str | Attrs | AttrsOf = NO_ATTRS

    def match(self, g: Rewriter, value: str, found: Found) -> Iterator[Found]:
        """The operator, its attributes, then the operands in every allowed order."""
        n = g.producer(value)
        if n is not None and len(n.outputs) == 1:
            yield from self.match_node(g, n, found)

    def match_node(self, g: Rewriter, n: Node, found: Found) -> Iterator[Found]:
        """The same for a node that is not part of the graph yet."""
        if n.op != self.op or len(n.inputs) != len(self.operands):
            return
        if isinstance(self.attrs, str):
            found = {**found, self.attrs: n.attrs}
        yield from _match_all(g, self.operands, n.inputs, found)
        if n.op in COMMUTATIVE:
            yield from _match_all(g, self.operands, n.inputs[::-1], found)

    def build(self, g: Rewriter, found: Found, like: DType) -> str:
        """The operator on its operands, computed at once where these are constants."""
        inputs = tuple(p.build(g, found, like) for p in self.operands)
        attrs = self._attrs(g, found)
        name = g.add(self.op, *inputs, attrs=attrs)
        data = [g.constant_data(i) for i in inputs]
        if any(d is None for d in data):
            return name
        with quiet():
            (result,) = evaluate_node(g.nodes.pop(), data, {})
        return g.constant(result)

    def _attrs(self, g: Rewriter, found: Found) -> Attrs:
        if isinstance(self.attrs, Attrs):
            return self.attrs
        given: Attrs = (
            found[self.attrs] if isinstance(self.attrs, str) else ask(self.attrs, g, found)
        )
        return given


@dataclass(frozen=True)
class Product(GraphPattern):
    """The product of a number and some factors, however they are multiplied together."""

    coefficient: float
    factors: tuple[GraphPattern, ...]

    def match(self, g: Rewriter, value: str, found: Found) -> Iterator[Found]:
        """Every way in which the factors are those that a value is the product of."""
        n = g.producer(value)
        if n is not None:
            yield from self.match_node(g, n, found)

    def match_node(self, g: Rewriter, n: Node, found: Found) -> Iterator[Found]:
        """Match what has a structure first: it says which values the names stand for."""
        structured = [p for p in self.factors if not isinstance(p, Wildcard)]
        yield from self._match(g, n, found, structured, ())

    def _match(
        self,
        g: Rewriter,
        n: Node,
        found: Found,
        structured: list[GraphPattern],
        taken: tuple[str, ...],
    ) -> Iterator[Found]:
        stops = {*taken, *(v for v in found.values() if isinstance(v, str))}
        flat = _flatten(g, n, stops)
        if flat is None:
            return
        coefficient, leaves = flat
        leaves.subtract(taken)
        if not structured:
            names = Counter(p.name for p in self.factors if isinstance(p, Wildcard))
            if _near(coefficient, self.coefficient, n.type.dtype):
                yield from _match_names(+leaves, names, found)
            return
        for leaf in +leaves:
            for deeper in structured[0].match(g, leaf, found):
                yield from self._match(g, n, deeper, structured[1:], (*taken, leaf))


Root = OpPattern | Product


def wild(names: str) -> list[Wildcard]:
    """Patterns for any value, one a name."""
    return [Wildcard(name) for name in names.split()]


def const(names: str) -> list[Wildcard]:
    """Patterns for any constant, one a name."""
    return [Wildcard(name, constant=True) for name in names.split()]


def apply(op: str, *operands: Operand, attrs: str | Attrs | AttrsOf = NO_ATTRS) -> OpPattern:
    """The pattern of an operator on operands."""
    return OpPattern(op, tuple(map(_as_pattern, operands)), attrs)


def product(coefficient: float, *factors: Operand) -> Product:
    """The pattern of everything multiplied together, in any order."""
    return Product(coefficient, tuple(map(_as_pattern, factors)))


def _as_pattern(value: Operand) -> GraphPattern:
    return value if isinstance(value, GraphPattern) else ConstantPattern(value)


@dataclass(frozen=True)
class GraphRule:
    """`pattern` becomes `result` where `when` holds, on results with a dtype of `domain`."""

    name: str
    pattern: Root
    result: GraphPattern
    when: Callable[..., bool] | None = None
    domain: Accepts = floats

    @property
    def ops(self) -> tuple[str, ...]:
        """The operators of nodes that the rule may replace."""
        return (self.pattern.op,) if isinstance(self.pattern, OpPattern) else ("mul", "div")

    def apply(self, g: Rewriter, n: Node) -> str | None:
        """What replaces the node, `None` if the rule does not fit."""
        if not self.domain(n.type.dtype):
            return None
        for found in self.pattern.match_node(g, n, {}):
            if self.when is None or ask(self.when, g, found):
                result = self.result.build(g, found, n.type.dtype)
                # A result that would have to be broadcast first, or converted, is not the same.
                if g.type(result) == n.type:
                    return result
        return None


def ask(question: Callable[..., Any], g: Rewriter, found: Found) -> Any:
    """Call a condition with what it asks for by name."""
    return question(**{name: _shown(g, found[name]) for name in signature(question).parameters})


def _shown(g: Rewriter, item: Any) -> Any:
    if isinstance(item, _ConstantName):
        return g.constant_data(item)
    return g.type(item) if isinstance(item, str) else item


def uniform(data: np.ndarray) -> float | None:
    """The number that every element is, `None` if they differ or are too many to compare."""
    if not 0 < data.size <= MAX_UNIFORM or data.dtype.kind == "b":
        return None
    first = data.reshape(-1)[0]
    return float(first) if data.size == 1 or (data == first).all() else None


def _match_all(
    g: Rewriter, patterns: tuple[GraphPattern, ...], values: tuple[str, ...], found: Found
) -> Iterator[Found]:
    if not patterns:
        yield found
        return
    for deeper in patterns[0].match(g, values[0], found):
        yield from _match_all(g, patterns[1:], values[1:], deeper)


def _match_names(leaves: Counter[str], names: Counter[str], found: Found) -> Iterator[Found]:
    """The factors that are left must be the named ones, each as often as it is named."""
    bound = Counter({found[name]: count for name, count in names.items() if name in found})
    free = {name: count for name, count in names.items() if name not in found}
    rest = leaves - bound
    if bound - leaves or len(free) != len(rest) or len(free) > 1:
        return
    if not free:
        yield found
    elif list(free.values()) == list(rest.values()):
        yield {**found, next(iter(free)): next(iter(rest))}


def _flatten(g: Rewriter, root: Node, stops: set[str]) -> tuple[float, Counter[str]] | None:
    """A product as a number and its other factors, down to `stops`; `None` if it has too many."""
    coefficient, leaves = 1.0, Counter[str]()
    pending: list[tuple[str, Node | None]] = [(root.name, root)]
    while pending:
        value, n = pending.pop()
        data = g.constant_data(value)
        parts = None if value in stops else _factors(g, n)
        if data is not None and data.size == 1:
            coefficient *= float(data.reshape(-1)[0])
        elif parts is None:
            leaves[value] += 1
        else:
            coefficient *= parts[0]
            pending.extend((v, g.producer(v)) for v in parts[1])
        if leaves.total() + len(pending) > MAX_FACTORS:
            return None
    return coefficient, leaves


def _factors(g: Rewriter, n: Node | None) -> tuple[float, tuple[str, ...]] | None:
    """The number and the values that a node multiplies, `None` if it does something else."""
    if n is None or n.op not in ("mul", "div"):
        return None
    if n.op == "mul":
        return 1.0, n.inputs
    data = g.constant_data(n.inputs[1])
    divisor = 0.0 if data is None or data.size != 1 else float(data.reshape(-1)[0])
    return (1 / divisor, n.inputs[:1]) if divisor else None


def _near(value: float, target: float, dtype: DType) -> bool:
    """Whether two numbers are the same but for having been rounded to the dtype on the way."""
    return isclose(value, target, rel_tol=1e-3 if dtype.bits < 32 else 1e-6)
