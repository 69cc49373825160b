from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import scheduled
from tilewright.ir.loop.text import print_func
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel, MicrokernelProblem
from tilewright.schedule.builtin.cpu.gemm.prefetching import prefetch_steps
from tilewright.target.registry import CPUS

TARGET = CPUS["x86-64-v4"]


def _steps(k: int, tile: Microkernel, constant: bool = True) -> int:
    problem = MicrokernelProblem(12, 2048, k, 32, reuses_b=True, constant_b=constant)
    return prefetch_steps(problem, tile, False, TARGET)


def test_only_panels_that_l2_does_not_keep_are_prefetched() -> None:
    tile = Microkernel(12, 32, 16)
    assert TARGET.l2 == 1 << 20
    assert _steps(64, tile) == 0
    assert _steps(65, tile) == TARGET.costs.prefetch_bytes // 128
    assert _steps(65, tile, constant=False) == 0


def test_a_distance_in_bytes_is_one_in_iterations() -> None:
    ahead = TARGET.costs.prefetch_bytes
    assert _steps(4096, Microkernel(12, 48, 16)) == ahead // 192
    assert _steps(4096, Microkernel(12, 16, 4, lane_fma=True)) == ahead // 256
    assert _steps(4096, Microkernel(1024, 4096, 16)) == 1


def test_few_rows_have_enough_loads_under_way() -> None:
    assert _steps(4096, Microkernel(1, 64, 16)) == _steps(4096, Microkernel(4, 64, 16)) == 0
    assert _steps(4096, Microkernel(6, 64, 16)) > 0


@for_each(("rows", "depth"), [(12, 1000), (96, 1000), (12, 40)])
def test_the_loop_over_k_says_so(rows: int, depth: int) -> None:
    (result,) = scheduled(KERNELS["dense"](rows, 2510, depth), TARGET)
    assert ("prefetch" in print_func(result.func)) == (depth == 1000)


@for_each(
    ("rows", "columns", "depth", "ahead"),
    [
        (20000, 16, 72, True),
        (300, 16, 72, False),  # L2 keeps A
        (20000, 200, 72, False),  # every panel would
        (20000, 16, 700, False),  # long rows are streams
    ],
)
def test_short_rows_that_are_read_once_are_prefetched(
    rows: int, columns: int, depth: int, ahead: bool
) -> None:
    (result,) = scheduled(KERNELS["dense"](rows, columns, depth), TARGET)
    assert ("prefetch_rows" in print_func(result.func)) == ahead
