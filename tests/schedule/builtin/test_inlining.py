from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.scheduled import sources
from tests.schedule.programs import dense, softmax
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.inlining import inline_copies, inline_into_last
from tilewright.schedule.schedule import Schedule


def test_what_is_no_sum_goes_into_the_last_block() -> None:
    for func, _ in sources(KERNELS["rearranged"](4, 5, 6)):
        sch = Schedule(func)
        inline_into_last(sch, block_graph(func))
        assert len(block_graph(sch.func).blocks) == 1


def test_cheap_formulas_with_one_reader_and_no_dear_ones() -> None:
    sch = Schedule(dense())
    inline_copies(sch, block_graph(sch.func), frozenset())
    assert [b.name for b in block_graph(sch.func).blocks] == ["mm", "y"]
    sch = Schedule(softmax())
    inline_copies(sch, block_graph(sch.func), frozenset())
    assert [b.name for b in block_graph(sch.func).blocks] == ["m", "e", "s", "y"]
