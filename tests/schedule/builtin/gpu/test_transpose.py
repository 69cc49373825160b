from __future__ import annotations

import pytest

from tests.codegen.gpu.test_nvptx import check_on_threads
from tests.differential.kernel_graphs import Dim, _Maker
from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import check, finalized, scheduled
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import F16, F32, F64, I64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Store
from tilewright.ir.loop.walk import buffers, statements


def _transposed(perm: tuple[int, ...], *shape: Dim, dtype: DType = F32) -> Graph:
    b = _Maker("transposed")
    return b.g.graph(b.add("neg", b.add("transpose", b.input(*shape, dtype=dtype), perm=perm)))


@pytest.mark.parametrize(
    ("perm", "shape"),
    [
        ((1, 0), (64, 32)),
        ((1, 0), (33, 45)),
        ((0, 2, 1), (3, 40, 64)),
        ((2, 0, 1), (2, 35, 32)),
        ((2, 1, 0), (32, 2, 33)),
    ],
)
def test_through_tiles(perm: tuple[int, ...], shape: tuple[int, ...]) -> None:
    graph = _transposed(perm, *shape)
    ((result,), (source,)) = scheduled(graph), sources(graph)
    assert {b.scope for b in buffers(finalized(result.func)).values()} == {"global", "shared"}
    check(graph, {})
    check_on_threads(*source, {})


@pytest.mark.parametrize(
    ("shape", "width"), [((64, 66), 2), ((130, 64), 2), ((64, 65), 1), ((62, 64), 1)]
)
def test_narrow_elements_move_by_words(shape: tuple[int, ...], width: int) -> None:
    graph = _transposed((1, 0), *shape, dtype=F16)
    ((result,), (source,)) = scheduled(graph), sources(graph)
    (plain,) = (finalized(result.func),)
    stores = [s for _, s in statements(plain.body) if isinstance(s, Store)]
    assert {s.value.lanes for s in stores} == {width}
    check(graph, {})
    check_on_threads(*source, {})


@pytest.mark.parametrize(
    ("perm", "shape", "dtype", "widths"),
    [
        ((0, 2, 1), (2, 11, 130), F16, {2}),  # rows written one after another: pairs of 11 * 130
        ((0, 2, 1), (2, 130, 11), F16, {2}),
        ((0, 2, 1), (3, 7, 129), F32, {1}),
        ((0, 2, 1), (3, 129, 7), F16, {1}),
        ((0, 2, 1), (3, 12, 600), F16, {8, 2}),
        ((1, 0), (515, 4), F64, {1, 2}),
        ((2, 0, 1), (5, 70, 3), F32, {1, 2}),
        ((1, 2, 0), (6, 10, 8), I64, {1, 2}),
    ],
)
def test_short_rows_follow_one_another(
    perm: tuple[int, ...], shape: tuple[int, ...], dtype: DType, widths: set[int]
) -> None:
    graph = _transposed(perm, *shape, dtype=dtype)
    ((result,), (source,)) = scheduled(graph), sources(graph)
    plain = finalized(result.func)
    assert {b.scope for b in buffers(plain).values()} == {"global", "shared"}
    stores = [s for _, s in statements(plain.body) if isinstance(s, Store)]
    assert {s.value.lanes for s in stores} == widths
    check(graph, {})
    check_on_threads(*source, {})


def test_rows_of_tiles_are_a_word_longer() -> None:
    for dtype, row in ((F32, 33 * 32), (F16, 66 * 64)):
        (result,) = scheduled(_transposed((1, 0), 64, 64, dtype=dtype))
        (tile,) = (b for b in buffers(finalized(result.func)).values() if b.scope == "shared")
        assert str(tile.shape[0]) == str(row)


@for_each(
    ("perm", "shape"),
    [((1, 0), (8, 60)), ((1, 0), (4, 640)), ((0, 1), (64, 64)), ((1, 0, 2), (32, 32, 32))],
)
def test_not_where_a_tile_is_not_worth_it(perm: tuple[int, ...], shape: tuple[Dim, ...]) -> None:
    (result,) = scheduled(_transposed(perm, *shape))
    assert "shared" not in {b.scope for b in buffers(result.func).values()}
