from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.core.dtypes import dtype
from tilewright.runtime.binding import Port
from tilewright.tune.measure.check_outputs import wrong
from tilewright.tune.measure.job import TOLERANCE


def check(got: object, wanted: object, element: str = "f32") -> str:
    numpy = dtype(element).numpy
    port = Port("y", dtype(element), ())
    arrays = [np.asarray(array, float).astype(numpy) for array in (got, wanted)]
    return wrong([port], [arrays[0]], [arrays[1]], TOLERANCE)


def test_within_what_the_type_allows() -> None:
    assert check([1.0, 2.0], [1.0, 2.0]) == ""
    assert check([1.0, 2.001], [1.0, 2.0]) == ""
    assert check([1.0, 2.01], [1.0, 2.0]) == "y is off by 0.005, allowed is 0.001"
    assert check([1.0, 2.01], [1.0, 2.0], "f16") == ""
    assert check([1.0, 2.01], [1.0, 2.0], "bf16") == ""
    assert check([], []) == ""


@for_each("element", ["i64", "u8", "bool"])
def test_whole_numbers_are_exact(element: str) -> None:
    assert check([1, 0, 1], [1, 0, 1], element) == ""
    assert check([1, 0, 0], [1, 0, 1], element) != ""


def test_nan_and_infinities_are_values() -> None:
    special = [np.nan, np.inf, -np.inf, 1.0]
    assert check(special, special) == ""
    assert "off by inf" in check([1.0, np.inf, -np.inf, 1.0], special)
    assert "off by inf" in check([np.nan, np.inf, np.inf, 1.0], special)


def test_shapes() -> None:
    assert check([[1.0]], [1.0]) == "y has shape [1, 1], expected [1]"
    assert wrong([], [], [np.ones(1)], {}) == "0 outputs, 1 expected"
