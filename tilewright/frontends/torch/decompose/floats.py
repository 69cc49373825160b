"""Floating-point numbers taken apart: their sign, exponent and mantissa, and their neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.frontends.torch.decompose.promotion import promoted

Pair = tuple[Tensor, Tensor]
# By size in bytes: the integer that has the same bits.
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
# Of the types that frexp computes in: bits of the mantissa and of the exponent.
_LAYOUT = {torch.float32: (23, 8), torch.float64: (52, 11)}


def _bits(x: Tensor) -> Tensor:
    return x.view(_BITS[x.element_size()])


def signbit(x: Tensor) -> Tensor:
    """Whether the sign is set, also of -0 and of NaN."""
    if x.dtype == torch.bool:
        return torch.zeros_like(x)
    return _bits(x) < 0 if x.is_floating_point() else x < 0


def copysign(x: Tensor, other: Any) -> Tensor:
    """The magnitude of one, the sign of the other."""
    magnitude, sign = promoted(x, other, to_float=True)
    magnitude = magnitude.abs()
    return torch.where(signbit(sign), -magnitude, magnitude)


def frexp(x: Tensor) -> Pair:
    """Mantissas from 0.5 to 1 and the powers of two that they are multiplied by."""
    if x.dtype not in _LAYOUT:
        mantissa, exponent = frexp(x.to(torch.float32))
        return mantissa.to(x.dtype), exponent
    mantissa_bits, exponent_bits = _LAYOUT[x.dtype]
    mask, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 2
    is_tiny = x.abs() < torch.finfo(x.dtype).tiny
    bits = _bits(torch.where(is_tiny, x * 2.0**mantissa_bits, x))
    field = (bits >> mantissa_bits) & mask
    exponent = field - bias - torch.where(is_tiny, mantissa_bits, 0)
    mantissa = ((bits & ~(mask << mantissa_bits)) | (bias << mantissa_bits)).view(x.dtype)
    plain = (x != 0) & (field != mask)
    return torch.where(plain, mantissa, x), torch.where(plain, exponent, 0).to(torch.int32)


def ldexp(x: Tensor, other: Tensor) -> Tensor:
    """Multiplied by a power of two."""
    return torch.mul(x, torch.pow(2.0, other))


def nextafter(x: Tensor, other: Tensor) -> Tensor:
    """The next number of the type on the way to another one."""
    x, other = promoted(x, other)
    bits = _bits(x)
    away = (other > x) == (x > 0)
    step = torch.where(away, 1, -1).to(bits.dtype)
    least = copysign(torch.ones_like(bits).view(x.dtype), other)
    found = torch.where(x == 0, least, (bits + step).view(x.dtype))
    found = torch.where(x == other, other, found)
    return torch.where(x.isnan() | other.isnan(), float("nan"), found)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.signbit.default": signbit,
    "aten.copysign.Tensor": copysign,
    "aten.copysign.Scalar": copysign,
    "aten.frexp.Tensor": frexp,
    "aten.ldexp.Tensor": ldexp,
    "aten.nextafter.default": nextafter,
}
