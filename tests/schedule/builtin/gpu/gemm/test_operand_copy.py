from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import F32
from tilewright.schedule.analysis.blocks import block_graph
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
