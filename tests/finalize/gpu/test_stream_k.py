from __future__ import annotations

import numpy as np
import pytest

from tests.finalize.kernel_steps import run, sample
from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.stream_k import StreamK, stream_k, stream_k_of
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import find_loop

SUMS = """func @sums(A: f32[5, 3, 16, 64], out C: f32[5, 64, 64]) {
  for b in grid(5) {stream_k=4} {
    alloc S: f32[16, 64] @fragment
    for w in warp(4) { tile fill S[0 : 16, 0 : 64] using "wgmma_zero_64" }
    for k in serial(3) {pipeline_stages=2, warp_specialized=1} {
      for y in warp(4) { tile copy S[0 : 16, 0 : 64] <- A[b, k, 0 : 16, 0 : 64] }
    }
    for z in warp(4) {
      tile copy C[b, z * 16 : 16, 0 : 64] <- S[0 : 16, 0 : 64]
    }
  }
}"""


def _grid(text: str) -> For:
    return find_loop(parse_func(text), "b")


def test_all_blocks_have_the_same_number_of_steps_but_the_last() -> None:
    plan = StreamK(tiles=5, k_tiles=3, k_tiles_per_block=4)
    assert (plan.total, plan.blocks) == (15, 4)
    assert stream_k_of(_grid(SUMS)) == plan
    assert stream_k_of(_grid(SUMS.replace("{stream_k=4} ", ""))) is None


def test_blocks_are_no_more_than_steps() -> None:
    plan = stream_k_of(_grid(SUMS.replace("stream_k=4", "stream_k=132")))
    assert plan is not None
    assert (plan.k_tiles_per_block, plan.blocks) == (1, 15)


def test_steps_must_be_of_a_known_number() -> None:
    text = SUMS.replace("serial(3)", "serial(N)").replace("5, 3, 16", "5, N, 16")
    with pytest.raises(CodegenError, match="loop b has no constant number of k-tiles"):
        stream_k_of(_grid(text))


def test_there_is_room_for_a_tile_of_each_block_and_nothing_is_there_at_first() -> None:
    before = parse_func(SUMS)
    after = stream_k(before)
    text = print_func(after)
    assert "alloc b.partials: f32[4, 4, 16, 64]" in text
    assert "alloc b.flags: i32[4, 4]" in text
    reset = find_loop(after, "b.reset")
    assert (str(reset.extent), reset.kind) == ("4", "grid")
    arrays = sample(before, {})
    expected = run(before, arrays, {})["C"].copy()
    np.testing.assert_array_equal(run(after, arrays, {})["C"], expected)


def test_other_loops_stay() -> None:
    func = parse_func(SUMS.replace("{stream_k=4} ", "{persistent=4} "))
    assert stream_k(func) == func
