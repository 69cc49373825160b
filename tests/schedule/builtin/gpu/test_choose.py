from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.gpu.scheduled import check, scheduled
from tests.schedule.builtin.scheduled import kinds
from tilewright.schedule.builtin.rules import RULES

# The rule of the kernel that matters most in each graph.
EXPECTED = {
    "matmul": "product",
    "dense": "product",
    "batched_matmul": "product",
    "conv": "product",
    "depthwise": "points",
    "max_pool": "points",
    "softmax": "rows",
    "softmax_columns": "nests",
    "layer_norm": "rows",
    "argmax": "rows",
    "transposes": "injective",
    "gathered": "injective",
    "sum_rows": "rows",
    "sum_all": "rows",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_rules(name: str) -> None:
    rules = [r.rule for r in scheduled(KERNELS[name](96, 80, 64))]
    assert f"gpu.{EXPECTED[name]}" in rules
    assert set(rules) <= set(RULES)


@pytest.mark.parametrize("name", ["conv", "depthwise", "max_pool"])
def test_padding_is_part_of_what_reads_it(name: str) -> None:
    assert all(len(kinds(r.func)["grid"]) == 1 for r in scheduled(KERNELS[name](4, 16, 16)))


@pytest.mark.parametrize("name", ["depthwise", "max_pool", "transposes", "rearranged", "gathered"])
def test_meaning(name: str) -> None:
    check(KERNELS[name](3, 9, 7), {})
