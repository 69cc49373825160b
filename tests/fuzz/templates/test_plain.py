from __future__ import annotations

import random

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.fuzz.differential_check import check_case
from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.templates.plain import MAX_INSERTED, any_axis, fitted, some_axes, top


@for_each("shape", [(7,), (2, 3), ()])
def test_values_are_made_to_fit(shape: tuple[int, ...]) -> None:
    d = PartialModel(random.Random(0), {"": 21}, lambda case: None)
    x = d.give(np.arange(6, dtype=np.float32).reshape(3, 2), constant=False)
    y = fitted(d, x, shape)
    assert d.values[y].shape == shape
    assert d.values[y].ravel().tolist() == [i % 6 for i in range(int(np.prod(shape)))]
    assert check_case(d.case()).kind == "right"


def test_axes_are_those_of_the_value() -> None:
    d = PartialModel(random.Random(0), {"": 21}, lambda case: None)
    x, y = d.fresh(np.dtype(np.float32), (2, 3, 4)), d.fresh(np.dtype(np.float32), ())
    for _ in range(20):
        assert 0 <= any_axis(d, x) < 3
        assert {0, 1, 2} >= set(some_axes(d, x)) != set()
    assert any_axis(d, y) == 0
    assert some_axes(d, y) == []


@pytest.mark.slow
def test_the_interpreter_does_not_sort_thousands() -> None:
    d = PartialModel(random.Random(0), {"": 21}, lambda case: None)
    x = d.give(np.arange(10_000, dtype=np.float32), constant=False)
    for _ in range(3):
        values, _ = top(d, x)
        assert d.values[values].size * 10_000 <= MAX_INSERTED
