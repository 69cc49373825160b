from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import check, scheduled
from tests.schedule.builtin.scheduled import kinds
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.builtin.rules import RULES

# The rule of the kernel that matters most in each graph.
EXPECTED = {
    "matmul": "gemm",
    "dense": "gemm",
    "batched_matmul": "gemm",
    "conv": "gemm",
    "depthwise": "thread_per_element",
    "max_pool": "thread_per_element",
    "softmax": "rowwise",
    "softmax_columns": "fallback",
    "layer_norm": "rowwise",
    "argmax": "rowwise",
    "transposes": "injective",
    "gathered": "injective",
    "sum_rows": "rowwise",
    "sum_all": "rowwise",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_rules(name: str) -> None:
    rules = [r.rule for r in scheduled(KERNELS[name](96, 80, 64))]
    assert f"gpu.{EXPECTED[name]}" in rules
    assert set(rules) <= set(RULES)


@for_each("name", ["conv", "depthwise", "max_pool"])
def test_padding_is_part_of_what_reads_it(name: str) -> None:
    assert all(len(kinds(r.func)["grid"]) == 1 for r in scheduled(KERNELS[name](4, 16, 16)))


@for_each("name", ["depthwise", "max_pool", "transposes", "rearranged", "gathered"])
def test_meaning(name: str) -> None:
    check(KERNELS[name](3, 9, 7), {})


@pytest.mark.parametrize(("channels", "rule", "grids"), [(40, "rowwise", 2), (24, "fallback", 5)])
def test_rows_that_lie_across_are_turned_first(channels: int, rule: str, grids: int) -> None:
    b = GraphBuilder("f")
    x = b.input("x", tensor(F32, 2, channels, 5, 7))
    turned = b.add("transpose", x, attrs=make_attrs("transpose", {"perm": (0, 2, 3, 1)}))
    weights = [b.input(name, tensor(F32, channels)) for name in "wb"]
    norm = b.add("layer_norm", turned, *weights, attrs=make_attrs("layer_norm", {"axis": -1}))
    graph = b.graph(norm)
    assert check(graph, {}) == [rule]
    (result,) = scheduled(graph)
    assert len(kinds(result.func)["grid"]) == grids


def test_what_is_computed_to_be_turned_is_computed_so() -> None:
    b = GraphBuilder("f")
    x, y = b.input("x", tensor(F32, 2, 40, 35)), b.input("y", tensor(F32, 2, 35, 40))
    across = make_attrs("transpose", {"perm": (0, 2, 1)})
    total = b.add("add", x, b.add("transpose", y, attrs=across))
    weights = [b.input(name, tensor(F32, 40)) for name in "wb"]
    turned = b.add("transpose", total, attrs=across)
    graph = b.graph(b.add("layer_norm", turned, *weights, attrs=make_attrs("layer_norm", {})))
    assert check(graph, {}) == ["rowwise"]
    (result,) = scheduled(graph)
    assert len(kinds(result.func)["grid"]) == 2
