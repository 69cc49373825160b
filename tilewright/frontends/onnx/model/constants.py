"""The constants of a graph: its initializers, dense or sparse, each read when it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
from onnx import GraphProto, TensorProto

from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.frontends.onnx.model.read import Model
from tilewright.frontends.onnx.model.sparse import dense
from tilewright.frontends.onnx.model.tensors import TensorReader

Lazy = Callable[[], np.ndarray]


def model_constants(model: Model) -> dict[str, Lazy]:
    """The constants of a model, by name."""
    return _named(model.proto.graph, model.reader, model.array)


def graph_constants(graph: GraphProto, reader: TensorReader) -> dict[str, Lazy]:
    """The constants of a nested graph, by name."""
    return _named(graph, reader, lambda index: reader.array(graph.initializer[index]))


def _named(
    graph: GraphProto, reader: TensorReader, array: Callable[[int], np.ndarray]
) -> dict[str, Lazy]:
    """Constants by name; `array` gives an initializer by its number."""
    named: list[tuple[str, Lazy]] = [
        (t.name, partial(_supported, t, partial(array, i))) for i, t in enumerate(graph.initializer)
    ]
    named += [(s.values.name, partial(dense, s, reader)) for s in graph.sparse_initializer]
    found = dict(named)
    if len(found) < len(named):
        twice, _ = Counter(name for name, _ in named).most_common(1)[0]
        raise FrontendError("onnx.duplicate-value", f"{twice!r} is defined twice")
    return found


def _supported(tensor: TensorProto, array: Lazy) -> np.ndarray:
    onnx_dtype(tensor.data_type)
    return array()
