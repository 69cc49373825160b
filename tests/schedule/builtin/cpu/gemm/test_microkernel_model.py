from __future__ import annotations

from itertools import product

import pytest

from tests.for_each import for_each
from tests.schedule.programs import matmul
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel, MicrokernelProblem
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import (
    choose_tile,
    divisors,
    has_set_conflicts,
    nearest_divisor,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget
from tilewright.target.registry import CPUS


def _tile(problem: MicrokernelProblem, target: CpuTarget) -> Microkernel:
    return choose_tile(Schedule(matmul()), "y", problem, target)


@pytest.mark.parametrize("name", CPUS)
def test_the_tile_fits_the_registers(name: str) -> None:
    target = CPUS[name]
    for rows, columns, steps in product((1, 3, 64), (1, 7, 64, 1000), (0, 1, 512)):
        for bits, shared, period in product((16, 32, 64), (True, False), (0, 14)):
            problem = MicrokernelProblem(rows, columns, steps, bits, shared, period)
            tile = _tile(problem, target)
            assert tile.lanes == target.lanes(bits)
            assert tile.nr % tile.lanes == 0
            assert 1 <= tile.mr <= rows
            assert tile.mr * tile.nr // tile.lanes < target.vector_registers


def test_large_products_keep_the_units_busy() -> None:
    tile = _tile(MicrokernelProblem(1024, 1024, 1024, 32, True), CPUS["x86-64-v4"])
    assert tile.mr * tile.nr // tile.lanes >= 16


@for_each(("name", "sums"), [("x86-64-v3", 12), ("x86-64-v4", 24)])
def test_few_registers_are_left_over(name: str, sums: int) -> None:
    for rows in (96, 196, 1024):
        tile = _tile(MicrokernelProblem(rows, 768, 768, 32, True), CPUS[name])
        assert tile.mr * tile.nr // tile.lanes >= sums


@for_each("rows", [49, 196, 197, 784])
def test_few_rows_are_computed_for_nothing(rows: int) -> None:
    """The pixels of small images, and those and one more, on a machine with many registers."""
    tile = _tile(MicrokernelProblem(rows, 768, 768, 32, True), CPUS["x86-64-v4"])
    assert -rows % tile.mr <= 0.03 * rows


@for_each("rows", [49, 196, 197])
def test_sums_that_take_turns_have_a_vector_each(rows: int) -> None:
    """With every register taken, LLVM keeps scalars on the stack."""
    target = CPUS["neoverse-v1"]
    tile = _tile(
        MicrokernelProblem(rows, 512, 512, 16, True, lane_fma=True, accumulators=2), target
    )
    vectors = tile.nr // tile.lanes
    held = 2 * tile.mr * vectors + tile.mr + max(2, vectors)
    assert held < target.vector_registers


def test_few_registers_hold_scalars_of_16_bits() -> None:
    single = MicrokernelProblem(12544, 64, 147, 16, True, row_period=112)
    for name, left in (("neoverse-v1", 3), ("sapphirerapids", 2)):
        tile = _tile(single, CPUS[name])
        vectors = tile.nr // tile.lanes
        assert tile.mr * vectors + vectors + left <= CPUS[name].vector_registers


def test_columns_that_need_no_padding_get_none() -> None:
    for columns in (16, 24, 40):
        tile = _tile(MicrokernelProblem(50, columns, 9, 32, False), CPUS["x86-64-v3"])
        assert columns % tile.nr == 0


@for_each("name", CPUS)
def test_rows_of_unknown_number(name: str) -> None:
    """A tile that is good at many numbers of rows, with few copies of the code."""
    target = CPUS[name]
    lane_fma = target.has_lane_fma
    problem = MicrokernelProblem(64, 768, 768, 32, True, lane_fma=lane_fma, dynamic_m=True)
    tile = _tile(problem, target)
    vectors = tile.nr // tile.lanes
    assert 4 <= tile.mr <= 12
    assert vectors >= 2
    assert tile.mr * vectors + vectors < target.vector_registers


@for_each(
    ("name", "stride", "rows"),
    [
        ("x86-64-v4", 4096, 8),  # 8 ways of 4096 bytes
        ("x86-64-v4", 2048, 15),
        ("x86-64-v4", 3 * 4096, 8),
        ("sapphirerapids", 4096, 12),
        ("neoverse-v1", 16384, 4),  # 4 ways of 16384
        ("neoverse-v1", 4096, 13),
    ],
)
def test_rows_that_share_sets_of_the_first_cache(name: str, stride: int, rows: int) -> None:
    assert has_set_conflicts(rows, stride, CPUS[name])
    assert not has_set_conflicts(rows - 1, stride, CPUS[name])


def test_rows_that_would_push_each_other_out_are_few() -> None:
    target = CPUS["x86-64-v4"]
    assert _tile(MicrokernelProblem(196, 512, 1024, 32, True, row_bytes=768 * 4), target).mr == 14
    for rows, columns, steps in ((196, 512, 1024), (128, 768, 3072), (784, 1024, 512)):
        tile = _tile(MicrokernelProblem(rows, columns, steps, 32, True, row_bytes=4096), target)
        assert not has_set_conflicts(tile.mr, 4096, target)
        assert tile.mr * tile.nr // tile.lanes >= 20
    assert not has_set_conflicts(16, 0, target)


@for_each(("number", "wanted", "found"), [(12, 5, 6), (7, 3, 7), (1 << 40, 48, 64)])
def test_nearest_divisor(number: int, wanted: int, found: int) -> None:
    assert nearest_divisor(number, wanted) == found


def test_other_tiles_can_be_decided_for() -> None:
    problem, target = MicrokernelProblem(64, 64, 64, 32, True), CPUS["aarch64"]
    asked: dict[str, tuple[int, ...]] = {}

    def decide(name: str, default: int, options: tuple[int, ...]) -> int:
        asked[name] = options
        return options[1]

    tile = choose_tile(Schedule(matmul(), decide=decide), "y", problem, target)
    assert (tile.mr, tile.nr) == (2, 2 * 4)
    assert asked["y.nr_vectors"] == (1, 2, 3, 4, 5, 6, 7, 8)
    assert max(asked["y.mr"]) * 2 + 2 + 2 <= target.vector_registers


def test_divisors_come_in_order() -> None:
    assert divisors(36) == [1, 2, 3, 4, 6, 9, 12, 18, 36]
    assert divisors(0) == []
