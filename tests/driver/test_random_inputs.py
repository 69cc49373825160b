from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.core.dtypes import DTYPES, STRING
from tilewright.driver.random_inputs import TEXTS, random_array


@for_each("dtype", DTYPES.values(), ids=str)
def test_every_type_can_be_drawn(dtype: object) -> None:
    one, same = (random_array(dtype, (3, 4), np.random.default_rng(5)) for _ in range(2))  # type: ignore[arg-type]
    np.testing.assert_array_equal(one, same)
    assert one.shape == (3, 4)
    if dtype == STRING:
        assert {*one.flat} <= {*TEXTS}
    else:
        assert one.dtype == dtype.numpy  # type: ignore[attr-defined]
