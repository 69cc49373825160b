"""Powers of integers, which wrap around as products of integers do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from tilewright.core.dtypes import BOOL, U8
from tilewright.frontends.torch.context import AtenCall, TorchContext, ValueName
from tilewright.frontends.torch.convert.shape import expanded


def whole_power(c: TorchContext, n: AtenCall, base: str, exponent: ValueName | int) -> str:
    """The product of those of `base`, its square, the square of that, ... that the bits choose."""
    if isinstance(exponent, ValueName):
        return _of_tensors(c, n, base, exponent)
    pairs = zip(_bits(exponent), _squares(c, n, base), strict=False)
    chosen = [square for bit, square in pairs if bit]
    if not chosen:
        return expanded(c, n, c.constant(1, n.dtype), c.type(base).shape)
    return _product(c, n, chosen)


def _of_tensors(c: TorchContext, n: AtenCall, base: str, exponent: ValueName) -> str:
    kind = c.type(exponent).dtype
    if kind == BOOL:
        return _of_tensors(c, n, base, ValueName(c.cast(n, exponent, U8)))
    zero, one = c.constant(0, kind), c.constant(1, n.dtype)
    is_signed = kind.kind == "int"
    chosen = []
    for place, square in zip(range(kind.bits - is_signed), _squares(c, n, base), strict=False):
        bit = c.add(n, "bitwise_and", exponent, c.constant(1 << place, kind))
        chosen.append(c.add(n, "where", c.add(n, "equal", bit, zero), one, square))
    found = _product(c, n, chosen)
    if not is_signed:
        return found
    # 1 / base ** -exponent, cut off: 0 but of 1 and -1, for which the lower bits of a negative
    # exponent choose as those of a positive one do
    is_unit = c.add(n, "equal", c.add(n, "abs", base), one)
    kept = c.add(n, "or", is_unit, c.add(n, "not", c.add(n, "less", exponent, zero)))
    return c.add(n, "where", kept, found, c.constant(0, n.dtype))


def _squares(c: TorchContext, n: AtenCall, base: str) -> Iterator[str]:
    """The base, and each time the square of the last."""
    while True:
        yield base
        base = c.add(n, "mul", base, base)


def _bits(number: int) -> Iterator[bool]:
    """From the lowest to the highest that is set."""
    return (digit == "1" for digit in reversed(f"{number:b}"))


def _product(c: TorchContext, n: AtenCall, factors: list[str]) -> str:
    return reduce(lambda a, b: c.add(n, "mul", a, b), factors)
