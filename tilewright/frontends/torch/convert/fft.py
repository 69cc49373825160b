"""Discrete Fourier transforms, by the operator `dft` on one axis after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arith.expr import as_expr, as_int, const
from tilewright.frontends.torch.complex_value import ComplexValue, interleaved, parts
from tilewright.frontends.torch.context import AtenCall, TorchContext, ValueName, axis_of
from tilewright.frontends.torch.convert.complex_operands import ComplexConverter
from tilewright.ops.linalg.dft import DftAttrs

# How torch numbers what a transform of n numbers is divided by: nothing, the root of n, or n.
_EXPONENTS = {0: 0.0, 1: 0.5, 2: 1.0}


def _axes(c: TorchContext, n: AtenCall) -> list[int]:
    rank = c.type(_real_part(n["self"])).rank
    return [axis_of(a, rank) for a in n["dim"]]


def _real_part(value: Any) -> str:
    return value.re if isinstance(value, ComplexValue) else value


def _length(c: TorchContext, n: AtenCall, pairs: str, axis: int) -> int:
    found = as_int(c.type(pairs).shape[axis])
    if found is None:
        raise n.unsupported("a transform of symbolic length", "lengths must be numbers")
    return found


def _transformed(
    c: TorchContext, n: AtenCall, pairs: str, axes: Sequence[int], inverse: bool
) -> tuple[str, int]:
    """Complex numbers along axes, and how many numbers `dft` has divided by."""
    scaled = 1
    for axis in axes:
        length = _length(c, n, pairs, axis)
        pairs = c.add(n, "dft", pairs, attrs=DftAttrs(axis, length, inverse))
        scaled *= length if inverse else 1
    return pairs, scaled


def _scaled(c: TorchContext, n: AtenCall, x: str, count: int, divided_by: int) -> str:
    """Divided as the call wants it, where `dft` has divided by a number already."""
    factor = divided_by / count ** _EXPONENTS[n["normalization"]] if count else 1.0
    return x if factor == 1 else c.add(n, "mul", x, c.constant(factor, c.type(x).dtype))


def _count(c: TorchContext, n: AtenCall, pairs: str, axes: Sequence[int]) -> int:
    count = 1
    for axis in axes:
        count *= _length(c, n, pairs, axis)
    return count


def of_real(c: TorchContext, n: AtenCall) -> Any:
    """Of real numbers; of the last axis half of the result is left out where that is asked for."""
    x, axes = n["self"], _axes(c, n)
    pairs = c.reshape(n, x, (*c.type(x).shape, const(1)))
    count = _count(c, n, pairs, axes)
    *others, last = axes
    length = _length(c, n, pairs, last)
    y = c.add(n, "dft", pairs, attrs=DftAttrs(last, length, onesided=n["onesided"]))
    y, _ = _transformed(c, n, y, others, inverse=False)
    return parts(c.g, _scaled(c, n, y, count, 1))


def to_real(c: TorchContext, n: AtenCall) -> Any:
    """Back to real numbers from half of a symmetric spectrum."""
    pairs, axes = interleaved(c.g, n["self"]), _axes(c, n)
    *others, last = axes
    length = as_int(as_expr(n["last_dim_size"]))
    if length is None:
        raise n.unsupported("a transform of symbolic length", "lengths must be numbers")
    count = _count(c, n, pairs, others) * length
    y, scaled = _transformed(c, n, pairs, others, inverse=True)
    y = c.add(n, "dft", y, attrs=DftAttrs(last, length, inverse=True, onesided=True))
    y = c.reshape(n, y, c.type(y).shape[:-1])
    return ValueName(_scaled(c, n, y, count, scaled * length))


def of_complex(c: TorchContext, n: AtenCall) -> Any:
    """Of complex numbers, forward or backward."""
    pairs, axes = interleaved(c.g, n["self"]), _axes(c, n)
    y, scaled = _transformed(c, n, pairs, axes, not n["forward"])
    return parts(c.g, _scaled(c, n, y, _count(c, n, pairs, axes), scaled))


COMPLEX_CONVERTERS: dict[str, ComplexConverter] = {
    "aten._fft_r2c": of_real,
    "aten._fft_c2r": to_real,
    "aten._fft_c2c": of_complex,
}
