"""What a converter sees of an ONNX model: the node it converts, and the graph being built.

A converter is a function `(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]` that adds operators to
`c.g` and returns the names of the node's outputs:

    def leaky_relu(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        return (c.add(n, "leaky_relu", n.input(0), attrs=AlphaAttrs(n.float_attr("alpha", 0.01))),)

    CONVERTERS = {"LeakyRelu": leaky_relu, "Relu": simple("relu")}

Whatever is added while a node is converted is located at that node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from math import prod
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto

from tilewright.arith.affine import to_affine
from tilewright.arith.expr import Expr, Var, const
from tilewright.arith.prove import Prover
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import substitute
from tilewright.core.dtypes import DType
from tilewright.core.errors import FrontendError, Loc, UnsupportedError
from tilewright.frontends.onnx.backtracking import Backtracker
from tilewright.frontends.onnx.evaluate_constant import computed
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.frontends.onnx.model.sparse import MAX_ELEMENTS, dense
from tilewright.frontends.onnx.model.tensors import TensorReader
from tilewright.frontends.onnx.segments.data_dependent import DataDependent, NeedsConcreteValue
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.control.bind_dim import BindDimAttrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder, known_integers
from tilewright.ops.op import normalize_axis
from tilewright.ops.shape.assumptions import data_dependent_dim


@dataclass(frozen=True)
class OnnxNode:
    """An ONNX node with its inputs under our names; an absent optional input is `""`."""

    proto: NodeProto
    inputs: tuple[str, ...]
    loc: Loc
    opset: int  # the version of the node's domain

    @property
    def op_type(self) -> str:
        """The operator's ONNX name."""
        return str(self.proto.op_type)

    @property
    def name(self) -> str:
        """What messages call the node."""
        return self.loc.node

    @property
    def outputs(self) -> tuple[str, ...]:
        """The ONNX names of the outputs, `""` for one that is not wanted."""
        return tuple(self.proto.output)

    @property
    def n_outputs(self) -> int:
        """How many outputs are listed, unwanted ones in between included."""
        return len(self.proto.output)

    def wants(self, index: int) -> bool:
        """Whether output `index` is used under some name."""
        return index < self.n_outputs and bool(self.proto.output[index])

    def input(self, index: int) -> str:
        """Our name of input `index`, `""` if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def has_input(self, index: int) -> bool:
        """Whether input `index` is present."""
        return bool(self.input(index))

    def required(self, index: int) -> str:
        """Our name of input `index`, which must be present."""
        if not self.has_input(index):
            raise FrontendError(
                "onnx.missing-input", f"{self.op_type} has no input {index}", loc=self.loc
            )
        return self.input(index)

    def has_attr(self, name: str) -> bool:
        """Whether the attribute is given."""
        return any(a.name == name for a in self.proto.attribute)

    def int_attr(self, name: str, default: int | None = None) -> int:
        """An integer attribute; without a default it is required."""
        return int(self._attr(name, AttributeProto.INT, "i", default))

    def float_attr(self, name: str, default: float | None = None) -> float:
        """A float attribute; without a default it is required."""
        return float(self._attr(name, AttributeProto.FLOAT, "f", default))

    def str_attr(self, name: str, default: str | None = None) -> str:
        """A text attribute; without a default it is required."""
        found = self._attr(name, AttributeProto.STRING, "s", default)
        return self._text(name, found)

    def ints_attr(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of integers; without a default it is required."""
        return tuple(int(v) for v in self._attr(name, AttributeProto.INTS, "ints", default))

    def floats_attr(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """A list of floats; without a default it is required."""
        return tuple(float(v) for v in self._attr(name, AttributeProto.FLOATS, "floats", default))

    def strs_attr(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of texts; without a default it is required."""
        found = self._attr(name, AttributeProto.STRINGS, "strings", default)
        return tuple(self._text(name, v) for v in found)

    def dtype_attr(self, name: str, default: DType | None = None) -> DType:
        """An attribute that names an element type; without a default it is required."""
        if default is not None and not self.has_attr(name):
            return default
        return onnx_dtype(self.int_attr(name))

    def tensor_attr(self, name: str) -> np.ndarray:
        """A required tensor attribute as an array."""
        return TensorReader(None).array(self._attr(name, AttributeProto.TENSOR, "t", None))

    def sparse_attr(self, name: str) -> np.ndarray:
        """A required sparse tensor attribute as an array of all its elements."""
        kind = AttributeProto.SPARSE_TENSOR
        return dense(self._attr(name, kind, "sparse_tensor", None), TensorReader(None))

    def graph_attr(self, name: str) -> GraphProto:
        """A required nested graph."""
        found = self._attr(name, AttributeProto.GRAPH, "g", None)
        assert isinstance(found, GraphProto)
        return found

    def only(self, items: Iterable[Any], index: int) -> Any:
        """The one element of `items`, which input `index` gives."""
        flat = np.asarray(items, dtype=object).reshape(-1)
        if flat.size != 1:
            raise self.invalid(f"input {index} has {flat.size} elements, not one")
        return flat[0]

    def unsupported(self, what: str, help: str) -> UnsupportedError:
        """The error for a form of this operator that is not supported; `help` says what is."""
        return UnsupportedError(
            f"onnx.{self.op_type}", f"{self.op_type}: {what}", loc=self.loc, help=help
        )

    def check_table(self, *sizes: int) -> None:
        """Refuse a table that a few numbers of the model ask for, if none can be so large."""
        what = f"a table of {' x '.join(map(str, sizes))} numbers"
        if min(sizes) < 0:
            raise self.invalid(what)
        if prod(sizes) > MAX_ELEMENTS:
            raise self.unsupported(what, f"at most {MAX_ELEMENTS}")

    def invalid(self, what: str, help: str = "") -> FrontendError:
        """The error for a node that ONNX itself does not allow."""
        return FrontendError("onnx.node", f"{self.op_type}: {what}", loc=self.loc, help=help)

    def _text(self, name: str, value: Any) -> str:
        try:
            return value.decode() if isinstance(value, bytes) else str(value)
        except UnicodeDecodeError as error:
            raise self.invalid(f"attribute {name} is not UTF-8: {value[:40]!r}") from error

    def _attr(self, name: str, kind: int, field: str, default: Any) -> Any:
        for attribute in self.proto.attribute:
            if attribute.name == name:
                if attribute.type != kind:
                    given = AttributeProto.AttributeType.Name(attribute.type)
                    wanted = AttributeProto.AttributeType.Name(kind)
                    raise self.invalid(f"attribute {name} is {given}, not {wanted}")
                return getattr(attribute, field)
        if default is None:
            raise self.invalid(f"attribute {name} is missing")
        return default


def _no_nested(c: OnnxContext, graph: GraphProto) -> tuple[str, ...]:
    raise AssertionError(f"nobody said how nested graphs such as {graph.name!r} are converted")


def _no_texts(g: GraphBuilder, texts: np.ndarray) -> str:
    raise DataDependent(
        "onnx.texts", f"the model has texts: {', '.join(map(repr, texts.flat[:3]))}"
    )


@dataclass
class OnnxContext:
    """The graph being built, and which of its values each ONNX name is."""

    g: GraphBuilder
    opset: int  # the version of the default domain
    values: dict[str, str] = field(default_factory=dict)
    # Converts the nodes of a nested graph in a context, and gives our names of its results.
    nested: Callable[[OnnxContext, GraphProto], tuple[str, ...]] = field(default=_no_nested)
    backtracker: Backtracker = field(default_factory=Backtracker)
    dynamic_dim_numbers: Iterator[int] = field(default_factory=count)
    whole: bool = True  # whether all nodes of the model are converted here, and not a stage of them
    # Sizes of at least 2: a segment is compiled anew where one of them is 0 or 1.
    above_one: set[str] = field(default_factory=set)
    # Adds texts to a graph: the number of a text is another one in every run, see `stages`.
    text_input: Callable[[GraphBuilder, np.ndarray], str] = field(default=_no_texts)

    def inner(
        self,
        g: GraphBuilder | None = None,
        values: dict[str, str] | None = None,
        backtracker: Backtracker | None = None,
    ) -> OnnxContext:
        """The context of a nested graph: in a graph of its own, or in place."""
        inside = dict(self.values) if values is None else values
        return replace(
            self, g=g or self.g, values=inside, backtracker=backtracker or self.backtracker
        )

    def is_above_one(self, size: Expr) -> bool:
        """Whether a size is certainly at least 2."""
        shifted = {name: Var(name) + 2 for name in self.above_one}
        return Prover({}).nonneg(to_affine(simplify(substitute(size, shifted))).shift(-2))

    def fresh_size(self) -> str:
        """A name for a size that is known only when the model runs."""
        return data_dependent_dim(next(self.dynamic_dim_numbers))

    def bind_dim(self, n: OnnxNode, count: str, bound: Expr) -> Expr:
        """The dimension whose value is `count`, one integer, at run time; at most `bound`."""
        name = self.fresh_size()
        known = self.add(n, "bind_dim", count, attrs=BindDimAttrs(name, bound))
        self.g.set_symbolic_value(known, Var(name))
        return Var(name)

    def add(self, n: OnnxNode, op: str, *inputs: str, attrs: Attrs = NO_ATTRS) -> str:
        """Append an operator with one output, named like the node's first output."""
        return self.g.add(op, *inputs, attrs=attrs, name=_base_name(n, 0), loc=n.loc)

    def add_many(
        self, n: OnnxNode, op: str, *inputs: str, attrs: Attrs = NO_ATTRS
    ) -> tuple[str, ...]:
        """Append an operator with several outputs, named like those of the node."""
        names = tuple(_base_name(n, i) for i in range(n.n_outputs))
        return self.g.add_many(op, *inputs, attrs=attrs, names=names, loc=n.loc)

    def cast(self, n: OnnxNode, value: str, dtype: DType) -> str:
        """A value in another element type; itself where it has it already."""
        if self.type(value).dtype == dtype:
            return value
        return self.add(n, "cast", value, attrs=CastAttrs(dtype))

    def constant(self, data: np.ndarray | float | int, dtype: DType, name: str = "c") -> str:
        """Add a constant of the given element type."""
        try:
            array = np.asarray(data, dtype=dtype.numpy)
        except (OverflowError, ValueError) as error:  # an infinite number as an integer
            message = f"{data} is no {dtype}"
            raise FrontendError("onnx.number", message, help="use another element type") from error
        return self.g.constant(array, name)

    def table(self, data: np.ndarray, name: str = "table") -> str:
        """Add a constant array, of numbers or of texts."""
        return (
            self.text_input(self.g, data) if data.dtype.kind == "O" else self.g.constant(data, name)
        )

    def type(self, name: str) -> TensorType:
        """The type of one of our values, which must be a tensor."""
        return self.g.type(name)

    def shape(self, n: OnnxNode, name: str, rank: int) -> Shape:
        """The shape of a value that must have so many dimensions."""
        found = self.type(name)
        if found.rank != rank:
            raise n.invalid(f"{rank} dimensions are needed, where there is {found}")
        return found.shape

    def require(self, n: OnnxNode, condition: Expr, what: str) -> None:
        """Refuse the node where a condition on sizes fails: now, or when the model runs."""
        if not self.g.add_check(condition, f"{n.op_type}: {what}", n.loc):
            raise n.invalid(what)

    def constant_of(self, name: str) -> np.ndarray | None:
        """The data of a value that is a constant of the graph, else `None`."""
        return self.g.constant_data(name)

    def _computed_data(self, name: str) -> np.ndarray | None:
        """The data of a value, if it is a constant or depends on constants only."""
        data = self.constant_of(name)
        return data if data is not None else computed(self.g, name)

    def known_array(self, n: OnnxNode, index: int) -> np.ndarray:
        """Input `index`, an integer tensor, as an object array of expressions."""
        name = n.required(index)
        found = self.type(name)
        if not found.dtype.is_integer:
            raise n.invalid(f"input {index} is {found}", "use a tensor of integers")
        known = self.g.symbolic_value(name)
        if known is not None:
            return known
        data = self._computed_data(name)
        if data is not None:
            known = np.empty(data.size, dtype=object)
            known[:] = [const(int(v)) for v in data.reshape(-1)]
            return known.reshape(data.shape)
        raise self.needs_value(n, index, sizes=True)

    def needs_value(self, n: OnnxNode, index: int, sizes: bool = False) -> NeedsConcreteValue:
        """The error for an input that must be known before the node can be converted.

        `sizes` says that its elements may be symbols.
        """
        return NeedsConcreteValue(
            n.op_type, str(n.proto.input[index]), f"input {index}", n.loc, sizes
        )

    def known_ints(self, n: OnnxNode, index: int) -> tuple[Expr, ...]:
        """Input `index` as a flat list of index expressions."""
        return tuple(self.known_array(n, index).reshape(-1))

    def static_ints(self, n: OnnxNode, index: int) -> tuple[int, ...]:
        """Input `index` as plain integers; symbolic sizes are refused (axes, permutations)."""
        found = known_integers(self.known_array(n, index))
        if found is None:
            raise self.needs_value(n, index)
        return tuple(found)

    def scalar(self, n: OnnxNode, index: int) -> float | int | bool:
        """Input `index` as a number: it must be a constant of one element."""
        data = self._computed_data(n.required(index))
        if data is None:
            raise self.needs_value(n, index)
        if data.size != 1:
            raise n.invalid(
                f"input {index} ({n.proto.input[index]}) has {data.size} elements, not one"
            )
        if data.dtype.kind in "cOU":
            raise n.invalid(f"input {index} ({n.proto.input[index]}) is no real number")
        number: float | int | bool = data.reshape(()).item()
        return number


_FOREIGN = re.compile(r"[^A-Za-z0-9_.]")
Converter = Callable[[OnnxContext, OnnxNode], tuple[str, ...]]


def simple(op: str, attrs: Callable[[OnnxNode], Attrs] | None = None) -> Converter:
    """A converter to one operator of ours with the same inputs and outputs."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        given = NO_ATTRS if attrs is None else attrs(n)
        return c.add_many(n, op, *n.inputs, attrs=given)

    convert.__doc__ = f"The operator `{op}`."
    return convert


def axes_of(
    c: OnnxContext, n: OnnxNode, index: int = 1, name: str = "axes"
) -> tuple[int, ...] | None:
    """`axes`, an input in newer versions of many operators and an attribute in older; or `None`."""
    if n.has_attr(name):
        return n.ints_attr(name)
    return c.static_ints(n, index) if n.has_input(index) else None


def distinct_axes(n: OnnxNode, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, of which none may be given twice."""
    found = tuple(normalize_axis(n.op_type, a, rank) for a in axes)
    if len(set(found)) != len(found):
        raise n.invalid(f"axes {list(axes)} name one dimension twice")
    return found


def identifier(name: str) -> str:
    """`name` made of the characters that text IR allows in a name."""
    return _FOREIGN.sub("_", name).strip(".") or "v"


def _base_name(n: OnnxNode, index: int) -> str:
    given = n.outputs[index] if index < n.n_outputs else ""
    return identifier(given or f"{n.op_type.lower()}_{index}")
