from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright.fuzz.check import check_case
from tilewright.fuzz.draft import Draft
from tilewright.fuzz.steps import STEPS, Step, fitted


@pytest.mark.parametrize("step", sorted(set(STEPS), key=lambda s: s.__name__))
def test_every_step_succeeds_now_and_then(step: Step) -> None:
    made = 0
    for seed in range(12):
        d = Draft(random.Random(seed), {"": 22}, lambda case: None)
        x = d.fresh(np.dtype(np.float32), (2, 3, 4, 5)[: 4 if seed % 2 else 3])
        if step(d, x):
            made += 1
    # operators come and go with opset versions: what counts is that the step gets anywhere
    assert made >= 2


@pytest.mark.parametrize("shape", [(7,), (2, 3), ()])
def test_values_are_made_to_fit(shape: tuple[int, ...]) -> None:
    d = Draft(random.Random(0), {"": 21}, lambda case: None)
    x = d.give(np.arange(6, dtype=np.float32).reshape(3, 2), constant=False)
    y = fitted(d, x, shape)
    assert d.values[y].shape == shape
    assert d.values[y].ravel().tolist() == [i % 6 for i in range(int(np.prod(shape)))]
    assert check_case(d.case()).kind == "right"
