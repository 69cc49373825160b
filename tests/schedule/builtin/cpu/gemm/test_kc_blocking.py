from __future__ import annotations

from dataclasses import replace

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.schedule.builtin.cpu.gemm.f16_products import conv, dense
from tests.schedule.builtin.scheduled import scheduled, sources
from tilewright.arith.expr import as_int
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.cpu.gemm import kc_blocking
from tilewright.schedule.builtin.cpu.gemm.kc_blocking import (
    KBlock,
    default_kc,
    even_parts,
    has_k_blocks,
    narrow_k_block,
)
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel
from tilewright.target.registry import CPUS

# L1 so small that short reductions are cut, too.
SMALL = [replace(CPUS[name], l1=1024, l2=16384) for name in ("aarch64", "x86-64-v4")]


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kc_blocking, "MIN_KC", 16)


def _reduction(graph: Graph) -> Block:
    ((func, _),) = [s for s in sources(graph) if any(map(reductions, block_graph(s[0]).blocks))]
    return next(b for b in block_graph(func).blocks if reductions(b))


def _kc(graph: Graph) -> KBlock | None:
    return default_kc(_reduction(graph), Microkernel(4, 16, 4), SMALL[0])


def test_parts_of_one_loop() -> None:
    assert _kc(KERNELS["dense"](8, 16, 16)) is None
    assert _kc(KERNELS["dense"](8, 16, 64)) == KBlock(0, 16, 16)
    assert _kc(KERNELS["dense"](8, 16, 67)) == KBlock(0, 14, 14)  # the last has 3 zeros
    by_lane = Microkernel(4, 16, 4, lane_fma=True)
    block = _reduction(KERNELS["dense"](8, 16, 67))
    assert default_kc(block, by_lane, SMALL[0]) == KBlock(0, 16, 16)


def test_what_can_be_cut() -> None:
    for steps in (64, 67, 40):
        assert has_k_blocks(_reduction(KERNELS["dense"](8, 16, steps)), 4)
    assert has_k_blocks(_reduction(KERNELS["conv"](3, 4, 8)), 4)


@for_each(("count", "sizes"), [(1, [1]), (7, [1, 2, 3, 4, 7]), (9, [1, 2, 3, 5, 9])])
def test_sizes_of_even_parts(count: int, sizes: list[int]) -> None:
    assert even_parts(count) == sizes


def test_even_parts_are_what_division_gives() -> None:
    for count in range(1, 200):
        assert even_parts(count) == sorted({-(-count // n) for n in range(1, count + 1)})


def test_a_prime_number_of_tiles_is_grouped_for_all_threads() -> None:
    cores = replace(SMALL[1], l2=1 << 20, cores=2)
    (result,) = scheduled(KERNELS["dense"](163 * 4, 16, 192), cores)
    (groups,) = (as_int(f.extent) for f in loops(result.func.body) if f.kind == "parallel")
    assert groups is not None
    assert 2 <= groups < 163


def test_whole_inner_loops() -> None:
    graph = KERNELS["conv"](3, 4, 8)
    assert [str(it.extent) for it in reductions(_reduction(graph))] == ["3", "3", "4"]
    assert _kc(graph) == KBlock(2, 1, 12)


@for_each(("cores", "least"), [(1, 1), (2, 2), (3, 3), (8, 8)])
def test_no_thread_is_without_a_group_of_rows(cores: int, least: int) -> None:
    """All rows would fit the second cache: one group, and one thread that computes it."""
    roomy = replace(SMALL[1], l2=1 << 20, cores=cores)
    (result,) = scheduled(KERNELS["dense"](240, 16, 192), roomy)
    assert "rfactor" in str(result.trace)
    (groups,) = (as_int(f.extent) for f in loops(result.func.body) if f.kind == "parallel")
    assert groups is not None
    assert groups >= least
    assert groups == 1 or groups % cores == 0


def test_blocks_of_narrow_accumulators() -> None:
    def found(graph: Graph) -> KBlock | None:
        return narrow_k_block(_reduction(graph))

    assert found(dense(4, 8, 128)) == KBlock(1, 0, 128, narrow=True)
    assert found(dense(4, 8, 192)) == KBlock(0, 96, 96, narrow=True)
    assert found(dense(4, 8, 768)) == KBlock(0, 128, 128, narrow=True)
    assert found(dense(4, 8, 1031)) is None  # no equal parts
    assert found(conv(4, 64, 8)) == KBlock(1, 1, 64, narrow=True)
    assert found(conv(4, 32, 8)) == KBlock(2, 1, 96, narrow=True)
