from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, refused
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import blocks, loops
from tilewright.schedule.schedule import Schedule


def test_loops_like_the_block_s_own_come_before_it() -> None:
    before = dense()
    sch = Schedule(before)
    outer, inner = sch.split("add.i1", [None, 4])
    sch.unroll(inner)
    assert sch.reindex_cache_read("add", "bias", "register") == "bias.held"
    assert [b.name for b in blocks(sch.func.body)] == ["mm", "bias.held", "add", "y"]
    kinds = {loop.name: loop.kind for loop in loops(sch.func.body)}
    assert kinds[f"{outer}.bias.held"] == "serial"
    assert kinds[f"{inner}.bias.held"] == "unroll"
    check_schedule(sch, before)


def test_several_buffers_of_one_block() -> None:
    before = dense()
    sch = Schedule(before)
    held = [sch.reindex_cache_read("add", buffer, "local") for buffer in ("bias", "mm")]
    assert [b.name for b in blocks(sch.func.body)] == ["mm", *held, "add", "y"]
    check_schedule(sch, before)


def test_within_loops_that_others_share() -> None:
    before = dense()
    sch = Schedule(before)
    sch.reverse_compute_at("add", "mm.i0")
    sch.reindex_cache_read("add", "mm", "local")
    names = [b.name for b in blocks(sch.func.body)]
    assert names == ["mm", "mm.held", "add", "y"]
    check_schedule(sch, before)


def test_terms_of_a_sum_have_a_place_each() -> None:
    before = dense()
    sch = Schedule(before)
    sch.decompose_reduction("mm", "mm.i0")
    assert sch.reindex_cache_read("mm", "w", "local") == "w.held"
    assert [b.name for b in blocks(sch.func.body)][:3] == ["mm.init", "w.held", "mm"]
    check_schedule(sch, before)


def test_refused() -> None:
    refused("reindex-cache-read.block", Schedule(dense()).reindex_cache_read, "mm", "w", "register")
    refused(
        "reindex-cache-read.block", Schedule(dense()).reindex_cache_read, "add", "w", "register"
    )
    refused("cache.scope", Schedule(dense()).reindex_cache_read, "add", "bias", "nowhere")
    twice = parse_func("""func @f(x: f32[4], out y: f32[4]) {
      for i in serial(4) {
        block "y" [v: S(4) = i] reads x[v], x[3 - v] writes y[v] { y[v] = x[v] + x[3 - v] }
      }
    }""")
    refused("reindex-cache-read.block", Schedule(twice).reindex_cache_read, "y", "x", "register")
