"""What a host operator sees of the node that it runs.

A host operator is a function `(call: HostCall) -> tuple[Any, ...]`. Its values are arrays, lists
(sequences), `None` (an optional that is empty) and dictionaries (maps).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import GraphProto

from tilewright.core.errors import ExecutionError
from tilewright.frontends.onnx.context import OnnxNode

RunNested = Callable[[GraphProto, Mapping[str, Any]], Sequence[Any]]


@dataclass(frozen=True)
class HostCall:
    """A node and the values of its inputs; `nested` runs one of its nested graphs.

    An input that is left out and an optional that is empty are both `None`; `present` tells them
    apart.
    """

    node: OnnxNode
    inputs: Sequence[Any]
    nested: RunNested

    def present(self, index: int) -> bool:
        """Whether the node names an input there."""
        return index < len(self.node.proto.input) and bool(self.node.proto.input[index])

    def input(self, index: int, default: Any = None) -> Any:
        """The value of an input, or the default where it is left out."""
        return self.inputs[index] if self.present(index) else default

    def integer(self, index: int, default: int | None = None) -> int | None:
        """An input that is one integer."""
        value = self.input(index)
        if value is None:
            return default
        if isinstance(value, np.ndarray) and value.dtype.kind not in "iu":
            raise self.failure(f"input {index} is of {value.dtype}, not of integers")
        return int(self.single(value, f"input {index}"))

    def single(self, value: Any, what: str) -> Any:
        """The one element of an array."""
        if not isinstance(value, np.ndarray) or value.size != 1:
            raise self.failure(f"{what} is no tensor of one element")
        return value.reshape(()).item()

    def failure(self, what: str, help: str = "") -> ExecutionError:
        """The error for values that the operator cannot take."""
        op = self.node.op_type
        return ExecutionError(f"host.{op}", f"{op}: {what}", loc=self.node.loc, help=help)


HostOp = Callable[[HostCall], tuple[Any, ...]]
