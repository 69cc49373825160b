"""What an operator is: the row type, and the pieces most rows share.

A row's meaning is written once, as exactly one of
- `te`: tensor expressions, `te(b, attrs, inputs, out_types) -> Tensor | tuple[Tensor, ...]`, where
  `b` is a `ir.tensor.build.Builder` and an absent optional input is `None`;
- `decompose`: simpler operators, `decompose(g, attrs, inputs) -> name(s)`, where `g` is a
  `GraphOps` and inputs are value names;
- `loops`: a loop function for what no closed formula gives (sorting, scattering),
  `loops(attrs, in_types, out_types) -> Func` with parameters `x0, x1, ..., y0, ...`;
- nested graphs, for control flow: `region_types(attrs, in_types, graphs) -> types` is then the type
  rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tilewright.arith.expr import Expr, const
from tilewright.core.dtypes import DType
from tilewright.core.errors import Loc, TypeCheckError
from tilewright.ir.graph.nodes import Attrs, Graph
from tilewright.ir.types import Shape, TensorType, Type
from tilewright.ops.shape.assumptions import same_size

# injective: each output element from one element of each input. reduction: row-wise reductions and
# what is built of them (softmax, norms). out_fusable: many inputs to one output with reuse (matmul,
# conv, pooling); takes an injective epilogue. view: the same bytes under another shape, some of
# them, or several values side by side. opaque: fuses with nothing. control: nested graphs, of which
# it chooses.
KINDS = ("injective", "reduction", "out_fusable", "view", "opaque", "control")


class GraphOps(Protocol):
    """A graph that nodes are added to, as operators' rules see it.

    `ops.graph_builder.GraphBuilder` is one. Rows name this protocol and not the builder, which
    knows all rows.
    """

    def add(
        self,
        op: str,
        *inputs: str,
        attrs: Attrs | None = None,
        name: str = "v",
        loc: Loc | None = None,
    ) -> str:
        """Append a node with one output and return its name."""
        ...

    def add_many(
        self,
        op: str,
        *inputs: str,
        attrs: Attrs | None = None,
        names: Sequence[str] = (),
        loc: Loc | None = None,
    ) -> tuple[str, ...]:
        """Append a node and return the names of all its outputs."""
        ...

    def constant(self, data: np.ndarray, name: str = "c") -> str:
        """Add a constant and return its name."""
        ...

    def constant_data(self, name: str) -> np.ndarray | None:
        """The data of a value that is a constant, else `None`."""
        ...

    def type(self, name: str) -> TensorType:
        """The type of a value that must be a tensor."""
        ...

    def cast(self, x: str, dtype: DType) -> str:
        """A value in another element type; itself where it has it already."""
        ...

    def reshape(self, x: str, shape: Sequence[Expr]) -> str:
        """A value under another shape; itself where it has it already."""
        ...

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
        ...


Infer = Callable[[Any, Sequence[Any]], "Type | tuple[Type, ...]"]


@dataclass(frozen=True)
class Op:
    """One operator; see the module's docstring for `te`, `decompose` and `loops`.

    `infer(attrs, input types) -> type(s)` raises TypeCheckError on operands that do not fit.
    `propagate(attrs, inputs) -> object array` is ONNX's data propagation: it computes an integer
    result symbolically, so that shape arithmetic disappears. Inputs and result are NumPy object
    arrays of index expressions; the result is `None` where it is not known.
    `vjp(attrs, inputs, y, dy) -> gradients` is the vector-Jacobian product: the gradient of each
    input from the result `y` and its gradient `dy`, all of them `ops.traced_value.Value`. An input
    that has no gradient gets `None`; a gradient may have the shape that its input broadcasts to.
    With several results `y` and `dy` are tuples, and a result that nothing depends on has `None` in
    `dy`. `parts` is what the operator is differentiated as where it has no such rule: like
    `decompose`, the same result by operators that have one. By default it is `decompose`; nested
    graphs are differentiated by `autodiff`. `no_gradient` says why an operator has no gradient.
    `flops` is per output element, or a function of (attrs, input types, output types).
    `rereads` says of an injective operator that it reads an element of its input many times.
    `checks(attrs, input types)` is how many indices of an element it checks at run time.
    """

    name: str
    infer: Infer
    kind: str
    attrs: type[Attrs] = Attrs
    te: Callable[..., Any] | None = None
    decompose: Callable[..., Any] | None = None
    loops: Callable[..., Any] | None = None
    propagate: Callable[[Any, Sequence[np.ndarray]], np.ndarray | None] | None = None
    region_types: Callable[[Any, Sequence[Any], Sequence[Graph]], tuple[Type, ...]] | None = None
    flops: int | Callable[[Any, Sequence[Any], Sequence[Any]], Expr] = 1
    vjp: Callable[..., Sequence[Any]] | None = None
    parts: Callable[..., Any] | None = None
    no_gradient: str = ""
    rereads: bool = False
    checks: Callable[[Any, Sequence[Any]], int] = lambda attrs, ins: 0
    doc: str = ""

    def cost(self, attrs: Attrs, ins: Sequence[Any], outs: Sequence[Any]) -> Expr:
        """The number of arithmetic operations, as an expression over the symbolic sizes."""
        if callable(self.flops):
            return self.flops(attrs, ins, outs)
        elements: Expr = outs[0].elements
        return elements * const(self.flops)


def fail(op: str, message: str, help: str = "") -> TypeCheckError:
    """The error for operands that do not fit `op`."""
    return TypeCheckError(f"{op}.operands", f"{op}: {message}", help=help)


def same_type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    """Type rule: the output is like the first input."""
    return ins[0]


def flat(_: Attrs, ins: Sequence[Any], y: Any, dy: Any) -> tuple[None, ...]:
    """The gradient rule of results that small changes of the inputs do not change."""
    return (None,) * len(ins)


def normalize_axis(op: str, axis: int, rank: int) -> int:
    """`axis` counted from the front, checked against the rank."""
    if not -rank <= axis < rank:
        raise fail(op, f"axis {axis} is outside a tensor of rank {rank}")
    return axis % rank


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """The shape that `shapes` broadcast to, as in NumPy.

    Sizes that are not the number 1 are taken to be equal, see `ops.shape.assumptions`: a symbolic
    size does not broadcast, even if it turns out to be 1.
    """
    rank = max((len(s) for s in shapes), default=0)
    padded = [(const(1),) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(_broadcast_dim(op, dims) for dims in zip(*padded, strict=True))


def _broadcast_dim(op: str, dims: Sequence[Expr]) -> Expr:
    distinct = [d for d in dict.fromkeys(dims) if d is not const(1)]
    result = distinct[0] if distinct else const(1)
    for other in distinct[1:]:
        joined = same_size(op, result, other)
        if joined is None:
            sizes = ", ".join(map(str, distinct))
            raise fail(
                op, f"dimensions {sizes} do not broadcast", help="make them equal, or one of them 1"
            )
        result = joined
    return result


def broadcast_index(shape: Shape, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """The index into a tensor of `shape` that broadcasts against `indices` (aligned at the end)."""
    tail = indices[len(indices) - len(shape) :]
    return tuple(const(0) if d is const(1) else i for d, i in zip(shape, tail, strict=True))


def same_dtype(op: str, types: Sequence[TensorType]) -> DType:
    """The one element type of all operands."""
    dtypes = dict.fromkeys(t.dtype for t in types)
    if len(dtypes) != 1:
        raise fail(
            op, f"operands have types {', '.join(map(str, dtypes))}", help="cast them to one"
        )
    return types[0].dtype


def product_dtype(op: str, types: Sequence[TensorType]) -> DType:
    """The one element type of operands that are multiplied; complex numbers are only moved."""
    dtype = same_dtype(op, types)
    if dtype.kind == "complex":
        raise fail(op, f"is not defined on {dtype}")
    return dtype
