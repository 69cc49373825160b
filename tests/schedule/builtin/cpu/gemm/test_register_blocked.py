from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.arith.expr import Var
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.ir.loop.text import print_func
from tilewright.target.registry import CPUS

NAMES = ("matmul", "dense", "batched_matmul", "pointwise_conv")


@for_each("sizes", [(1, 1, 1), (5, 7, 3), (13, 33, 2), (2, 16, 9)])
@for_each("name", [*NAMES, "depthwise", "max_pool"])
def test_meaning_at_odd_sizes(name: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    check(KERNELS[name](min(m, 3) if "pool" in name or "depth" in name else m, n, k), {})


def test_convolution() -> None:
    check(KERNELS["conv"](3, 3, 5), {})


@pytest.mark.parametrize("name", ["matmul", "batched_matmul"])
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


def test_whole_tiles_have_no_clamps() -> None:
    """Each clamped row would have an address of its own."""
    target = CPUS["x86-64-v4"]
    (result,) = scheduled(KERNELS["dense"](20005, 16, 72), target)
    whole, last = print_func(finalize(result.func, target)).split("else", 1)
    assert "min(" not in whole
    assert "min(" in last
