from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.programs import check_schedule, conv, dense, matmul, refused
from tilewright.arith.expr import Load
from tilewright.ir.loop.nodes import Store
from tilewright.ir.loop.walk import blocks
from tilewright.schedule.schedule import Schedule


@for_each("multiples", [(1, 1, 1), (4, 2, 3), (16, 16, 8)])
def test_matrices(multiples: tuple[int, int, int]) -> None:
    before = dense()
    sch = Schedule(before)
    sch.inline("add")
    sch.to_gemm("mm", *multiples)
    assert [b.name for b in blocks(sch.func.body)] == ["mm.left", "mm.right", "mm", "y"]
    check_schedule(sch, before)


def test_the_transposed_product() -> None:
    before = dense()
    sch = Schedule(before)
    sch.inline("add")
    sch.to_gemm("mm", 4, 2, 3, "km", "nk", 1)
    (left, _) = (b for b in blocks(sch.func.body) if b.name in ("mm.left", "mm.right"))
    assert left.reads[0].buffer == "w"
    check_schedule(sch, before)


@for_each("sizes", [(7, 3, 5), (8, 4, 4)])
def test_a_convolution(sizes: tuple[int, int, int]) -> None:
    before = conv(*sizes)
    sch = Schedule(before)
    sch.to_gemm("conv", 4, 8, 2)
    check_schedule(sch, before, exact=False)  # taps are summed before channels


def test_refused() -> None:
    sch = Schedule(matmul())
    refused("to-gemm.allocation", sch.to_gemm, "y", 4, 4, 4)
    refused("to-gemm.block", Schedule(dense()).to_gemm, "add", 4, 4, 4)


def test_behind_the_last_column_is_what_the_operand_has_room_for() -> None:
    for room in (0, 1):
        before = dense(5, 21, 7)
        sch = Schedule(before)
        sch.inline("add")
        if room:
            sch.transform_layout("w", [(0, 0, 0), (1, 16, 0), (1, 16, 1)])
        sch.to_gemm("mm", 1, 16, 1)
        (right,) = (b for b in blocks(sch.func.body) if b.name == "mm.right")
        assert isinstance(right.body, Store)
        assert isinstance(right.body.value, Load)
        assert (right.body.value.mask is None) == bool(room)
        check_schedule(sch, before)
