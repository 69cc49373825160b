"""What the Python code of the interpreter calls: integer operators, conversions, lanes, errors."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from tilewright.core.dtypes import BOOL, F32, F64, DType
from tilewright.core.errors import ExecutionError, index_outside
from tilewright.ir.scalar_semantics import FUNCTIONS, Array, bitcast_value, call_value, cast_value

__all__ = ["bitcast_value", "call_value", "cast_value"]

_EXACT_IN_F64 = 1 << 53


def div(a: int, b: int) -> int:
    """The quotient rounded toward zero; 0 for division by zero."""
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def rem(a: int, b: int) -> int:
    """The remainder of `div`."""
    return a - b * div(a, b) if b else 0


def floordiv(a: int, b: int) -> int:
    """The quotient rounded toward minus infinity; 0 for division by zero."""
    return a // b if b else 0


def mod(a: int, b: int) -> int:
    """The remainder of `floordiv`."""
    return a % b if b else 0


def shl(a: int, b: int, bits: int) -> int:
    """`a` shifted left, not yet wrapped."""
    return a << b if 0 <= b < bits else 0


def shr(a: int, b: int, bits: int) -> int:
    """`a` shifted right; the sign fills."""
    return a >> (b if 0 <= b < bits else bits)


def float_to_int(a: Any, dtype: DType) -> int:
    """Truncated and saturated; NaN is 0."""
    value = float(a)
    if math.isnan(value):
        return 0
    signed = dtype.kind == "int"
    low, high = -(1 << (dtype.bits - 1)) if signed else 0, (1 << (dtype.bits - signed)) - 1
    return min(max(int(value), low), high) if math.isfinite(value) else (low, high)[value > 0]


def to_float(a: int, kind: Any) -> Any:
    """An integer as a float, rounded once."""
    if -_EXACT_IN_F64 <= a <= _EXACT_IN_F64:
        return kind(a)
    return np.array(a).astype(kind)[()]


def _plain(value: Any, dtype: DType) -> Any:
    """A NumPy scalar as the interpreter holds it."""
    if dtype == BOOL:
        return bool(value)
    return int(value) if dtype.is_integer else np.asarray(value)[()]


def bitcast(a: Any, source: DType, dtype: DType) -> Any:
    """The bits of a scalar read as another type."""
    return _plain(bitcast_value(np.array(a, source.numpy), dtype), dtype)


def _fma(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` of f32: in f64 the product is exact, and mostly the sum, too."""
    product, addend = float(a) * float(b), float(c)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    return np.float32(total) if error == 0 else _plain(call_value("fma", F32, a, b, c), F32)


def call(fn: str, dtype: DType, source: DType, *args: Any) -> Any:
    """A function of scalars."""
    if fn == "isnan":
        return bool(args[0] != args[0])
    if fn == "fma" and dtype is F32:
        return _fma(*args)
    if fn in FUNCTIONS and (dtype is F32 or dtype is F64):
        return dtype.numpy.type(FUNCTIONS[fn](*map(np.float64, args)))
    return _plain(call_value(fn, dtype, *(source.numpy.type(a) for a in args)), dtype)


def out_of_bounds(buffer: str, array: Array, indices: tuple[int, ...], site: str) -> NoReturn:
    """Report an access outside a buffer."""
    place = f"{buffer}[{', '.join(str(int(i)) for i in indices)}]"
    raise ExecutionError(
        "interp.out-of-bounds",
        f"{place} is outside {buffer!r} of shape {list(array.shape)}",
        notes=(f"in {site}",),
    )


def checked_index(index: Any, low: Any, size: Any, *masks: Any) -> Any:
    """An index, or where all masks hold and it lies outside its dimension an error."""
    outside = (np.asarray(index) < low) | (np.asarray(index) >= size)
    for mask in masks:
        outside = outside & mask
    if outside.any():
        wrong = np.broadcast_to(index, outside.shape)[outside].flat[0]
        raise index_outside(int(wrong), int(np.max(size)))
    return index


def outside_domain(block: str, iterator: str, value: int, extent: int) -> NoReturn:
    """Report a block instance outside the block's domain."""
    raise ExecutionError(
        "interp.domain",
        f'block "{block}" runs with {iterator} = {value}, its domain is 0 to {extent - 1}',
        help="a predicate must keep such instances from running",
    )


def _all_inside(array: Array, indices: tuple[Any, ...]) -> bool:
    """Whether the indices of all lanes are in bounds; at least one of them is a vector."""
    vectors = 0
    for i, size in zip(indices, array.shape, strict=True):
        if isinstance(i, np.ndarray):
            vectors += 1
            if np.minimum.reduce(i) < 0 or np.maximum.reduce(i) >= size:
                return False
        elif not 0 <= i < size:
            return False
    return vectors > 0


def _each_lane(value: Any, lanes: int) -> Array:
    """A vector, or a scalar in each lane."""
    return value if isinstance(value, np.ndarray) and value.ndim else np.full(lanes, value)


def _lanes(
    buffer: str, array: Array, indices: tuple[Any, ...], mask: Any, lanes: int, site: str
) -> tuple[Array, tuple[Array, ...]]:
    """The mask of all lanes, and the indices of those where it is true, checked."""
    active = _each_lane(mask, lanes)
    places = tuple(_each_lane(i, lanes)[active] for i in indices)
    for place, size in zip(places, array.shape, strict=True):
        wrong = (place < 0) | (place >= size)
        if wrong.any():
            lane = int(np.argmax(wrong))
            out_of_bounds(buffer, array, tuple(int(p[lane]) for p in places), site)
    return active, places


def active_lanes(indices: tuple[Any, ...], mask: Any, lanes: int) -> tuple[Array, ...]:
    """The indices of the lanes where a mask is true."""
    active = _each_lane(mask, lanes)
    return tuple(_each_lane(i, lanes)[active] for i in indices)


def load_lanes(
    buffer: str, array: Array, indices: tuple[Any, ...], mask: Any, lanes: int, site: str
) -> Array:
    """A vector load: zero in the lanes where the mask is false."""
    if mask is True and _all_inside(array, indices):  # by far most loads
        found: Array = array[indices]
        return found
    active, places = _lanes(buffer, array, indices, mask, lanes, site)
    result = np.zeros(lanes, array.dtype)
    result[active] = array[places]
    return result


def store_lanes(
    buffer: str,
    array: Array,
    indices: tuple[Any, ...],
    value: Any,
    mask: Any,
    lanes: int,
    site: str,
) -> None:
    """A vector store to the lanes where the mask is true, in the order of the lanes."""
    if mask is True and _all_inside(array, indices):
        array[indices] = value
        return
    active, places = _lanes(buffer, array, indices, mask, lanes, site)
    array[places] = _each_lane(value, lanes)[active]
