from __future__ import annotations

from dataclasses import replace

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.arith.expr import Var, as_int
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import loops
from tilewright.target.registry import CPUS

NAMES = ("matmul", "dense", "batched_matmul", "pointwise_conv", "max_columns", "mean_middle")


@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 7, 3), (13, 33, 2), (2, 16, 9)])
@pytest.mark.parametrize("name", [*NAMES, "depthwise", "max_pool"])
def test_meaning_at_odd_sizes(name: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    check(KERNELS[name](min(m, 3) if "pool" in name or "depth" in name else m, n, k), {})


def test_convolution() -> None:
    check(KERNELS["conv"](3, 3, 5), {})


@pytest.mark.parametrize("name", ["matmul", "batched_matmul", "max_columns"])
def test_symbolic_and_empty(name: str) -> None:
    for sizes in ((5, 7, 3), (1, 17, 1), (0, 4, 2), (2, 0, 2), (2, 3, 0)):
        check(KERNELS[name](*map(Var, "MNK")), dict(zip("MNK", sizes, strict=True)))


def test_sums_stay_in_registers_and_constants_are_packed() -> None:
    (result,) = scheduled(KERNELS["dense"](64, 64, 64))
    assert result.rule == "register_blocked"
    assert "@register" in print_func(result.func)
    assert len(result.func.layouts) == 1
    assert kinds(result.func)["unroll"]
    (dynamic,) = scheduled(KERNELS["batched_matmul"](20, 30, 40))
    assert dynamic.func.layouts == ()
    assert "cache_read" in str(dynamic.trace)


def test_rows_that_share_nothing_are_not_computed_for_nothing() -> None:
    """A batch of unknown size may be one: columns, not rows, keep the units busy."""
    graph = KERNELS["mean_middle"](Var("M"), 9, 64)
    (result,) = scheduled(graph)
    assert result.rule == "register_blocked"
    assert "pad(" not in str(result.trace)
    for batch in (0, 1, 5):
        check(graph, {"M": batch})
    for columns, rows in ((3, 8), (16, 2)):
        (narrow,) = scheduled(KERNELS["mean_middle"](Var("M"), 9, columns))
        assert f'pad("reduce_mean.total", "i0", {rows})' in str(narrow.trace)


@pytest.mark.parametrize(
    ("columns", "cores", "tasks"), [(96, 1, 1), (96, 2, 2), (32, 2, 2), (96, 4, 3)]
)
def test_columns_are_summed_by_all_threads(columns: int, cores: int, tasks: int) -> None:
    graph = KERNELS["mean_middle"](1, 1024, columns)
    (result,) = scheduled(graph, replace(CPUS["x86-64-v4"], cores=cores))
    assert result.rule == "register_blocked"
    found = [as_int(f.extent) for f in loops(result.func.body) if f.kind == "parallel"]
    assert found == [tasks]
