"""An ONNX model as bytes that need no other file, its long weights beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from tilewright.core.errors import ExecutionError
from tilewright.frontends.onnx.model.read import Model
from tilewright.frontends.onnx.model.tensors import TensorReader


def serialized(model: Model) -> tuple[bytes, dict[int, np.ndarray]]:
    """The model as bytes, and the bytes of long initializers by number."""
    proto, raw = portable(model)
    return proto.SerializeToString(), raw


def read_serialized(data: bytes, weights: Mapping[int, Any], file: str) -> Model:
    """The model that `serialized` has written."""
    try:
        proto = ModelProto.FromString(data)
    except DecodeError as error:
        raise ExecutionError(
            "container.segmented", f"{file} has a damaged model in it", help="save it again"
        ) from error
    return Model(proto, file, TensorReader(None), dict(weights))


def portable(model: Model) -> tuple[ModelProto, dict[int, np.ndarray]]:
    """The model without other files, and the bytes of long initializers by number."""
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    raw = {n: np.frombuffer(data, np.uint8) for n, data in model.raw.items()}
    for number, tensor in enumerate(proto.graph.initializer):
        if tensor.data_location == TensorProto.EXTERNAL:
            _take_in(tensor, model.reader)
            raw[number] = np.frombuffer(tensor.raw_data, np.uint8)
            tensor.ClearField("raw_data")
    sparse = [t for s in proto.graph.sparse_initializer for t in (s.values, s.indices)]
    for tensor in (*sparse, *_inner_tensors(proto.graph.node)):
        if tensor.data_location == TensorProto.EXTERNAL:
            _take_in(tensor, model.reader)
    return proto, dict(sorted(raw.items()))


def _take_in(tensor: TensorProto, reader: TensorReader) -> None:
    tensor.CopyFrom(numpy_helper.from_array(np.array(reader.array(tensor)), tensor.name))


def _inner_tensors(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    """The tensors in attributes of nodes and in nested graphs."""
    for attribute in (a for node in nodes for a in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        graphs: list[GraphProto] = [attribute.g, *attribute.graphs]
        for graph in graphs:
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            yield from _inner_tensors(graph.node)
