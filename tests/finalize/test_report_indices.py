from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.errors import ExecutionError
from tilewright.finalize.report_indices import STATUS, report_indices
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.parse import parse_func
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.verify import verify_func

ROWS = """
func @rows(data: f32[40], x: i64[3], out y: f32[12]) {
  for i in serial(3) {
    for j in serial(4) {
      y[i * 4 + j] = data[min(max(check(x[i], 0, 10, 0), 0), 9) * 4 + j]
    }
  }
}
"""
LANES = """
func @lanes(data: f32[10], x: i64[8], out y: f32[8]) {
  y[ramp(0, 1, 8)] = data[min(max(check(x[ramp(0, 1, 8)], 0, 10, 0), 0), 9)]
}
"""
MASKED = """
func @masked(data: f32[10], x: i64[8], out y: f32[9]) {
  for i in serial(9) {
    y[i] = data[min(max(check(x[i ? i < 8] - 1, 0, 10, 0), 0), 9) ? i < 8]
  }
}
"""
ONLY = """
func @only(data: f32[1], x: i64[3], out y: f32[3]) {
  for i in serial(3) { y[i] = data[0 ? check(x[i], 0, 1, 0) == 0] }
}
"""
MADE = """
func @made(data: f32[10], x: i64[3], out y: f32[3]) {
  alloc t: i64[1] @local {
    for i in serial(3) {
      t[0] = x[i] + 1
      for j in serial(2) { y[i] = data[min(max(check(t[0], 0, 10, 0), 0), 9)] }
    }
  }
}
"""
TEXTS = {"rows": ROWS, "lanes": LANES, "masked": MASKED, "only": ONLY, "made": MADE}


def _words(func: Func, x: list[int]) -> list[int]:
    """What a function with statements for its checks reports."""
    arrays = {p.name: np.zeros([int(str(d)) for d in p.shape], p.dtype.numpy) for p in func.params}
    arrays["x"][:] = x
    run_func(func, arrays)
    return arrays[STATUS].tolist()


@for_each("name", TEXTS)
def test_one_index_outside_is_reported(name: str) -> None:
    func = parse_func(TEXTS[name])
    verify_func(func)
    after = report_indices(func)
    verify_func(after)
    assert parse_func(print_func(after)) == after
    size = 1 if name == "only" else 10
    good = [0] * 3 if name == "only" else [1] * (8 if "x: i64[8]" in TEXTS[name] else 3)
    assert _words(after, good) == [0, 0]
    bad = [*good[:1], size + 7, *good[2:]]
    reported = size + 7 + {"masked": -1, "made": 1}.get(name, 0)
    assert _words(after, bad) == [reported, size]
    arrays = {p.name: np.zeros([int(str(d)) for d in p.shape], p.dtype.numpy) for p in func.params}
    arrays["x"][:] = bad
    with pytest.raises(ExecutionError, match=f"index {reported} is outside a dimension of {size}"):
        run_func(func, arrays)


def test_a_check_stands_outside_of_loops_that_it_does_not_need() -> None:
    text = print_func(report_indices(parse_func(ROWS)))
    assert text.index("if ") < text.index("for j in")
    text = print_func(report_indices(parse_func(MADE)))
    assert text.index("if ") > text.index("for j in"), "what the kernel writes is read in its place"


def test_functions_without_checks_stay() -> None:
    func = parse_func(ROWS.replace("check(x[i], 0, 10, 0)", "x[i]"))
    assert report_indices(func) is func
