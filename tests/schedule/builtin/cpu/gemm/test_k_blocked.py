from __future__ import annotations

from dataclasses import replace

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.scheduled import check, scheduled, sources
from tilewright.arith.expr import as_int
from tilewright.ir.loop.walk import loops
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.cpu.gemm import k_blocked
from tilewright.schedule.builtin.cpu.gemm.k_blocked import KBlock, default_kc
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import Microkernel
from tilewright.target.registry import CPUS

# A nearest cache so small that short reductions are cut, too; the interpreter is slow.
SMALL = [replace(CPUS[name], l1=1024, l2=16384) for name in ("aarch64", "x86-64-v4")]


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k_blocked, "MIN_KC", 16)


@pytest.mark.parametrize("target", SMALL, ids=lambda t: t.cpu)
@pytest.mark.parametrize("sizes", [(67, 5, 128), (70, 18, 128)])
@pytest.mark.parametrize("name", ["matmul", "dense", "batched_matmul"])
def test_meaning(name: str, sizes: tuple[int, int, int], target: object) -> None:
    graph = KERNELS[name](*sizes)
    assert check(graph, {}, target) == ["register_blocked"]  # type: ignore[arg-type]
    (result,) = scheduled(graph, target)  # type: ignore[arg-type]
    assert "rfactor" in str(result.trace)


def test_wide_panels_that_the_second_cache_holds_are_left_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    for target, depth, is_cut in (
        ("x86-64-v4", 832, False),
        ("x86-64-v4", 3072, True),
        ("x86-64-v3", 832, True),
    ):
        (result,) = scheduled(KERNELS["dense"](196, 128, depth), CPUS[target])
        assert ("rfactor" in str(result.trace)) == is_cut


def _depth(name: str, *sizes: int, columns: int = 16) -> KBlock | None:
    ((func, _),) = sources(KERNELS[name](*sizes))
    block = next(b for b in block_graph(func).blocks if reductions(b))
    return default_kc(block, Microkernel(4, columns, 4), SMALL[0])


def test_equal_parts_of_one_loop() -> None:
    assert _depth("dense", 8, 16, 16) is None
    assert _depth("dense", 8, 16, 64) == KBlock(0, 16, 16)
    assert _depth("dense", 8, 16, 67) is None  # no equal parts


def test_whole_inner_loops() -> None:
    ((func, _),) = [s for s in sources(KERNELS["conv"](3, 4, 8)) if "conv" in s[0].name]
    block = next(b for b in block_graph(func).blocks if reductions(b))
    assert [str(it.extent) for it in reductions(block)] == ["3", "3", "4"]
    assert default_kc(block, Microkernel(4, 16, 4), SMALL[0]) == KBlock(2, 1, 12)


def test_few_rows_are_not_cut() -> None:
    (result,) = scheduled(KERNELS["dense"](3, 30, 192), SMALL[0])
    assert "rfactor" not in str(result.trace)


@pytest.mark.parametrize(("cores", "least"), [(1, 1), (2, 2), (3, 3), (8, 8)])
def test_no_thread_is_without_a_group_of_rows(cores: int, least: int) -> None:
    """All rows would fit the second cache: one group, and one thread that computes it."""
    roomy = replace(SMALL[1], l2=1 << 20, cores=cores)
    (result,) = scheduled(KERNELS["dense"](240, 16, 192), roomy)
    assert "rfactor" in str(result.trace)
    (groups,) = (as_int(f.extent) for f in loops(result.func.body) if f.kind == "parallel")
    assert groups is not None
    assert groups >= least
    assert groups == 1 or groups % cores == 0
