"""Reading an ONNX model from a path, bytes or a ModelProto.

A file is memory-mapped and its weights are never copied: see `strip`. What comes out is the model
without long weights, and `Model.array`, which gives each initializer as an array.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from tilewright.core.arguments import path_argument
from tilewright.core.errors import FrontendError, Loc
from tilewright.core.file_format import HEAD, foreign_format
from tilewright.frontends.onnx.model.detach_weights import Stripped, strip
from tilewright.frontends.onnx.model.tensors import TensorReader
from tilewright.frontends.onnx.model.validate import check_wellformed

Source = str | os.PathLike[str] | bytes | onnx.ModelProto

DOMAINS = ("", "ai.onnx")
"""The two spellings of the default domain."""

NEWEST = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": onnx.defs.onnx_ml_opset_version()}
"""The newest version of the operators of ONNX's own domains."""


@dataclass
class Model:
    """A model that has been read: `file` is what messages call it."""

    proto: onnx.ModelProto
    file: str
    reader: TensorReader
    raw: dict[int, memoryview]

    def array(self, index: int) -> np.ndarray:
        """Initializer number `index`."""
        return self.reader.array(self.proto.graph.initializer[index], self.raw.get(index))

    @property
    def opsets(self) -> dict[str, int]:
        """The version of each domain; the default domain is `""`."""
        return {"" if o.domain in DOMAINS else o.domain: o.version for o in self.proto.opset_import}


def read_model(source: Source) -> Model:
    """Read a model; what is wrong with it is a FrontendError."""
    if isinstance(source, onnx.ModelProto):
        name = source.graph.name  # bytes, where they are no text: messages have no use for them
        called = name if name and isinstance(name, str) else "model"
        return _checked(Model(source, called, TensorReader(None), {}))
    if isinstance(source, bytes | bytearray | memoryview):
        data = memoryview(source).cast("B")
        _check_format(bytes(data[:HEAD]), None)
        parts = strip(data)
        return _checked(Model(_parse(parts, "model"), "model", TensorReader(None), parts.raw))
    path = path_argument("the model", source)
    parts = _map(path)
    proto = _parse(parts, path.name)
    return _checked(Model(proto, path.name, TensorReader(path.parent), parts.raw))


def external_locations(path: Path) -> tuple[str, ...]:
    """The files besides its own in which a model's tensors lie, as it spells them, unchecked."""
    tensors = read_model(path).proto.graph.initializer
    external = (t for t in tensors if t.data_location == t.EXTERNAL)
    entries = (e for t in external for e in t.external_data)
    return tuple(dict.fromkeys(e.value for e in entries if e.key == "location"))


def _map(path: Path) -> Stripped:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                raise FrontendError("onnx.damaged", f"{path} is empty", help="download it again")
            # The views that `strip` makes keep the mapping alive.
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            _check_format(bytes(data[:HEAD]), path)
            return strip(data)
    except OSError as error:
        raise FrontendError(
            "onnx.file",
            f"cannot read {path}: {error.strerror or error}",
            help="give the path of an .onnx file",
        ) from error


def _check_format(head: bytes, path: Path | None) -> None:
    """Name a file that is something else than an ONNX model."""
    found = foreign_format(head, path)
    if found is not None:
        name = "the model" if path is None else str(path)
        raise FrontendError(
            "onnx.format", f"{name} is not an ONNX model, but {found.name}", help=found.help
        )


def _parse(parts: Stripped, file: str) -> onnx.ModelProto:
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(parts.message)
    except DecodeError as error:
        raise FrontendError(
            "onnx.damaged",
            f"{file} is not an ONNX model, or it is truncated",
            help="check the file's size, or download it again",
        ) from error
    return model


def _checked(model: Model) -> Model:
    """The model, if it has what every model has."""
    if not model.proto.HasField("graph"):
        raise FrontendError(
            "onnx.damaged",
            f"{model.file} is not an ONNX model: it has no graph",
            loc=Loc(model.file),
        )
    if not model.opsets:
        raise FrontendError(
            "onnx.opset",
            f"{model.file} does not say which version of the ONNX operators it uses",
            loc=Loc(model.file),
            help="add an opset_import for the domain ai.onnx",
        )
    _check_versions(model)
    check_wellformed(model.proto, model.file)
    return model


def _check_versions(model: Model) -> None:
    """Refuse versions of ONNX's operators that do not exist: what they mean is not known."""
    for domain, version in model.opsets.items():
        newest = NEWEST.get(domain)
        if newest is not None and not 1 <= version <= newest:
            raise FrontendError(
                "onnx.opset",
                f"{model.file} uses version {version} of the operators of {domain or 'ai.onnx'}, "
                f"where the newest known is {newest}",
                loc=Loc(model.file),
                help="export the model for an older opset, or install a newer onnx",
            )
