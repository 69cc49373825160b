from __future__ import annotations

from tests.schedule.programs import conv, matmul
from tilewright.arith.expr import TRUE, Var, const
from tilewright.ir.loop.nodes import For, Iter
from tilewright.ir.loop.walk import blocks, buffers, find_block
from tilewright.schedule.analysis.bounds_inference import (
    Range,
    axis_names,
    iterator_range,
    loops_over_region,
    required_region,
)
from tilewright.schedule.tree import block_spine

i = Var("i")


def test_nest_guards_what_may_leave_the_domain() -> None:
    block = find_block(matmul(), "y")
    ranges = [Range(i * 8 - 1, const(10)), Range(const(0), Var("N")), Range(const(0), Var("K"))]
    nest = loops_over_region(block, ranges, {"i": const(4)})
    assert isinstance(nest, For)
    assert nest.name == "y.ax0" == axis_names(block)[0]
    moved = next(blocks(nest))
    assert str(moved.iters[0].binding) == "i * 8 + y.ax0 - 1"
    assert str(moved.predicate) == "0 <= i * 8 + y.ax0 - 1 & i * 8 + y.ax0 - 1 < M"
    assert moved.iters[1].binding is Var("y.ax1")


def test_nest_over_the_domain_needs_no_guard() -> None:
    block = find_block(matmul(), "y")
    whole = [Range(const(0), it.extent) for it in block.iters]
    assert next(blocks(loops_over_region(block, whole, {}))).predicate is TRUE


def test_box_of_a_window() -> None:
    func = conv()
    spine = block_spine(func, "conv")
    region = next(r for r in find_block(func, "conv").reads if r.buffer == "twice")
    depth = next(n for n, s in enumerate(spine) if isinstance(s, For) and s.name == "conv.i1") + 1
    box = required_region([(spine, [region])], depth, buffers(func), {"conv.i1": Var("M")})
    assert [(str(r.start), str(r.extent)) for r in box] == [("0", "N"), ("conv.i1 - 1", "3")]


def test_box_of_several_regions_covers_all() -> None:
    func = conv()
    spine = block_spine(func, "conv")
    region = next(r for r in find_block(func, "conv").reads if r.buffer == "twice")
    twice = required_region([(spine, [region]), (spine, [region])], len(spine), buffers(func), {})
    once = required_region([(spine, [region])], len(spine), buffers(func), {})
    assert twice == once


def test_iterator_ranges() -> None:
    it = Iter("v", "S", Var("M"), Var("l"))
    v, box = Var("v"), Range(i * 8, const(8))
    assert iterator_range(it, v, box, {}) == box
    assert iterator_range(it, v * 4, box, {}) == Range(i * 2, const(2))
    assert iterator_range(it, v * 4, Range(i * 8 + 1, const(8)), {}) == Range(i * 2, const(3))
    assert iterator_range(it, v + Var("w"), box, {}) is None
    assert iterator_range(it, const(7) - v, box, {}) is None
