from __future__ import annotations

import ml_dtypes
import numpy as np

from tilewright.driver.bisect.tolerance import is_finite, tolerance


def test_narrow_types_may_differ_more_unless_the_user_says() -> None:
    wanted = np.ones(3, np.float16)
    got = wanted * np.float16(1.005)
    assert tolerance(None, "f32").excess(got, wanted) == 0
    assert tolerance(1e-3, "f32").excess(got, wanted) > 1e-3
    assert tolerance(None, "f32").excess(got.astype("f4"), wanted.astype("f4")) > 1e-3
    assert tolerance(None, "bf16").excess(got.astype("f4"), wanted.astype("f4")) == 0


def test_finite() -> None:
    assert is_finite(np.array([1, 2]))
    assert is_finite(np.array([True]))
    assert not is_finite(np.array([1.0, np.inf]))
    assert not is_finite(np.array([1.0, np.nan], ml_dtypes.bfloat16))
