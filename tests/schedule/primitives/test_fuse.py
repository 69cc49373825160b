from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, func_of, matmul, refused
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import find_block
from tilewright.schedule.schedule import Schedule


def test_fuse(golden) -> None:
    before = matmul()
    sch = Schedule(before)
    assert sch.fuse("y.i0", "y.i1") == "y.i0_i1"
    golden(print_func(sch.func))
    check_schedule(sch, before)


def test_fuse_of_three_and_of_tiles() -> None:
    before = matmul()
    sch = Schedule(before)
    sch.split("y.i1", [None, 4])
    assert sch.fuse("y.i0", "y.i1.0", "y.i1.1") == "y.i0_0_1"
    check_schedule(sch, before)


def test_fuse_undoes_split() -> None:
    sch = Schedule(matmul(8, 6, 5))
    sch.split("y.i0", [None, 4])
    sch.fuse("y.i0.0", "y.i0.1")
    assert str(find_block(sch.func, "y").iters[0].binding) == "y.i0.0_1"


def test_refused() -> None:
    sch = Schedule(dense())
    refused("fuse.not-nested", sch.fuse, "mm.i0", "mm.r0")
    refused("fuse.not-nested", sch.fuse, "mm.i0", "add.i0")
    refused("fuse.count", sch.fuse, "mm.i0")
    sch.parallel("y.i0")
    refused("fuse.kind", sch.fuse, "y.i0", "y.i1")


def test_extent_that_depends_on_the_outer_loop_is_refused() -> None:
    func = func_of(
        """
        func @f(out A: f32[4, 4]) {
          for i in serial(4) {
            for j in serial(i + 1) {
              block "A" [vi: S(4) = i, vj: S(4) = j] writes A[vi, vj] { A[vi, vj] = 0.0 }
            }
          }
        }
        """
    )
    refused("fuse.extent", Schedule(func).fuse, "i", "j")
    refused("reorder.extent", Schedule(func).reorder, "j", "i")
