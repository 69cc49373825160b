"""Operators computed in f32 where elements are 16-bit floats, so that results are rounded once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.core.dtypes import F32, DType
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext, ValueName
from tilewright.ir.types import TensorType


def widened(convert: Converter) -> Converter:
    """A converter of operators with one result, as it does f32 for types that are narrower."""

    def wide(c: TorchContext, n: AtenCall) -> Result:
        if not is_narrow(n.dtype):
            return convert(c, n)
        args = {name: _argument(c, n, value) for name, value in n.args.items()}
        found = convert(c, replace(n, args=args, results=(TensorType(F32, n.type.shape),)))
        assert isinstance(found, str), n.op
        return c.cast(n, found, n.dtype)

    return wide


def _argument(c: TorchContext, n: AtenCall, value: Any) -> Any:
    if isinstance(value, ValueName) and is_narrow(c.type(value).dtype):
        return ValueName(c.cast(n, value, F32))
    return value


def is_narrow(dtype: DType) -> bool:
    """Whether it is a float of 16 bits or fewer."""
    return dtype.is_float and dtype.bits < F32.bits
