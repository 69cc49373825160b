"""What a converter sees of an ATen graph: the call that it converts, and the graph being built.

A converter is a function `(c: TorchContext, n: AtenCall) -> Result` that adds operators to `c.g`
and returns the names of the call's results, `None` for one that nobody uses:

    def leaky_relu(c: TorchContext, n: AtenCall) -> Result:
        return c.add(n, "leaky_relu", n["self"], attrs=AlphaAttrs(n["negative_slope"]))

Arguments go by the names of the operator's schema, with its defaults. A tensor is a `ValueName`,
its name in our graph. A symbolic number is an index expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.arith.expr import Expr, as_expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64, DType
from tilewright.core.errors import Loc, UnsupportedError
from tilewright.frontends.torch.dtypes import promoted
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs

# Of graphs that are not seeded, whose random numbers are the same in every run: "tilewrig".
FIXED_KEY = 0x74696C6577726967


class ValueName(str):
    """The name of a tensor in our graph, which no other argument is mistaken for."""

    __slots__ = ()


Result = str | Expr | tuple[str | None, ...]


@dataclass(frozen=True)
class AtenCall:
    """One call of an ATen operator: `results` are the types that torch says it has."""

    op: str
    name: str
    args: Mapping[str, Any]
    results: tuple[TensorType | None, ...]
    used: frozenset[int]  # which of the results are used
    loc: Loc

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def get(self, name: str, default: Any = None) -> Any:
        """An argument that only some overloads of the operator have."""
        return self.args.get(name, default)

    @property
    def type(self) -> TensorType:
        """The type of the first result."""
        first = self.results[0]
        assert first is not None, self.op
        return first

    @property
    def dtype(self) -> DType:
        """The element type of the first result."""
        return self.type.dtype

    def unsupported(self, what: str, help: str) -> UnsupportedError:
        """The error for a form of this operator that is not supported; `help` says what is."""
        return UnsupportedError("torch.operator", f"{self.op}: {what}", loc=self.loc, help=help)


@dataclass
class TorchContext:
    """The graph being built; `is_seeded` where the key of its random numbers is an input.

    One that `is_nested` is run any number of times, or not at all.
    """

    g: GraphBuilder
    is_seeded: bool = False
    is_nested: bool = False
    random_streams: int = 0
    seed: str | None = None  # the input that is the key, once something has asked for it

    def next_random_stream(self) -> tuple[tuple[str, ...], int, int]:
        """Inputs, key and stream of another operator `random`, whose numbers are its own."""
        if self.is_nested:
            raise UnsupportedError(
                "torch.random",
                "random numbers are drawn in a function of cond, while_loop, scan or map",
                loc=self.g.loc,
                help="draw them before, and pass them in",
            )
        self.random_streams += 1
        if not self.is_seeded:
            return (), FIXED_KEY, self.random_streams
        if self.seed is None:
            self.seed = self.g.input("seed", TensorType(I64, (const(1),)))
        return (self.seed,), 0, self.random_streams

    def add(self, n: AtenCall, op: str, *inputs: str, attrs: Attrs | None = None) -> str:
        """Append an operator with one output."""
        return self.g.add(op, *inputs, attrs=attrs, name=n.name, loc=n.loc)

    def type(self, value: str) -> TensorType:
        """The type of one of our values."""
        return self.g.type(value)

    def constant(self, data: Any, dtype: DType, name: str = "c") -> str:
        """Add a constant of the given element type."""
        return self.g.constant(np.asarray(data, dtype=dtype.numpy), name)

    def cast(self, n: AtenCall, value: str, dtype: DType) -> str:
        """A value in another element type; itself where it has it already."""
        if self.type(value).dtype == dtype:
            return value
        return self.add(n, "cast", value, attrs=CastAttrs(dtype))

    def operand(self, n: AtenCall, value: Any, dtype: DType) -> str:
        """A tensor, a number or a symbolic number as a tensor of the given element type."""
        if isinstance(value, ValueName):
            return self.cast(n, value, dtype)
        if isinstance(value, Expr):
            number = as_int(value)
            if number is None:
                made = self.add(n, "dims", attrs=DimsAttrs((simplify(value),), ()))
                return self.cast(n, made, dtype)
            value = number
        return self.constant(value, dtype)

    def operands(self, n: AtenCall, *values: Any) -> tuple[str, ...]:
        """Operands in the type that torch would compute with them in."""
        dtype = promoted(*map(self._description, values))
        return tuple(self.operand(n, value, dtype) for value in values)

    def reshape(self, n: AtenCall, value: str, shape: Sequence[Expr | int]) -> str:
        """A value under another shape."""
        dims = tuple(as_expr(d) for d in shape)
        if dims == self.type(value).shape:
            return value
        return self.add(n, "reshape", value, attrs=ReshapeAttrs(dims))

    def transpose(self, n: AtenCall, value: str, perm: Sequence[int]) -> str:
        """A value with its axes in another order."""
        if list(perm) == list(range(len(perm))):
            return value
        return self.add(n, "transpose", value, attrs=TransposeAttrs(tuple(perm)))

    def elements(self, value: str) -> Expr:
        """How many elements a value has."""
        return simplify(product(self.type(value).shape))

    def _description(self, value: Any) -> Any:
        if isinstance(value, ValueName):
            t = self.type(value)
            return t.dtype, t.rank
        return 1 if isinstance(value, Expr) else value


Converter = Callable[[TorchContext, AtenCall], Result]


def axis_of(axis: int, rank: int) -> int:
    """`axis` counted from the front; torch has checked it, and lets a scalar have one axis."""
    return axis % max(rank, 1)


def axes_of(n: AtenCall, rank: int, name: str = "dim") -> tuple[int, ...]:
    """The axes that a call names, all where it names none."""
    given = n.get(name)
    if given is None or given == []:
        return tuple(range(rank))
    items = given if isinstance(given, list | tuple) else [given]
    return tuple(axis_of(a, rank) for a in items) if rank else ()
