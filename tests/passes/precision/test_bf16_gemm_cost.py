from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.passes.precision.bf16_gemm_cost import (
    ProductShape,
    is_profitable,
    unit_cycles,
    vector_cycles,
)
from tilewright.target.registry import CPUS

MACHINE = CPUS["sapphirerapids"]


@for_each(
    ("rows", "columns", "depth", "expected"),
    [
        (128, 256, 512, True),
        (49, 512, 4608, True),
        (12544, 64, 224, True),
        (128, 1, 256, False),
        (1, 512, 128, False),
        (4, 16, 16, False),
    ],
)
def test_what_fills_tiles_pays(rows: int, columns: int, depth: int, expected: bool) -> None:
    assert is_profitable(ProductShape(rows, columns, depth, False), MACHINE) == expected


def test_weights_from_memory_are_read_in_half_the_time() -> None:
    shape = ProductShape(1, 3072, 768, True)
    assert is_profitable(shape, MACHINE)
    assert unit_cycles(shape, MACHINE.costs) < 0.6 * vector_cycles(shape, MACHINE)


def test_tiles_are_computed_whole() -> None:
    part, whole = (
        unit_cycles(ProductShape(rows, 33, 40, False), MACHINE.costs) for rows in (33, 64)
    )
    assert part == pytest.approx(whole, rel=0.25)


def test_windows_are_packed() -> None:
    plain, packed = (
        unit_cycles(ProductShape(64, 64, 576, False, windows), MACHINE.costs)
        for windows in (False, True)
    )
    assert plain < packed
