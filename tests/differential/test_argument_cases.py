from __future__ import annotations

import pytest

from tests.differential.argument_cases import DRAWS, KINDS, fault_of, random_cases


def test_impossible_arguments_are_refused_and_odd_ones_understood() -> None:
    faults = [(case, fault_of(case)) for case in random_cases(5, len(DRAWS) * len(KINDS))]
    assert not [pair for pair in faults if pair[1]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_arguments_are_treated_as_onnxruntime_does(seed: int) -> None:
    faults = [(case, fault_of(case)) for case in random_cases(seed, 5 * len(DRAWS) * len(KINDS))]
    assert not [pair for pair in faults if pair[1]]
