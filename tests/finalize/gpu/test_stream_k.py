from __future__ import annotations

import numpy as np
import pytest

from tests.finalize.kernel_steps import run, sample
from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.stream_k import Shares, make_parts, shares_of
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import find_loop

SUMS = """func @sums(A: f32[5, 3, 16, 64], out C: f32[5, 64, 64]) {
  for b in grid(5) {shares=4} {
    alloc S: f32[16, 64] @fragment
    for w in warp(4) { tile fill S[0 : 16, 0 : 64] using "wgmma_zero_64" }
    for k in serial(3) {apart=2} {
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
    shares = Shares(tiles=5, steps=3, each=4)
    assert (shares.all, shares.blocks) == (15, 4)
    assert shares_of(_grid(SUMS)) == shares
    assert shares_of(_grid(SUMS.replace("{shares=4} ", ""))) is None


def test_blocks_are_no_more_than_steps() -> None:
    shares = shares_of(_grid(SUMS.replace("shares=4", "shares=132")))
    assert shares is not None
    assert (shares.each, shares.blocks) == (1, 15)


def test_steps_must_be_of_a_known_number() -> None:
    text = SUMS.replace("serial(3)", "serial(N)").replace("5, 3, 16", "5, N, 16")
    with pytest.raises(CodegenError, match="the steps of loop b are not of a known number"):
        shares_of(_grid(text))


def test_there_is_room_for_a_tile_of_each_block_and_nothing_is_there_at_first() -> None:
    before = parse_func(SUMS)
    after = make_parts(before)
    text = print_func(after)
    assert "alloc b.parts: f32[4, 4, 16, 64]" in text
    assert "alloc b.ready: i32[4, 4]" in text
    reset = find_loop(after, "b.reset")
    assert (str(reset.extent), reset.kind) == ("4", "grid")
    arrays = sample(before, {})
    expected = run(before, arrays, {})["C"].copy()
    np.testing.assert_array_equal(run(after, arrays, {})["C"], expected)


def test_other_loops_stay() -> None:
    func = parse_func(SUMS.replace("{shares=4} ", "{at_once=4} "))
    assert make_parts(func) == func
