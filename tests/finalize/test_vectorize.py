from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.errors import CodegenError
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func, print_func


def _same(text: str, sizes: dict[str, int] | None = None, **arrays: np.ndarray) -> str:
    before = parse_func(text)
    after = vectorize(before)
    expected = {k: v.copy() for k, v in arrays.items()}
    found = {k: v.copy() for k, v in arrays.items()}
    run_func(before, expected, sizes)
    run_func(after, found, sizes)
    for name in arrays:
        np.testing.assert_array_equal(found[name], expected[name])
    printed = print_func(after)
    assert "vectorize(" not in printed
    return printed


def _x(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(n).astype("f4")


def test_strides_and_broadcasts() -> None:
    text = _same(
        """
        func @f(x: f32[64], out y: f32[64]) {
          for i in serial(4) {
            for j in vectorize(8) { y[i * 8 + j] = x[i * 8 + j] + x[2 * j] * x[i] + x[63 - j] }
          }
        }""",
        x=_x(64),
        y=_x(64),
    )
    assert "y[ramp(i * 8, 1, 8)]" in text
    assert "x[ramp(0, 2, 8)]" in text
    assert "x[ramp(63, -1, 8)]" in text
    assert "x[i]" in text


@for_each("n", [0, 1, 7, 8, 13])
def test_guards_become_masks(n: int) -> None:
    _same(
        """
        func @f(x: f32[N], out y: f32[N]) {
          for i in serial((N + 7) // 8) {
            for j in vectorize(8) {
              if i * 8 + j < N { if 2 <= i * 8 + j { y[i * 8 + j] = x[i * 8 + j] * 2.0 } }
            }
          }
        }""",
        {"N": n},
        x=_x(n),
        y=_x(n),
    )


def test_indices_from_arithmetic_and_memory() -> None:
    _same(
        """
        func @f(x: f32[16], n: i64[16], out y: f32[16]) {
          for j in vectorize(16) { y[j // 4 + j % 4 * 4] = x[n[j]] + x[j * j % 16 ? j < 9] }
        }""",
        x=_x(16),
        n=np.random.default_rng(1).integers(0, 16, 16),
        y=_x(16),
    )


def test_loops_conditions_and_memory_inside() -> None:
    _same(
        """
        func @f(x: f32[12], out y: f32[4]) {
          for j in vectorize(4) {
            y[j] = 0.0
            for k in serial(3) {
              if k != 1 { y[j] = y[j] + x[k * 4 + j] } else { y[j] = y[j] * 2.0 }
            }
          }
        }""",
        x=_x(12),
        y=_x(4),
    )


def test_a_masked_store_to_a_local_buffer_is_a_choice() -> None:
    text = _same(
        """
        func @f(x: f32[6], out y: f32[8]) {
          alloc t: f32[8] @local
          for i in vectorize(8) { t[i] = 0.0 }
          for j in vectorize(8) { if j < 6 { t[j] = x[j] } }
          for k in vectorize(8) { y[k] = t[k] }
        }""",
        x=_x(6),
        y=_x(8),
    )
    assert "t[ramp(0, 1, 8)] = select(" in text


def test_masked_lanes_of_a_local_buffer_may_lie_outside() -> None:
    _same(
        """
        func @f(x: f32[8], out y: f32[6]) {
          alloc t: f32[6] @local
          for i in vectorize(6) { t[i] = 0.0 }
          for j in vectorize(8) { if 2 <= j { t[7 - j] = x[j] } }
          for k in vectorize(6) { y[k] = t[k] }
        }""",
        x=_x(8),
        y=_x(6),
    )


def test_extents_that_are_no_vector() -> None:
    text = _same(
        """
        func @f(x: f32[N], out y: f32[N]) {
          for j in vectorize(1) { y[j] = x[j] }
        }""",
        {"N": 3},
        x=_x(3),
        y=_x(3),
    )
    assert "y[0] = x[0]" in text


def test_a_sum_over_lanes_is_refused() -> None:
    text = "func @f(x: f32[8], out y: f32[1]) { for j in vectorize(8) { y[0] = y[0] + x[j] } }"
    with pytest.raises(CodegenError, match=r"vectorize.reduction.*y"):
        vectorize(parse_func(text))


def test_choosing_between_statements_by_lane_is_refused() -> None:
    text = """
    func @f(out y: f32[8]) {
      for j in vectorize(8) { if j < 4 { y[j] = 1.0 } else { y[j] = 2.0 } }
    }"""
    with pytest.raises(CodegenError, match=r"vectorize.statement"):
        vectorize(parse_func(text))


def test_no_masks_on_a_local_buffer_that_holds_every_vector() -> None:
    text = _same(
        """
        func @f(x: f32[24], out y: f32[20]) {
          alloc s: f32[24] @register
          for i in unroll(3) { for j in vectorize(8) { s[i * 8 + j] = x[i * 8 + j] } }
          for i in unroll(3) {
            for j in vectorize(8) { if i * 8 + j < 20 { y[i * 8 + j] = s[i * 8 + j] * 2.0 } }
          }
          for i in unroll(2) {
            for j in vectorize(8) { if j < 4 { y[i * 8 + j] = s[i * 16 + j] } }
          }
        }""",
        x=_x(24),
        y=_x(20),
    )
    assert "s[ramp(i * 8, 1, 8)] *" in text
    assert "s[ramp(i * 16, 1, 8)]" in text


def test_masks_stay_where_a_vector_may_leave_a_local_buffer() -> None:
    text = _same(
        """
        func @f(x: f32[24], out y: f32[24]) {
          alloc s: f32[20] @register
          for i in unroll(3) {
            for j in vectorize(8) { if i * 8 + j < 20 { s[i * 8 + j] = x[i * 8 + j] } }
          }
          for i in unroll(3) {
            for j in vectorize(8) { if i * 8 + j < 20 { y[i * 8 + j] = s[i * 8 + j] } }
          }
        }""",
        x=_x(24),
        y=_x(24),
    )
    assert "= s[ramp(i * 8, 1, 8) ? " in text


def test_masked_stores_to_memory_of_several_threads_write_no_other_lanes() -> None:
    text = """
        func @f(x: f32[24], out y: f32[24]) {{
          alloc s: f32[24] @{scope}
          for i in {kind}(3) {{
            for j in vectorize(8) {{ if i * 8 + j < 20 {{ s[i * 8 + j] = x[i * 8 + j] }} }}
          }}
          for i in {kind}(3) {{ for j in vectorize(8) {{ y[i * 8 + j] = s[i * 8 + j] }} }}
        }}"""
    for scope, kind in (("shared", "thread"), ("local", "parallel")):
        printed = print_func(vectorize(parse_func(text.format(scope=scope, kind=kind))))
        assert printed.count("s[ramp(i * 8, 1, 8) ? ") == 1
