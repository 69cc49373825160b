from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.gpu.scheduled import check
from tilewright.arith.expr import Var

NAMES = ("softmax", "layer_norm", "argmax", "sum_all", "sum_ends", "global_pool")


@pytest.mark.parametrize("sizes", [(3, 19, 7), (2, 64, 5), (5, 130, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_meaning(name: str, sizes: tuple[int, int, int]) -> None:
    assert "rows" in check(KERNELS[name](*sizes), {}) or min(sizes) < 4


@pytest.mark.parametrize("name", NAMES[:2])
def test_symbolic_and_empty_rows(name: str) -> None:
    for sizes in ((2, 9, 5), (0, 3, 3), (3, 0, 2)):
        check(KERNELS[name](*map(Var, "MNK")), dict(zip("MNK", sizes, strict=True)))
