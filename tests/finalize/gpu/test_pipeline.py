from __future__ import annotations

from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.finalize.gpu.pipeline import finalize_gpu, steps
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import blocks


def test_steps_have_names_and_leave_plain_loops() -> None:
    names = [name for name, _ in steps(H200)]
    assert len(names) == len({*names})
    func = parse_func("""func @f(A: f32[N], out C: f32[N]) {
      for i in grid(N) { block "C" [v: S(N) = i] reads A[v] writes C[v] { C[v] = A[v] } }
    }""")
    assert not list(blocks(finalize_gpu(func, H200).body))
