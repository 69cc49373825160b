from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS, _Maker
from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.gpu.two_launches import check_two_launches
from tests.schedule.builtin.scheduled import sources
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.gpu import split_reduction
from tilewright.schedule.builtin.gpu.split_reduction import parts_of


@for_each(
    ("name", "sizes", "parts"),
    [
        ("sum_all", (64, 256, 1024), 512),
        ("sum_all", (7, 11, 13), 1),
        ("max_columns", (8192, 64, 128), 8),
        ("max_columns", (8192, 512, 1024), 1),
        ("max_columns", (196, 24, 20), 1),
        ("sum_rows", (64, 256, 1024), 1),
    ],
)
def test_sums_are_cut_where_there_are_few(
    name: str, sizes: tuple[int, int, int], parts: int
) -> None:
    ((func, _),) = sources(KERNELS[name](*sizes))
    structure = block_graph(func)
    (block,) = (b for b in structure.blocks if reductions(b))
    assert parts_of(block, structure, H200) == parts


def test_what_is_summed_is_computed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_reduction, "BLOCK_TERMS", 8)
    b = _Maker("distance")
    difference = b.add("sub", b.input(16, 24), b.input(16, 24))
    square = b.add("mul", difference, difference)
    graph = b.g.graph(b.add("reduce_mean", square, axes=(0, 1), keepdims=False))
    check_two_launches(graph)


@pytest.mark.parametrize("name", ["sum_all", "sum_ends"])
def test_meaning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_reduction, "BLOCK_TERMS", 40)
    monkeypatch.setattr(split_reduction, "THREAD_TERMS", 4)
    check_two_launches(KERNELS[name](16, 8, 12))
