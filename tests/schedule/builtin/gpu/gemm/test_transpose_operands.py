from __future__ import annotations

import pytest

from tests.schedule.builtin.gpu.gemm.test_tensor_core import (
    all_bytes,
    dense,
    of_bytes,
    on_threads,
    the_kernel,
    tiles,
)
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.core.dtypes import F32, I8, U8
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import buffers, loops
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.builtin.gpu.gemm import transpose_operands
from tilewright.target.gpu import with_tf32


def launched(func: Func) -> int:
    """How many launches there are."""
    return sum(loop.kind == "grid" for loop in loops(func.body))


@pytest.mark.parametrize(
    ("sizes", "order", "count"),
    [
        ((4096, 4096, 4096), "nn", 2),
        ((4096, 4096, 4096), "nt", 3),
        ((4096, 4096, 4096), "tn", 1),
        ((512, 768, 64), "nn", 1),
        ((4094, 4096, 4096), "nn", 2),
        ((2457, 1629, 1223), "nt", 3),
    ],
)
def test_what_lies_along_the_depth_is_turned_where_there_is_much_to_multiply(
    sizes: tuple[int, int, int], order: str, count: int
) -> None:
    _, scheduled = the_kernel(dense(*sizes, F32, order))
    assert launched(scheduled) == count
    assert not tiles(scheduled)


@pytest.mark.parametrize("order", ["nn", "nt", "tt"])
@pytest.mark.parametrize("sizes", [(36, 40, 33), (37, 43, 36)])
def test_meaning(order: str, sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transpose_operands, "_worth", lambda block, buffers, all, target: all)
    func, scheduled = the_kernel(dense(*sizes, F32, order))
    assert launched(scheduled) > 1
    on_threads(func, scheduled, {})


def test_odd_rows_get_room_for_whole_vectors() -> None:
    _, scheduled = the_kernel(dense(2457, 1629, 1223, F32, "nt"))
    shapes = {b.name: [str(d) for d in b.shape] for b in buffers(scheduled).values()}
    assert shapes["x0.global"] == ["1223", "408", "4"]
    vectors = [loop for loop in loops(scheduled.body) if loop.kind == "vectorize"]
    assert [n for n in ("left", "right") if any(f".{n}." in v.name for v in vectors)] == [
        "left",
        "right",
    ]


@pytest.mark.parametrize(
    "order", ["nn", *(pytest.param(order, marks=pytest.mark.slow) for order in ("tn", "tt"))]
)
def test_rounded_operands_lie_along_the_depth(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transpose_operands, "MAX_SHARE", 1e9)
    func, scheduled = the_kernel(dense(70, 72, 40, F32, order), with_tf32(H200))
    assert launched(scheduled) == 1 + (order[0] == "t") + (order[1] == "n")
    assert {t.intrinsic.split("_")[0] for t in tiles(scheduled)} == {"mma"}
    on_threads(func, scheduled, {})


def test_bytes_lie_along_the_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transpose_operands, "MAX_SHARE", 1e9)
    func, scheduled = the_kernel(of_bytes(20, 24, 40, U8, I8, turned=False))
    assert launched(scheduled) == 2
    assert tiles(scheduled)
    on_threads(func, scheduled, {}, all_bytes(func))


def test_an_operand_that_is_both_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transpose_operands, "_worth", lambda block, buffers, all, target: all)

    def square() -> Graph:
        b = GraphBuilder("square")
        x = b.input("x", tensor(F32, 40, 40))
        return b.graph(b.add("matmul", x, x))

    func, scheduled = the_kernel(square())
    assert launched(scheduled) == 1
    on_threads(func, scheduled, {})
