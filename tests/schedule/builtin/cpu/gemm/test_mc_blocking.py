from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from tests.differential.kernel_graphs import KERNELS
from tests.finalize.kernel_steps import run, sample
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, scheduled, sources
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.schedule.builtin.cpu.gemm.mc_blocking import MAX_EXTRA, mc_tiles_near
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.target.registry import CPUS


@for_each("tiles", [1, 2, 7, 33, 196, 349, 523, 697, 10007])
@for_each("wanted", [1, 5, 68, 100000])
def test_groups_are_whole_but_for_a_few_tiles(tiles: int, wanted: int) -> None:
    found = mc_tiles_near(tiles, wanted)
    assert 1 <= found <= tiles
    assert -tiles % found <= MAX_EXTRA * tiles
    if tiles > 300 and wanted == 68:  # also where their number is prime
        assert 2 / 3 < found / wanted < 3 / 2


def test_any_number_of_tiles_is_cut_at_once() -> None:
    assert mc_tiles_near(1 << 60, 1 << 17) == 1 << 17
    assert mc_tiles_near((1 << 61) - 1, 1000) == 1000


def _groups(trace: str) -> tuple[int, int]:
    """How many tiles are a group, and how many rows a tile."""
    found = re.search(r'split\("[^"]*i0", \[\?, (\d+), (\d+)\]\)', trace)
    assert found is not None
    return int(found[1]), int(found[2])


def test_a_prime_number_of_tiles_is_cut_into_groups() -> None:
    (result,) = scheduled(KERNELS["dense"](3136, 256, 64), CPUS["x86-64-v4"])
    together, rows = _groups(str(result.trace))
    tiles = -(-3136 // rows)
    assert (rows, tiles) == (6, 523)
    assert 1 < together < tiles
    assert f'"i0", {rows * together})' in str(result.trace)


def test_what_is_computed_beside_a_group_is_not_stored() -> None:
    target = replace(CPUS["x86-64-v4"], l2=1 << 13)
    (result,) = scheduled(KERNELS["dense"](16 * 101 - 1, 16, 2), target)
    together, rows = _groups(str(result.trace))
    assert -(-(16 * 101 - 1) // rows) % together != 0
    check(KERNELS["dense"](16 * 101 - 1, 16, 2), {}, target)


def test_the_last_tile_may_be_lower_and_others_come_after_it() -> None:
    target = replace(CPUS["x86-64-v4"], l2=1 << 13)
    ((func, constants),) = sources(KERNELS["dense"](16 * 100 + 9, 16, 2))

    def decide(name: str, default: Any, options: tuple[Any, ...]) -> Any:
        return max(options) if name.endswith(".edge_rows") else default

    result = schedule_func(func, constants, target, decide)
    assert _groups(str(result.trace)) == (3, 16)
    assert '"edge_rows", 1)' in str(result.trace)
    arrays = sample(result.func, {})
    expected = {name: array.copy() for name, array in run(func, arrays, {}).items()}
    for name, found in run(finalize(result.func, target), arrays, {}).items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-6)
