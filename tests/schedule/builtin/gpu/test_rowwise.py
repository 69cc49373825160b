from __future__ import annotations

from dataclasses import replace

import pytest

from tests.codegen.gpu.test_nvptx import check_on_threads
from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import check
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import Var
from tilewright.core.dtypes import I8, I32
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.builtin.gpu import rowwise_plan

NAMES = ("softmax", "layer_norm", "argmax", "sum_all", "sum_ends", "global_pool")


@pytest.mark.parametrize("sizes", [(3, 19, 7), (2, 64, 5), (5, 130, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_meaning(name: str, sizes: tuple[int, int, int]) -> None:
    assert "rowwise" in check(KERNELS[name](*sizes), {}) or min(sizes) < 4


@pytest.mark.parametrize("name", NAMES[:2])
def test_symbolic_and_empty_rows(name: str) -> None:
    for sizes in ((2, 9, 5), (0, 3, 3), (3, 0, 2)):
        check(KERNELS[name](*map(Var, "MNK")), dict(zip("MNK", sizes, strict=True)))


def test_rows_that_one_thread_could_read_at_once() -> None:
    b = GraphBuilder("sums")
    wide = b.add("cast", b.input("x", tensor(I8, 5, 16)), attrs=CastAttrs(I32))
    total = b.add("reduce_sum", wide, attrs=make_attrs("reduce_sum", {"axes": (1,)}))
    assert check(b.graph(total), {}) == ["rowwise"]


@for_each("columns", [4, 5, 9, 15])
def test_short_rows_that_are_reduced_several_times(columns: int) -> None:
    assert check(KERNELS["softmax"](50, columns, 0), {}) == ["rowwise"]


@for_each("sizes", [(9, 30, 11), (17, 3, 48), (3, 40, 8), (9, 2, 300), (2, 3, 1203)])
def test_rows_of_several_axes(sizes: tuple[int, int, int]) -> None:
    graph = KERNELS["sum_ends"](*sizes)
    assert check(graph, {}) == ["rowwise"]
    for func, constants in sources(graph):
        check_on_threads(func, constants, {})


@pytest.mark.parametrize("columns", [1200, 1203])
def test_rows_that_do_not_fit_registers_are_read_again(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = replace(rowwise_plan.ROWWISE, registers=0)
    monkeypatch.setattr(rowwise_plan, "ROWWISE", limits)
    graph = KERNELS["softmax"](2, columns, 0)
    assert check(graph, {}) == ["rowwise"]
    for func, constants in sources(graph):
        check_on_threads(func, constants, {})
