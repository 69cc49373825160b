"""Sparse tensors to dense ones: values at their indices, zeros elsewhere."""

from __future__ import annotations

import math

import numpy as np
from onnx import SparseTensorProto

from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.frontends.onnx.model.tensors import TensorReader

# A few bytes of a model can claim any shape; what is made of them must fit into memory.
MAX_ELEMENTS = 2**28


def dense(sparse: SparseTensorProto, reader: TensorReader) -> np.ndarray:
    """All elements of a sparse tensor."""
    name, shape = sparse.values.name, tuple(sparse.dims)
    elements = math.prod(shape)
    if min(shape, default=0) < 0:
        raise _bad(name, f"its shape is {list(shape)}")
    if elements > MAX_ELEMENTS:
        raise UnsupportedError(
            "onnx.sparse",
            f"sparse tensor {name!r} has {elements} elements",
            help=f"at most {MAX_ELEMENTS} are supported",
        )
    values, indices = reader.array(sparse.values), reader.array(sparse.indices)
    array = np.full(elements, "" if values.dtype.kind == "O" else 0, values.dtype)
    array[_places(name, indices, shape, values.size)] = values.reshape(-1)
    return array.reshape(shape)


def _places(name: str, indices: np.ndarray, shape: tuple[int, ...], count: int) -> np.ndarray:
    """Where values stand, counted through the whole tensor."""
    if indices.dtype.kind not in "iu" or len(indices) != count:
        raise _bad(name, f"{indices.dtype} of shape {list(indices.shape)} are no indices")
    if indices.ndim == 1:
        limits: tuple[int, ...] = (math.prod(shape),)
        rows = indices.reshape(-1, 1)
    else:
        limits, rows = shape, indices.reshape(count, -1)
    if rows.shape[1] != len(limits) or (rows < 0).any() or (rows >= np.array(limits)).any():
        raise _bad(name, f"its indices do not fit into {list(shape)}")
    if indices.ndim == 1:
        return indices
    return np.ravel_multi_index(tuple(rows.T), shape) if shape else np.zeros(count, np.int64)


def _bad(name: str, why: str) -> FrontendError:
    return FrontendError(
        "onnx.tensor", f"sparse tensor {name!r}: {why}", help="the model file is damaged"
    )
