from __future__ import annotations

from dataclasses import replace
from math import inf, isinf

from tests.schedule.programs import matmul
from tilewright.schedule.builtin.cpu.gemm.microkernel import MicrokernelProblem
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import choose_tile
from tilewright.schedule.builtin.cpu.gemm.panel_costs import PanelCosts
from tilewright.schedule.schedule import Schedule
from tilewright.target.registry import CPUS

TARGET = replace(CPUS["x86-64-v4"], l1=32 << 10, l2=1 << 20, l3=32 << 20, cores=2)


def _problem(m: int, k: int, n: int, **more: int) -> MicrokernelProblem:
    return MicrokernelProblem(m, n, k, 32, True, batch=1, **more)


def _computed(m: int, k: int, n: int) -> PanelCosts:
    return PanelCosts(_problem(m, k, n, b_bytes=4 * k * n), 16, TARGET)


def test_panels_that_exceed_the_stack_are_not_packed_by_each_thread() -> None:
    assert _computed(28, 2193, 648).packed((14, 1)) < inf
    assert isinf(_computed(28, 2193, 648).packed((14, 2)))


def test_packing_by_each_thread_moves_less() -> None:
    costs = _computed(40, 500, 1000)
    assert costs.packed((10, 2)) < costs.packed_before((10, 2))


def test_many_rows_of_one_vector_wait_for_each_line() -> None:
    costs = _computed(16, 784, 549)
    assert costs.in_place((16, 1)) > 2 * costs.in_place((4, 5))


def test_a_wide_panel_that_cannot_be_cut_is_read_from_l3() -> None:
    whole = _problem(57, 2350, 2013, has_k_blocks=False)
    costs = PanelCosts(whole, 16, TARGET)
    assert costs.from_l3((3, 7)) > 0
    assert costs.from_l3((10, 1)) == 0  # fits
    assert PanelCosts(replace(whole, has_k_blocks=True), 16, TARGET).from_l3((3, 7)) == 0
    tile = choose_tile(Schedule(matmul()), "y", whole, TARGET)
    assert tile.mr > 3
    assert 4 * 2350 * tile.nr < TARGET.l2 // 2


def test_rows_that_are_all_in_one_tile_read_a_panel_once() -> None:
    assert PanelCosts(_problem(3, 2350, 2013, has_k_blocks=False), 16, TARGET).from_l3((3, 7)) == 0


def test_few_rows_wait_for_panels_that_exceed_l1() -> None:
    whole = _problem(576, 2400, 104, constant_b=True)
    costs = PanelCosts(whole, 16, TARGET)
    assert costs.kept((2, 7)) > 0
    assert costs.kept((4, 4)) == 0
    assert PanelCosts(replace(whole, k=64), 16, TARGET).kept((2, 4)) == 0  # stays in L1
    assert PanelCosts(replace(whole, m=2), 16, TARGET).kept((2, 7)) == 0  # read once
    assert PanelCosts(replace(whole, constant_b=False), 16, TARGET).kept((2, 7)) == 0


def test_the_first_tile_waits_for_a_panel_beyond_l2() -> None:
    far = PanelCosts(_problem(12, 2510, 1000, constant_b=True), 16, TARGET)
    near = PanelCosts(_problem(12, 2510, 100, constant_b=True), 16, TARGET)
    assert near.kept((6, 4)) == 0
    assert far.kept((6, 4)) > far.kept((12, 2)) == 0
    tile = choose_tile(Schedule(matmul()), "y", far.problem, TARGET)
    assert tile.mr == 12
