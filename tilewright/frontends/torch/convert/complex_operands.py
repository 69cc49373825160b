"""Operands and results of complex operators, as the rules of these see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.core.dtypes import DType
from tilewright.frontends.torch.complex_math import Complex, Real
from tilewright.frontends.torch.complex_value import ComplexValue, real_dtype
from tilewright.frontends.torch.context import AtenCall, TorchContext, ValueName
from tilewright.frontends.torch.convert.shape import expanded

# As a `Converter`; a result may be a `ComplexValue`, or several of them.
ComplexConverter = Callable[[TorchContext, AtenCall], Any]


def as_complex(c: TorchContext, n: AtenCall, value: Any, dtype: DType) -> Complex:
    """An operand as a complex number, whose parts have a type."""
    pair = value if isinstance(value, ComplexValue) else None
    if pair is None and isinstance(value, complex):
        pair = ComplexValue(c.constant(value.real, dtype), c.constant(value.imag, dtype))
    if pair is None:
        pair = ComplexValue(c.operand(n, value, dtype), c.constant(0, dtype))
    return Complex(*(Real(c.g, c.g.cast(x, dtype)) for x in (pair.re, pair.im)))


def as_value(z: Complex) -> ComplexValue:
    """A result, both of whose parts have its shape."""
    return ComplexValue(ValueName(z.re.name), ValueName(z.im.name))


def as_whole_value(c: TorchContext, n: AtenCall, z: Complex) -> ComplexValue:
    """A result whose parts have the shape of the whole: a part may be one number."""
    shape = n.type.shape
    both = (expanded(c, n, x.name, shape) for x in (z.re, z.im))
    return ComplexValue(*both)


def complex_operands(c: TorchContext, n: AtenCall, *names: str) -> list[Complex]:
    """Operands in the type of the result."""
    return [as_complex(c, n, n[name], real_dtype(n.dtype)) for name in names]


def times_alpha(c: TorchContext, n: AtenCall, z: Complex) -> Complex:
    """Times the argument `alpha`, where there is one."""
    alpha = n.get("alpha", 1)
    return z if alpha == 1 else z * as_complex(c, n, alpha, real_dtype(n.dtype))
