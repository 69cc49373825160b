"""A model file as a session opens it: its source, what it declares of itself, its metadata."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper

from tilewright.compat.onnxruntime.status import (
    InvalidArgument,
    InvalidProtobuf,
    NoSuchFile,
    NotImplemented,
    error,
    translated,
)
from tilewright.compat.onnxruntime.types import Declared
from tilewright.compat.onnxruntime.values import OrtValue
from tilewright.core.errors import Error
from tilewright.frontends.onnx.model.read import external_locations, read_model

# Before this version of the format every initializer had to be listed among the inputs.
_OVERRIDABLE_FROM = 4


class ModelMetadata:
    """What a model says of itself."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.producer_name = model.producer_name
        self.graph_name = model.graph.name
        self.domain = model.domain
        self.description = model.doc_string
        self.graph_description = model.graph.doc_string
        # ONNX Runtime's number for a model that says none.
        self.version = model.model_version if model.HasField("model_version") else 2**63 - 1
        self.custom_metadata_map = {p.key: p.value for p in model.metadata_props}


class OpenedModel:
    """A model's source and its face."""

    def __init__(
        self,
        source: str | bytes,
        initializers: Mapping[str, OrtValue],
        sizes: Mapping[str, int],
    ) -> None:
        """`initializers` replace those of the model; `sizes` are wanted of free dimensions."""
        self.source: str | bytes | onnx.ModelProto = source
        _check_source(source)
        if initializers:
            self.source = self.with_initializers({k: v.numpy() for k, v in initializers.items()})
        self.proto = self._read()
        graph = self.proto.graph
        named = {d.dim_param for v in graph.input for d in v.type.tensor_type.shape.dim}
        self.dims = {name: size for name, size in sizes.items() if name in named}
        held = {t.name for t in graph.initializer}
        self.inputs = [Declared.of(v, self.dims) for v in graph.input if v.name not in held]
        self.outputs = [Declared.of(v, self.dims) for v in graph.output]
        overridable = graph.input if self.proto.ir_version >= _OVERRIDABLE_FROM else ()
        self.overridable = [Declared.of(v, self.dims) for v in overridable if v.name in held]
        self.meta = ModelMetadata(self.proto)

    @property
    def names_of_sizes(self) -> set[str]:
        """The free dimensions that have names."""
        dims = (d for v in self.proto.graph.input for d in v.type.tensor_type.shape.dim)
        return {d.dim_param for d in dims if d.dim_param}

    def whole(self) -> onnx.ModelProto:
        """A copy of the model with its weights."""
        if isinstance(self.source, onnx.ModelProto):
            copy = onnx.ModelProto()
            copy.CopyFrom(self.source)
            return copy
        if isinstance(self.source, bytes):
            return onnx.load_model_from_string(self.source)
        return onnx.load(self.source)

    def with_initializers(self, arrays: Mapping[str, Any]) -> onnx.ModelProto:
        """The model with other initializers."""
        model = self.whole()
        held = {t.name: t for t in model.graph.initializer}
        for name, array in arrays.items():
            if name not in held:
                raise error(InvalidArgument, f"the model has no initializer {name}")
            held[name].CopyFrom(numpy_helper.from_array(array, name))
        return model

    def with_inputs(self, names: Sequence[str]) -> onnx.ModelProto:
        """The model with these initializers as inputs."""
        model = self.whole()
        kept = [t for t in model.graph.initializer if t.name not in names]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        return model

    def save(self, path: str) -> None:
        """Write the model to `path`, one that computes the same as the compiled one."""
        if isinstance(self.source, bytes):
            Path(path).write_bytes(self.source)
        elif isinstance(self.source, str) and not external_locations(Path(self.source)):
            shutil.copyfile(self.source, path)
        else:
            onnx.save(self.whole(), path)

    def _read(self) -> onnx.ModelProto:
        try:
            return read_model(self.source).proto
        except Error as cause:
            raise _unreadable(self.source, cause) from cause


def _check_source(source: str | bytes) -> None:
    """What can be said before the model is read."""
    if isinstance(source, bytes):
        if not source:
            raise error(InvalidArgument, "No graph was found in the protobuf.")
        return
    if not os.path.exists(source):
        raise error(
            NoSuchFile,
            f"Load model from {source} failed:Load model {source} failed. File doesn't exist",
        )
    if os.path.isdir(source):
        raise error(InvalidProtobuf, f"Load model from {source} failed:Protobuf parsing failed.")
    if os.path.getsize(source) == 0:
        raise error(
            InvalidArgument,
            f"Load model from {source} failed:No graph was found in the protobuf.",
        )
    if source.endswith(".ort"):
        raise error(
            NotImplemented,
            f"Load model from {source} failed:the ORT format is ONNX Runtime's own; "
            "Tilewright reads ONNX",
        )


def _unreadable(source: Any, cause: Error) -> Exception:
    if cause.code != "onnx.damaged":
        return translated(cause)
    if isinstance(source, str):
        return error(InvalidProtobuf, f"Load model from {source} failed:Protobuf parsing failed.")
    return error(InvalidProtobuf, "Failed to load model because protobuf parsing failed.")
