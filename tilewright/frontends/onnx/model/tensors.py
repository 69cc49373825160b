"""TensorProto to NumPy, without copying: inline bytes, bytes of the model file, external files.

Only elements of fewer than 8 bits are copied: a model packs them, an array has a byte for each.

External data lies in files next to the model. Its path comes from the model, which may come from
anywhere, so nothing outside the model's folder is ever opened, and ranges are checked against the
file before it is mapped.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
from onnx import TensorProto, numpy_helper

from tilewright.core.dtypes import STRING, DType
from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.ir.types import MAX_BYTES, MAX_RANK


class TensorReader:
    """Reads the tensors of one model; `folder` is where its external data lies, if anywhere."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._files: dict[Path, np.ndarray] = {}

    def array(self, tensor: TensorProto, raw: memoryview | None = None) -> np.ndarray:
        """The elements; `raw` are their bytes where they have been cut out of the proto."""
        if any(d < 0 for d in tensor.dims):
            raise _bad(tensor, f"a size of {list(tensor.dims)} is negative")
        if len(tensor.dims) > MAX_RANK:
            raise _bad(tensor, f"no array has {len(tensor.dims)} axes")
        if tensor.data_location == TensorProto.EXTERNAL:
            return _view(tensor, self._external(tensor))
        if raw is None and tensor.HasField("raw_data"):
            raw = memoryview(tensor.raw_data)
        if raw is not None:
            return _view(tensor, np.frombuffer(raw, dtype=np.uint8))
        try:
            return numpy_helper.to_array(tensor)
        except (ValueError, TypeError, KeyError) as error:
            raise _bad(tensor, f"its data does not fit its shape and type ({error})") from error

    def _external(self, tensor: TensorProto) -> np.ndarray:
        entries = {e.key: e.value for e in tensor.external_data}
        if any(isinstance(text, bytes) for pair in entries.items() for text in pair):
            raise _bad(tensor, "where its data lies is not UTF-8")
        path = _inside(tensor, entries.get("location", ""), self.folder)
        if path not in self._files:
            empty = path.stat().st_size == 0  # which cannot be mapped
            self._files[path] = (
                np.empty(0, np.uint8) if empty else np.asarray(np.memmap(path, np.uint8, "r"))
            )
        data = self._files[path]
        offset = _number(tensor, entries, "offset", 0)
        length = _number(tensor, entries, "length", max(0, data.size - offset))
        if offset > data.size or length > data.size - offset:
            raise FrontendError(
                "onnx.external-range",
                f"tensor {tensor.name!r} lies at bytes {offset} to {offset + length} of"
                f" {path.name}, which has {data.size}",
                help="the data file is truncated or belongs to another model",
            )
        return data[offset : offset + length]


def _view(tensor: TensorProto, data: np.ndarray) -> np.ndarray:
    """Bytes as an array of the tensor's type and shape; they may lie at an odd address."""
    shape = tuple(tensor.dims)
    dtype = onnx_dtype(tensor.data_type)
    elements = math.prod(shape)
    bits = dtype.bits if dtype.is_small else dtype.numpy.itemsize * 8
    if math.prod(max(1, d) for d in shape) * dtype.bytes > MAX_BYTES:
        raise _bad(tensor, f"no array has the shape {list(shape)}")
    if dtype == STRING or data.size != (elements * bits + 7) // 8:
        raise _bad(
            tensor, f"{data.size} bytes do not fill {_type_name(tensor)} of shape {list(shape)}"
        )
    if not data.size:
        return np.empty(shape, dtype.numpy)
    plain = unpack(data, dtype, elements) if dtype.bits < 8 else data
    return plain.view(dtype.numpy).reshape(shape)


def unpack(data: np.ndarray, dtype: DType, elements: int) -> np.ndarray:
    """Packed elements, the first one in the lowest bits, each in a byte of its own."""
    if 8 % dtype.bits == 0:
        places = np.arange(0, 8, dtype.bits, dtype=np.uint8)
        return ((data[:, None] >> places) & ((1 << dtype.bits) - 1)).reshape(-1)[:elements]
    bits = np.unpackbits(data, count=elements * dtype.bits, bitorder="little")
    return np.packbits(bits.reshape(elements, dtype.bits), axis=1, bitorder="little")[:, 0]


def _type_name(tensor: TensorProto) -> str:
    known = tensor.data_type in TensorProto.DataType.values()
    return TensorProto.DataType.Name(tensor.data_type) if known else str(tensor.data_type)


def _inside(tensor: TensorProto, location: str, folder: Path | None) -> Path:
    """The data file's path, which must be a file inside the model's folder."""
    if folder is None:
        raise FrontendError(
            "onnx.external-data",
            f"tensor {tensor.name!r} lies in the file {location!r}, but the model has no folder",
            help="give the path of the model rather than its contents",
        )
    base = folder.resolve()
    outside = FrontendError(
        "onnx.external-path",
        f"tensor {tensor.name!r} refers to {location!r}, outside the model's folder",
        help="external data must lie in the folder of the model or below it",
    )
    parts = location.replace("\\", "/").split("/")
    if not location or "\0" in location or os.path.isabs(location) or ".." in parts:
        raise outside
    try:
        path = (base / location).resolve()  # follows symbolic links, which may lead elsewhere
    except (RuntimeError, OSError) as error:  # a link to itself, a name without end
        raise outside from error
    if not path.is_relative_to(base):
        raise outside
    if not path.is_file():
        raise FrontendError(
            "onnx.external-data",
            f"tensor {tensor.name!r} lies in the file {location!r}, which does not exist",
            help=f"put it next to the model, into {base}",
        )
    return path


def _number(tensor: TensorProto, entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key, str(default))
    if not text.isascii() or not text.isdigit():
        raise FrontendError(
            "onnx.external-range", f"tensor {tensor.name!r}: {key} {text!r} is not a byte count"
        )
    return int(text)


def _bad(tensor: TensorProto, why: str) -> FrontendError:
    return FrontendError(
        "onnx.tensor", f"tensor {tensor.name!r}: {why}", help="the model file is damaged"
    )
