from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright.fuzz.check import check_case
from tilewright.fuzz.draft import Draft
from tilewright.fuzz.step_table import Step
from tilewright.fuzz.steps_late import boxes, positions, unique


@pytest.mark.parametrize("step", [boxes, positions, unique])
def test_sizes_from_values(step: Step) -> None:
    for seed in range(2):
        d = Draft(random.Random(seed), {"": 22}, lambda case: None)
        x = d.fresh(np.dtype(np.float32), (2, 3, 5))
        if step(d, x):
            assert check_case(d.case()).kind == "right"
