from __future__ import annotations

from tests.schedule.programs import SIZES, dense, matmul, softmax
from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Load, Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Buffer, Iter
from tilewright.ir.types import TYPICAL_SIZE
from tilewright.schedule.analysis.blocks import (
    UNKNOWN_WORK,
    axis_names,
    block_graph,
    flat_stride,
    in_groups,
    is_copy,
    is_simple,
    loop_of,
    op_count,
    reads_of,
    reductions,
    spatial,
    term_of,
    typical_extent,
    uses,
    value_of,
)

N = Var("N")


def test_blocks_and_their_axes() -> None:
    structure = block_graph(dense())
    assert [b.name for b in structure.blocks] == ["mm", "add", "y"]
    mm = structure.block("mm")
    assert axis_names(spatial(mm)) == ("i0", "i1")
    assert axis_names(reductions(mm)) == ("r0",)
    assert [loop_of(it) for it in mm.iters] == ["mm.i0", "mm.i1", "mm.r0"]
    assert [b.name for b in structure.consumers("mm")] == ["add"]
    assert structure.outputs == ("y",)
    assert all(map(is_simple, structure.blocks))
    assert set(SIZES) == {"M", "N", "K"}


def test_what_a_block_reads() -> None:
    structure = block_graph(matmul())
    mm = structure.block("y")
    assert [r.buffer for r in reads_of(mm)] in (["x", "w"], ["w", "x"])
    assert str(term_of(mm)) == "x[i0, r0] * w[r0, i1]"
    assert str(value_of(mm)).startswith("y[i0, i1] + ")
    x = next(r for r in reads_of(mm) if r.buffer == "x")
    assert uses(x, "i0")
    assert not uses(x, "i1")
    assert not is_copy(mm)


def test_strides() -> None:
    buffer = Buffer("x", F32, (const(4), const(5), N))
    load = Load("x", (Var("a"), Var("b") * 2, Var("c") // 3), F32)
    flat = Load("x", (Var("a"), Var("b"), Var("c")), F32)
    assert flat_stride(flat, buffer, "c") == 1
    assert flat_stride(load, buffer, "z") == 0
    assert flat_stride(load, buffer, "c") is None
    assert flat_stride(flat, buffer, "b") is None
    fixed = Buffer("x", F32, (const(4), const(5), const(6)))
    assert flat_stride(load, fixed, "b") == 12


def test_groups_of_neighbours() -> None:
    axis = Iter("n", "S", const(24), Var("n"))
    index, extents = in_groups(Var("n") // 8 * 100 + Var("n") % 8, axis, 4)
    assert list(extents) == ["n.outer", "n.inner"]
    assert stride_of(index, "n.inner") == 1
    assert stride_of(in_groups(Var("n") // 8, axis, 4)[0], "n.inner") == 0
    assert stride_of(in_groups(Var("n") // 6, axis, 4)[0], "n.inner") is None


def test_extents_and_work() -> None:
    assert typical_extent(const(7)) == 7
    assert typical_extent(N * 2) == 2 * TYPICAL_SIZE
    assert typical_extent(N - 1000) == 1
    assert op_count(block_graph(matmul(4, 5, 6)).block("y")) == 2 * 4 * 5 * 6
    assert op_count(block_graph(matmul()).block("y")) == UNKNOWN_WORK
    assert op_count(block_graph(softmax(2, 3)).block("m")) >= 6
