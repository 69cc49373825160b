from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright.fuzz.differential_check import check_case
from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.templates.data_dependent import boxes, positions, unique
from tilewright.fuzz.templates.table import Step


@pytest.mark.parametrize("step", [boxes, positions, unique])
def test_sizes_from_values(step: Step) -> None:
    for seed in range(2):
        d = PartialModel(random.Random(seed), {"": 22}, lambda case: None)
        x = d.fresh(np.dtype(np.float32), (2, 3, 5))
        if step(d, x):
            assert not check_case(d.case()).is_finding
