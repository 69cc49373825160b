from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS, NEEDS_FIXED_CHANNELS
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, scheduled
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.registry import CPUS

RULES = {
    "register_blocked": (
        "matmul",
        "dense",
        "batched_matmul",
        "pointwise_conv",
    ),
    "column_reduction": ("max_columns", "mean_middle"),
    "rowwise": ("softmax", "layer_norm", "sum_rows", "sum_all"),
    "injective": ("transposes", "rearranged", "gathered"),
}
CASES = [(name, rule) for rule, names in RULES.items() for name in names]


@for_each(("name", "rule"), CASES, ids=[n for n, _ in CASES])
def test_structure_decides_the_rule(name: str, rule: str) -> None:
    found = {s.rule for s in scheduled(KERNELS[name](20, 24, 32))}
    assert rule in found


@for_each("name", KERNELS)
def test_replay_and_verification_on_wide_vectors(name: str) -> None:
    scheduled(KERNELS[name](33, 20, 40), CPUS["x86-64-v4"])


@pytest.mark.parametrize("name", KERNELS)
def test_symbolic_sizes_are_scheduled(name: str) -> None:
    fixed = name in NEEDS_FIXED_CHANNELS
    graph = KERNELS[name](Var("M"), 6, 7) if fixed else KERNELS[name](*map(Var, "MNK"))
    scheduled(graph)


def test_several_outputs_of_one_kernel() -> None:
    g = GraphBuilder("f")
    x, w = g.input("x", tensor(F32, 6, 20)), g.input("w", tensor(F32, 20))
    attrs = make_attrs("layer_norm", {"axis": -1, "stats": True})
    outputs = g.add_many("layer_norm", x, w, attrs=attrs)
    assert check(g.graph(*outputs), {}) == ["fallback"]


def test_sums_along_rows_that_are_read_once_are_not_turned_round() -> None:
    g = GraphBuilder("f")
    x, w = g.input("x", tensor(F32, 40, 64)), g.input("w", tensor(F32, 64, 1))
    assert check(g.graph(g.add("matmul", x, w)), {}) == ["rowwise"]
