from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.codegen.gpu.launches import launches
from tilewright.finalize.flatten import flatten
from tilewright.finalize.gpu.grid_sync import lower_grid_sync
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import buffers

STEPS = """func @f(A: f32[4], X: f32[T, 4], out Y: f32[4], out Z: f32[T, 4]) {
  alloc P: f32[4]
  alloc Q: f16[4]
  for t in serial(T) {grid_sync=1} {
    for b in grid(2) { for x in thread(2) {
      P[b * 2 + x] = select(t == 0, A[b * 2 + x], Y[b * 2 + x])
      Q[b * 2 + x] = f16(P[b * 2 + x])
    } }
    for c in grid(4) { for y in thread(1) {
      Y[c] = f32(Q[3 - c]) * 0.5 + X[t, c]
      Z[t, c] = Y[c]
    } }
  }
}"""


def _run(func: Func, steps: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    arrays = {
        "A": rng.standard_normal(4).astype("f"),
        "X": rng.standard_normal((steps, 4)).astype("f"),
        "Y": np.full(4, np.nan, "f"),
        "Z": np.full((steps, 4), np.nan, "f"),
    }
    run_func(func, arrays, {"T": steps})
    return arrays


@for_each("steps", [1, 2, 5])
def test_the_state_is_passed_on_and_means_the_same(steps: int) -> None:
    before = parse_func(STEPS)
    after = lower_grid_sync(before)
    for name, found in _run(after, steps).items():
        np.testing.assert_array_equal(found, _run(before, steps)[name])


def test_what_is_passed_on_has_room_for_two_steps() -> None:
    after = lower_grid_sync(parse_func(STEPS))
    shapes = {name: [str(n) for n in b.shape] for name, b in buffers(after).items()}
    assert shapes["Q"] == ["2", "4"]
    assert shapes["P"] == ["4"]  # nobody reads it in a step
    *_, steps = launches(flatten(after))
    assert steps.cooperative_launch
    assert str(steps.grid) == "4"


@for_each("more", ["+ f32(t)", "+ Y[3]"])
def test_what_is_more_than_a_formula_of_one_element_stays_a_nest(more: str) -> None:
    before = parse_func(STEPS.replace("Y[b * 2 + x])\n", f"Y[b * 2 + x] {more})\n"))
    after = lower_grid_sync(before)
    assert [str(n) for n in buffers(after)["Q"].shape] == ["4"]
    for name, found in _run(after, 3).items():
        np.testing.assert_array_equal(found, _run(before, 3)[name])


def test_loops_that_are_launched_often_are_left_alone() -> None:
    func = parse_func(STEPS.replace(" {grid_sync=1}", ""))
    assert lower_grid_sync(func) is func
