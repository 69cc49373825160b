from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.finalize.gpu.distribute_registers import distribute_registers
from tilewright.finalize.gpu.promote_registers import promote_registers
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import buffers

STEPS = """func @f(X: f32[5, 8], out Y: f32[8], out Z: f32[5, 8]) {
  for t in serial(5) {grid_sync=1} {
    for b in grid(2) { for x in thread(4) {
      Y[b * 4 + x] = select(t == 0, 0.0, Y[b * 4 + x]) * 0.5 + X[t, b * 4 + x]
      for one in serial(1) { Z[t, b * 4 + x + one] = Y[b * 4 + x + one] * 2.0 }
    } }
  }
}"""


def test_a_thread_keeps_what_is_its_own() -> None:
    before = parse_func(STEPS)
    after = promote_registers(before)
    assert buffers(after)["Y.kept"].scope == "register"
    small = distribute_registers(after)
    assert [str(n) for n in buffers(small)["Y.kept"].shape] == ["1"]
    x = np.random.default_rng(1).standard_normal((5, 8)).astype("f")
    results = []
    for func in (before, after, small):
        arrays = {"X": x, "Y": np.full(8, np.nan, "f"), "Z": np.full((5, 8), np.nan, "f")}
        run_func(func, arrays, {})
        results.append((arrays["Y"], arrays["Z"]))
    for found in results[1:]:
        for one, other in zip(found, results[0], strict=True):
            np.testing.assert_array_equal(one, other)


@for_each(
    ("old", "new"),
    [
        ("= Y[b * 4 + x + one] * 2.0", "= Y[b * 4 + 3 - x] * 2.0"),
        ("Y[b * 4 + x] = select", "if x < 3 { Y[7] = 0.0 } Y[b * 4 + x] = select"),
        ("  for t in", "  for q in thread(8) { Y[q] = 1.0 }\n  for t in"),
        (" {grid_sync=1}", ""),
    ],
)
def test_what_others_touch_stays_in_memory(old: str, new: str) -> None:
    func = parse_func(STEPS.replace(old, new))
    assert promote_registers(func) == func
