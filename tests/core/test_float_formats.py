from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.for_each import for_each
from tilewright.core.dtypes import F4E2M1, F8E4M3FN, F8E5M2, F8E8M0, SMALL_FLOATS, DType
from tilewright.core.float_formats import FORMATS, limit


@for_each("dtype", SMALL_FLOATS, ids=str)
def test_the_greatest_number_is_that_of_the_array_type(dtype: DType) -> None:
    assert limit(dtype) == float(ml_dtypes.finfo(dtype.numpy).max)


@for_each("dtype", FORMATS, ids=str)
def test_codes(dtype: DType) -> None:
    form = FORMATS[dtype]
    assert form.exponent + form.mantissa + 1 == dtype.bits
    codes = np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy).astype("f4")
    assert codes[form.greatest] == form.limit
    assert codes[1 << form.mantissa] == 2.0 ** (1 - form.bias)  # the least normal number
    assert codes[: form.greatest + 1].tolist() == sorted(codes[: form.greatest + 1])


def test_infinity() -> None:
    assert FORMATS[F8E5M2].infinity == 0x7C
    assert FORMATS[F8E4M3FN].infinity is None
    assert FORMATS[F4E2M1].infinity is None
    assert F8E8M0 not in FORMATS
