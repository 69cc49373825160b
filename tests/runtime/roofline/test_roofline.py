from __future__ import annotations

import json

import pytest

from tilewright.runtime.roofline.roofline import (
    Bound,
    KernelWork,
    Level,
    Roofline,
)

LEVELS = (Level("L1", 1e4, 1e11), Level("L2", 1e6, 5e10), Level("memory", float("inf"), 1e10))
ROOFLINE = Roofline(2, {"f32": 1e11, "i8": 4e11}, LEVELS, 30.0)


def test_the_longer_of_arithmetic_and_memory_bounds() -> None:
    assert ROOFLINE.bound(KernelWork(1e9, 1e3), 0) == Bound(0.01, "compute")
    assert ROOFLINE.bound(KernelWork(1e9, 1e3, element="i8"), 0) == Bound(0.0025, "compute")
    assert ROOFLINE.bound(KernelWork(1e9, 1e3, element="bf16"), 0) == Bound(0.01, "compute")
    assert ROOFLINE.bound(KernelWork(1, 5e5), 0) == Bound(1e-5, "L2")


def test_weights_come_from_where_the_whole_model_fits() -> None:
    work = KernelWork(1, 5e3, weights=4e3)
    assert ROOFLINE.bound(work, footprint=9e3).by == "L1"
    far = ROOFLINE.bound(work, footprint=1e9)
    assert far.by == "memory"
    assert far.seconds == pytest.approx(4e3 / 1e10 + 1e3 / 1e11)


def test_levels() -> None:
    assert [ROOFLINE.level(size).name for size in (0, 1e4, 2e4, 1e12)] == [
        "L1",
        "L1",
        "L2",
        "memory",
    ]


def test_the_better_of_two_measurements() -> None:
    other = Roofline(
        2, {"f32": 2e11, "i8": 1e11}, (LEVELS[0], Level("L2", 1e6, 9e10), LEVELS[2]), 20
    )
    best = ROOFLINE.better(other)
    assert best.flops_per_second == {"f32": 2e11, "i8": 4e11}
    assert best.levels[1].bytes_per_second == 9e10
    assert best.clock_ns == 20
    assert ROOFLINE.better(None) is ROOFLINE


def test_data_is_json_and_comes_back() -> None:
    text = json.dumps(ROOFLINE.data(), allow_nan=False)
    assert Roofline.from_data(json.loads(text)) == ROOFLINE
