from __future__ import annotations

from tests.schedule.programs import check_same, check_schedule, dense, matmul, refused
from tilewright.ir.loop.text import print_func
from tilewright.schedule.schedule import Schedule


def test_blockize(golden) -> None:
    before = matmul(16, 12, 8)
    sch = Schedule(before)
    i, j = sch.split("y.i0", [None, 4]), sch.split("y.i1", [None, 6])
    k = sch.split("y.r0", [None, 4])
    sch.reorder(i[0], j[0], k[0], i[1], j[1], k[1])
    assert sch.blockize(i[1]) == "y.tile"
    golden(print_func(sch.func))
    check_same(before, sch.func)
    sch.decompose_reduction("y.tile", k[0])
    check_schedule(sch, before)


def test_tiles_move_as_a_whole() -> None:
    before = dense()
    sch = Schedule(before)
    sch.pad("mm", "i0", 4)
    sch.split("mm.i0", [None, 4])
    sch.reorder("mm.i1", "mm.i0.1")
    sch.blockize("mm.i0.1")
    sch.split("add.i0", [None, 8])
    sch.compute_at("mm.tile", "add.i0.0")
    check_schedule(sch, before)


def test_refused() -> None:
    sch = Schedule(dense())
    sch.split("mm.i0", [None, 4])
    refused("blockize.guarded", sch.blockize, "mm.i0.1")
    sch.split("y.i0", [None, 2])
    sch.compute_at("add", "y.i0.0")
    refused("blockize.blocks", sch.blockize, "y.i0.0")
    sch = Schedule(matmul())
    sch.blockize("y.i1")
    refused("schedule.nested", sch.blockize, "y.r0")
    refused("schedule.nested", sch.cache_read, "y", "w", "local")


def test_unaligned_tiles_are_refused() -> None:
    sch = Schedule(matmul(8, 6, 4))
    sch.fuse("y.i0", "y.i1")
    sch.split("y.i0_i1", [None, 4])
    refused("blockize.binding", sch.blockize, "y.i0_i1.1")
