"""The floats of 8 bits and fewer: how many bits each field has, and what has no number's code.

A code is sign, exponent, mantissa. The smallest exponent field holds zero and subnormal numbers, as
in IEEE formats. What the greatest one holds differs:

    ieee     infinity and NaN
    fn       numbers, and NaN where all bits of the magnitude are set
    fnuz     numbers; the code of the negative zero is the only NaN
    finite   numbers; there is no NaN

`f8e8m0` is no row here: it is an exponent alone, without sign and zero.
"""

from __future__ import annotations

from tilewright.core.dtypes import (
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    DType,
)
from tilewright.core.node import node

E8M0_BIAS = 127
E8M0_NAN = 0xFF


@node
class FloatFormat:
    """Widths of the fields, what is subtracted from the exponent field, which codes are special."""

    exponent: int
    mantissa: int
    bias: int
    special: str

    @property
    def sign(self) -> int:
        """The code of the negative zero: the sign bit."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def greatest(self) -> int:
        """The code of the greatest finite number."""
        top = self.sign - 1
        return {"ieee": top - (1 << self.mantissa), "fn": top - 1}.get(self.special, top)

    @property
    def infinity(self) -> int | None:
        """The code of infinity, if there is one."""
        return self.greatest + 1 if self.special == "ieee" else None

    @property
    def limit(self) -> float:
        """The greatest finite number."""
        field, fraction = divmod(self.greatest, 1 << self.mantissa)
        return (1 + fraction / (1 << self.mantissa)) * 2.0 ** (field - self.bias)


FORMATS: dict[DType, FloatFormat] = {
    F8E4M3FN: FloatFormat(4, 3, 7, "fn"),
    F8E4M3FNUZ: FloatFormat(4, 3, 8, "fnuz"),
    F8E5M2: FloatFormat(5, 2, 15, "ieee"),
    F8E5M2FNUZ: FloatFormat(5, 2, 16, "fnuz"),
    F6E2M3: FloatFormat(2, 3, 1, "finite"),
    F6E3M2: FloatFormat(3, 2, 3, "finite"),
    F4E2M1: FloatFormat(2, 1, 1, "finite"),
}


def limit(dtype: DType) -> float:
    """The greatest finite number of a float of 8 bits or fewer."""
    return 2.0**E8M0_BIAS if dtype == F8E8M0 else FORMATS[dtype].limit
