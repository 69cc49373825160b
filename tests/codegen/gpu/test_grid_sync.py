from __future__ import annotations

from tilewright.codegen.gpu.grid_sync import ARRIVE, WAIT
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.ir.loop.text import parse_func

STEPS = """func @f(W: f32[64], X: f32[320], P: f32[64], N: i64[1], out Y: f32[32]) {
  for t in serial(5) {grid_sync=1} {
    for b in grid(2) {
      alloc held: f32[1] @register
      alloc ahead: f32[1] @register
      alloc S: f32[32] @shared
      for x in thread(32) { held[0] = W[b * 32 + x] }
      for y in thread(32) { S[y] = P[y + t % 2 * 32] * held[0] }
      barrier
      for z in thread(32) { ahead[0] = X[t * 64 + b * 32 + z] }
      for w in thread(32) { P[w + (t + 1) % 2 * 32] = S[31 - w] + ahead[0] }
      N[0] = N[0] + 1
    }
    for c in grid(1) {
      for v in thread(32) { Y[v] = P[v + (t + 1) % 2 * 32] }
      N[0] = N[0] + 1
    }
  }
}"""


def _text() -> str:
    module = ModuleBuilder()
    emit_launches(module, parse_func(STEPS), [])
    found = module.text()
    start = found.index("define ptx_kernel")
    return found[start:]


def test_one_kernel_waits_before_each_nest_and_counts_behind_it() -> None:
    text = _text()
    assert text.count("define ptx_kernel") == 1
    assert text.count(f"@{WAIT}(") == text.count(f"@{ARRIVE}(") == 2


def test_what_is_the_same_in_every_step_is_done_before_the_first() -> None:
    text = _text()
    lines = text.splitlines()
    loop = next(n for n, line in enumerate(lines) if " = phi i64 " in line)
    weights = [n for n, line in enumerate(lines) if "float, ptr %b0," in line]
    assert weights
    assert all(n < loop for n in weights)


def test_what_no_step_writes_is_read_before_the_wait() -> None:
    lines = _text().splitlines()
    wait = next(n for n, line in enumerate(lines) if f"@{WAIT}(" in line)
    inputs = [n for n, line in enumerate(lines) if "float, ptr %b1," in line]
    states = [n for n, line in enumerate(lines) if "float, ptr %b2," in line]
    assert inputs
    assert all(n < wait for n in inputs)
    assert all(n > wait for n in states)


def test_blocks_that_a_nest_has_not_pass_it_by() -> None:
    assert "icmp slt i64" in _text()
