from __future__ import annotations

import numpy as np

from tests.finalize.kernel_steps import run, sample
from tilewright.finalize.gpu.warp_specialize import MBARRIERS, mainloop_of, multi_buffer
from tilewright.ir.loop.text import parse_func, print_func

SUMS = """func @sums(A: f32[256], out C: f32[64]) {
  for b in grid(2) {persistent=1} {
    alloc S: f32[1] @register
    for x in thread(32) { S[0] = 0.0 }
    for k in serial(4) {pipeline_stages=3, warp_specialized=1} {
      alloc T: f32[32] @shared
      alloc U: f32[1] @register
      for z in thread(32) { T[z] = A[b * 128 + k * 32 + z] }
      for y in thread(32) { U[0] = T[31 - y] }
      for w in thread(32) { S[0] += U[0] }
    }
    for v in thread(32) { C[b * 32 + v] = S[0] }
  }
}"""


def test_shared_buffers_have_room_for_several_steps() -> None:
    before = parse_func(SUMS)
    after = multi_buffer(before)
    text = print_func(after)
    outside, inside = text.split("for k in")
    assert "alloc T: f32[96] @shared" in outside
    assert f"alloc {MBARRIERS}: i64[6] @shared" in outside
    assert "alloc U: f32[1] @register" in inside
    arrays = sample(before, {})
    expected = run(before, arrays, {})["C"].copy()
    np.testing.assert_array_equal(run(after, arrays, {})["C"], expected)


def test_other_loops_stay() -> None:
    func = parse_func(SUMS.replace("{pipeline_stages=3, warp_specialized=1} ", ""))
    assert multi_buffer(func) == func
    assert mainloop_of(func.body) is None
