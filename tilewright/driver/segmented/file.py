"""A model in segments as one file: the model itself, and the segments that are compiled so far.

The file is a container (see `runtime.container`). Its objects are the ONNX model without long
weights and the code of each compiled segment; its weights are those of the model, then those of
each segment. The manifest's entry `segmented` says which is which:

    file, dims, break_reason, target, precision   how the model was compiled, and why in segments
    raw      [[initializer, offset, bytes]], the model's weights
    parts    [{"key", "manifest", "objects", "weights": [offset, bytes]}], the compiled segments

Reading it needs the compiler: a segment that is not in the file is compiled when it is first run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from tilewright.core.errors import ExecutionError
from tilewright.driver.segmented.segment_cache import SegmentCache
from tilewright.frontends.onnx.model.read import Model
from tilewright.frontends.onnx.model.tensors import TensorReader
from tilewright.runtime.container import Container, write_container
from tilewright.runtime.model import CompiledModel

MODEL = "model.onnx"
# Where the weights of each segment begin: as they do in a file of their own.
ALIGNMENT = 4096


@dataclass
class _Weights:
    """Bytes one after another, each from a multiple of the alignment on."""

    items: list[tuple[int, np.ndarray]] = field(default_factory=list)
    size: int = 0

    def add(self, data: np.ndarray) -> tuple[int, int]:
        """Where the bytes will lie, and how many they are."""
        place = self.size
        self.items.append((place, data))
        self.size += -(-data.nbytes // ALIGNMENT) * ALIGNMENT
        return place, data.nbytes


def save_segmented(
    path: str | os.PathLike[str],
    model: Model,
    library: SegmentCache,
    segments: Iterable[CompiledModel],
    about: dict[str, Any],
) -> Path:
    """Write a model in segments; `about` is what else the manifest says."""
    weights = _Weights()
    proto, raw = portable(model)
    objects = {MODEL: proto.SerializeToString()}
    places = [[number, *weights.add(data)] for number, data in raw.items()]
    parts = []
    for number, segment in enumerate(segments):
        container = segment.container
        objects |= {f"{number}/{name}": data for name, data in container.objects.items()}
        parts.append(
            {
                "key": library.key_of(segment),
                "manifest": container.manifest,
                "objects": list(container.objects),
                "weights": weights.add(container.weights),
            }
        )
    staged = {"file": model.file, "raw": places, "parts": parts}
    staged |= {"target": library.options.target_name, "precision": library.options.precision}
    manifest = {**about, "segmented": {**staged, **about["segmented"]}}
    return write_container(path, manifest, objects, weights.items)


def saved_model(container: Container) -> Model:
    """The ONNX model in a file; its weights stay mapped."""
    staged = container.manifest["segmented"]
    try:
        proto = ModelProto.FromString(container.objects[MODEL])
    except (KeyError, DecodeError) as error:
        raise ExecutionError(
            "container.segmented", f"{container.path} has no model in it", help="save it again"
        ) from error
    raw = {
        number: container.weights[offset : offset + size].data
        for number, offset, size in staged["raw"]
    }
    return Model(proto, staged["file"], TensorReader(None), raw)


def saved_segments(container: Container) -> dict[str, Container]:
    """The compiled segments in a file, by their keys."""
    found = {}
    for number, part in enumerate(container.manifest["segmented"]["parts"]):
        objects = {name: container.objects[f"{number}/{name}"] for name in part["objects"]}
        offset, size = part["weights"]
        weights = container.weights[offset : offset + size]
        found[part["key"]] = Container(part["manifest"], objects, weights)
    return found


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
