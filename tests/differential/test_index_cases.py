from __future__ import annotations

import pytest

from tests.differential.index_cases import fault_of, random_cases


def test_an_index_outside_its_tensor_is_refused() -> None:
    faults = [fault_of(case) for case in random_cases(seed=3, count=25)]
    assert not any(faults), faults


def test_lanes_past_the_end_are_not_checked() -> None:
    *_, pairs_of_one_element = random_cases(seed=0, count=99)
    assert pairs_of_one_element.good["i"].shape == (40, 2)
    assert not fault_of(pairs_of_one_element)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_every_index_outside_its_tensor_is_refused(seed: int) -> None:
    faults = [fault_of(case) for case in random_cases(seed, count=100)]
    assert not any(faults), faults


@pytest.mark.gpu
def test_an_index_outside_its_tensor_is_refused_on_a_gpu() -> None:
    faults = [fault_of(case, "cuda") for case in random_cases(seed=4, count=25)]
    assert not any(faults), faults
