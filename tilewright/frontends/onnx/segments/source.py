"""An ONNX model that is compiled in segments: the `SegmentSource` of `driver.segmented`.

source = OnnxSegmentSource("model.onnx", {"N": 1})
source.remaining().segment({"x": TensorType(...)})      # what can be compiled now
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from onnx import inliner

from tilewright.core.errors import Error, Loc
from tilewright.frontends.onnx.model.constants import model_constants
from tilewright.frontends.onnx.model.read import Model, Source, read_model
from tilewright.frontends.onnx.segments.declared_types import (
    check_dim_names,
    checked,
    value_port,
    with_dims,
)
from tilewright.frontends.onnx.segments.operator_counts import OperatorCounts, operator_counts
from tilewright.frontends.onnx.segments.partition import OnnxRemainingGraph, remaining_graph
from tilewright.frontends.onnx.segments.serialize import read_serialized, serialized


class OnnxSegmentSource:
    """A model and the types that it declares; `dims` are sizes that its inputs must have."""

    def __init__(self, source: Source | Model, dims: Mapping[str, int] | None = None) -> None:
        model = source if isinstance(source, Model) else read_model(source)
        if model.proto.functions:
            model.proto = inliner.inline_local_functions(model.proto)
        self.dims = dict(dims or {})
        self._model = model
        try:
            self._declare()
            self._remaining = remaining_graph(model)
        except Error as error:
            raise error.at(Loc(model.file)) from error.__cause__

    @classmethod
    def from_serialized(
        cls, data: bytes, weights: Mapping[int, Any], file: str, dims: Mapping[str, int]
    ) -> OnnxSegmentSource:
        """The model that `serialized` has written."""
        return cls(read_serialized(data, weights, file), dims)

    def _declare(self) -> None:
        graph = self._model.proto.graph
        constants = model_constants(self._model)
        declared = [v for v in graph.input if v.name not in constants]
        self._declared = {v.name: with_dims(v.type, self.dims) for v in declared}
        check_dim_names(self.dims, declared)
        self.inputs = tuple(value_port(k, t) for k, t in self._declared.items())
        self.outputs = tuple(value_port(v.name, v.type) for v in graph.output)

    @property
    def file(self) -> str:
        """What messages call the model."""
        return self._model.file

    @cached_property
    def operators(self) -> OperatorCounts:
        """How many operators the model has, and how many of them run on the host, before a run."""
        return operator_counts(self._remaining, self.inputs)

    def remaining(self) -> OnnxRemainingGraph:
        """The whole model, nothing of it run."""
        return self._remaining

    def checked(self, name: str, value: Any) -> Any:
        """A value for an input, arrays as arrays; what does not fit its type is refused."""
        return checked(name, value, self._declared[name])

    def serialized(self) -> tuple[bytes, dict[int, np.ndarray]]:
        """The model in one piece without long weights, and those by number."""
        return serialized(self._model)
