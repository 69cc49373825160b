from __future__ import annotations

import random

import numpy as np

from tests.for_each import for_each
from tilewright.fuzz.random_values import (
    DTYPES,
    is_float,
    numpy_dtype,
    random_array,
    random_shape,
    special_values,
)


@for_each("name", [*DTYPES, "float8_e4m3fn", "complex64"])
def test_arrays_have_the_type_and_shape_and_come_again(name: str) -> None:
    dtype = numpy_dtype(name)
    for seed in range(20):
        one, other = (random_array(random.Random(seed), (3, 4), dtype) for _ in range(2))
        assert one.dtype == dtype
        assert one.shape == (3, 4)
        assert one.tobytes() == other.tobytes()


def test_shapes_have_zeros_now_and_then() -> None:
    rng = random.Random(0)
    shapes = [random_shape(rng) for _ in range(300)]
    assert any(0 in shape for shape in shapes)
    assert {len(shape) for shape in shapes} == {0, 1, 2, 3, 4, 5}


def test_special_values_are_special() -> None:
    found = special_values(np.dtype(np.float32))
    assert np.isnan(found).any()
    assert np.isinf(found).any()
    assert np.isfinite(found[np.isfinite(found)].astype(np.float32) ** 2).all()
    assert is_float(numpy_dtype("bfloat16"))
