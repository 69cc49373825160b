from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import F32
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.gpu.gemm.operand_copy import OperandCopy, copy_of
from tilewright.schedule.builtin.inlining import inline_copies
from tilewright.schedule.schedule import Schedule


@for_each(
    ("order", "side", "expected"),
    [
        ("nn", "a", OperandCopy("mk", True, True)),
        ("tn", "a", OperandCopy("km", False, True)),
        ("nn", "b", OperandCopy("kn", False, True)),
        ("nt", "b", OperandCopy("nk", True, True)),
    ],
)
def test_the_order_of_a_tile_and_its_vectors(order: str, side: str, expected: OperandCopy) -> None:
    ((func, _),) = sources(dense(64, 64, 64, F32, order))
    sch = Schedule(func)
    inline_copies(sch, block_graph(func), frozenset())
    graph = block_graph(sch.func)
    assert copy_of(graph.blocks[0], graph.buffers, side, 32) == expected  # type: ignore[arg-type]


def test_odd_rows_are_copied_word_by_word() -> None:
    ((func, _),) = sources(dense(37, 53, 71, F32))
    graph = block_graph(func)
    for side in ("a", "b"):
        assert not copy_of(graph.blocks[0], graph.buffers, side, 32).vectors  # type: ignore[arg-type]


@for_each(
    ("sizes", "order", "orders"),
    [
        # Rows of both, and what is left of K, are whole vectors.
        ((12, 500, 500), "nt", ("mk", "nk")),
        # A mask that is that of a whole row.
        ((64, 64, 301), "tn", ("km", "kn")),
    ],
)
def test_rounded_sums_are_copied_in_vectors(
    sizes: tuple[int, int, int], order: str, orders: tuple[str, str]
) -> None:
    ((func, _),) = sources(dense(*sizes, F32, order))
    sch = Schedule(func)
    inline_copies(sch, block_graph(func), frozenset())
    name = block_graph(sch.func).blocks[0].name
    sch.pad_reduction(name, reductions(block_graph(sch.func).block(name))[-1].name, 64)
    graph = block_graph(sch.func)
    ways = [copy_of(graph.block(name), graph.buffers, side, 32) for side in ("a", "b")]  # type: ignore[arg-type]
    assert tuple(way.order for way in ways) == orders
    assert all(way.vectors for way in ways)
