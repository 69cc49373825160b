"""Steps from one element type to another: casts and quantized values, also of few bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.random_values import (
    DTYPES,
    FLOATS,
    STORAGE_DTYPES,
    iinfo,
    is_float,
    numpy_dtype,
)
from tilewright.fuzz.templates.plain import any_axis

# Types that have a NaN, so that it is clear what it becomes.
WITH_NAN = (*FLOATS, "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
QUANTIZED = ("int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2", *WITH_NAN[4:])


def cast(d: PartialModel, x: str) -> list[str]:
    """Another element type; a float of 8 bits may saturate or not."""
    kinds = DTYPES if d.rng.random() < 0.7 else STORAGE_DTYPES
    to = d.rng.choice([kind for kind in kinds if _holds(numpy_dtype(kind), d.values[x])] or FLOATS)
    options = {"saturate": d.rng.randrange(2)} if to.startswith("float8") else {}
    number = helper.np_dtype_to_tensor_dtype(numpy_dtype(to))
    return d.attempt(d.node("Cast", [x], to=number, **options))


def _holds(dtype: np.dtype, array: np.ndarray) -> bool:
    """Whether a type has all values of floats, rounded; what becomes of others is no promise."""
    if not is_float(array.dtype) or dtype == np.bool_:
        return True
    wide = array.astype(np.float64)
    if is_float(dtype):
        signed = dtype.name != "float8_e8m0fnu" or bool((wide > 0).all())
        return signed and (dtype.name in WITH_NAN or bool(np.isfinite(wide).all()))
    info = iinfo(dtype)
    return bool(((wide > float(info.min) - 1) & (wide < float(info.max) + 1)).all())


def quantized(d: PartialModel, x: str) -> list[str]:
    """Quantized by one scale, one for each index of an axis or one for each block; and back."""
    array = d.values[x]
    if array.dtype not in (np.float32, np.float16) or not np.isfinite(array).all():
        return []
    dtype = numpy_dtype(d.rng.choice(QUANTIZED))
    axis, options = any_axis(d, x), dict[str, Any]()
    shape: tuple[int, ...] = ()
    if array.ndim and d.rng.random() < 0.6:
        shape, options = (array.shape[axis],), {"axis": axis}
    draw = np.random.default_rng(d.rng.getrandbits(32))
    scale = d.give(np.asarray(draw.uniform(0.01, 2, shape)).astype(array.dtype))
    zero = d.give(np.zeros(shape, dtype)) if is_float(dtype) else d.fresh(dtype, shape)
    first = d.node("QuantizeLinear", [x, scale, zero], **options)
    if d.rng.random() < 0.4:
        return d.attempt(first)
    back = d.node("DequantizeLinear", [first.output[0], scale, zero], **options)
    return d.attempt(first, back)
