"""Traced values of a converter: what is added is named and located like the node it converts.

x, slope = traced(c, n, n.required(0)), traced(c, n, n.required(1))
(x * slope + 1).name
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.arith.expr import Expr
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import DType
from tilewright.core.errors import Loc
from tilewright.frontends.onnx.context import OnnxContext, OnnxNode
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs, Graph
from tilewright.ir.types import TensorType
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.ops.traced_value import TracedValue


@dataclass(frozen=True)
class NodeScope:
    """The graph of `c` as operators' rules see it while node `n` is converted (`GraphOps`)."""

    c: OnnxContext
    n: OnnxNode

    def add(
        self,
        op: str,
        *inputs: str,
        attrs: Attrs | None = None,
        name: str = "",
        loc: Loc | None = None,
    ) -> str:
        """Append an operator with one output, named like the node's first output."""
        return self.c.add(self.n, op, *inputs, attrs=attrs or NO_ATTRS)

    def add_many(
        self,
        op: str,
        *inputs: str,
        attrs: Attrs | None = None,
        names: Sequence[str] = (),
        loc: Loc | None = None,
    ) -> tuple[str, ...]:
        """Append an operator with several outputs."""
        return self.c.g.add_many(op, *inputs, attrs=attrs, names=names, loc=self.n.loc)

    def add_control(
        self,
        op: str,
        inputs: Sequence[str],
        regions: Sequence[Graph],
        attrs: Attrs,
        names: Sequence[str] = (),
        loc: Loc | None = None,
    ) -> tuple[str, ...]:
        """Append an operator with nested graphs."""
        return self.c.g.add_control(op, inputs, regions, attrs, names, self.n.loc)

    def constant(self, data: np.ndarray, name: str = "c") -> str:
        """Add a constant."""
        return self.c.g.constant(data, name)

    def constant_data(self, name: str) -> np.ndarray | None:
        """The data of a value that is a constant, else `None`."""
        return self.c.g.constant_data(name)

    def type(self, name: str) -> TensorType:
        """The type of a value that must be a tensor."""
        return self.c.type(name)

    def cast(self, x: str, dtype: DType) -> str:
        """A value in another element type; itself where it has it already."""
        return self.c.cast(self.n, x, dtype)

    def reshape(self, x: str, shape: Sequence[Expr]) -> str:
        """A value under another shape; itself where it has it already."""
        wanted = tuple(simplify(d) for d in shape)
        if self.type(x).shape == wanted:
            return x
        return self.add("reshape", x, attrs=ReshapeAttrs(wanted))


NodeValue = TracedValue[NodeScope]


def traced(c: OnnxContext, n: OnnxNode, name: str) -> NodeValue:
    """A value of the graph that the converter of `n` computes with."""
    return TracedValue(NodeScope(c, n), name)
