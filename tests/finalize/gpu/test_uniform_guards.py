from __future__ import annotations

import numpy as np

from tilewright.finalize.gpu.uniform_guards import uniform_guards
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func


def _func(body: str) -> Func:
    return parse_func(f"""func @f(x: f32[34, 5], out y: f32[5]) {{
      for b in grid(1) {{
        for t in thread(8) {{
          alloc s: f32[1] @local
          s[0] = 0.0
          {body}
          if t < 5 {{ y[t] = s[0] }}
        }}
      }}
    }}""")


def _check(body: str) -> str:
    """The text after the step, which computes the same."""
    before = _func(body)
    after = uniform_guards(before)
    text = print_func(after)
    assert parse_func(text) == after
    x = np.arange(170, dtype=np.float32).reshape(34, 5)
    results = []
    for func in (before, after):
        arrays = {"x": x, "y": np.zeros(5, np.float32)}
        run_func(func, arrays, {})
        results.append(arrays["y"])
    np.testing.assert_array_equal(*results)
    return " ".join(text.split())


def test_what_does_not_depend_on_a_loop_goes_out_of_it() -> None:
    text = _check("for k in serial(34) { if t < 5 { s[0] += x[k, t] } }")
    assert "if t < 5 { for k in serial(34) { s[0] += x[k, t] } }" in text


def test_the_last_of_unrolled_iterations_is_tested_first() -> None:
    text = _check(
        "for k in serial(9) { for p in unroll(4) { if k * 4 + p < 33 & t < 5 {"
        " s[0] += x[k * 4 + p, t] } } }"
    )
    assert (
        "if t < 5 { for k in serial(9) { if k < 8 "
        "{ for p in unroll(4) { s[0] += x[k * 4 + p, t] } } else "
        "{ for p in unroll(4) { if k * 4 + p < 33 { s[0] += x[k * 4 + p, t] } } } } }"
    ) in text


def test_the_last_block_is_told_from_the_others() -> None:
    text = _check("for p in unroll(4) { if b * 20 + p * 8 + t < 30 { s[0] += x[p, t % 5] } }")
    assert "if b * 20 + t < 6 { for p in unroll(4) { s[0] += x[p, t % 5] } } else {" in text


def test_a_serial_loop_of_the_block_counts_too() -> None:
    func = parse_func("""func @f(x: f32[34, 5], out y: f32[8]) {
      for b in grid(1) {
        alloc s: f32[8] @shared
        for t in thread(8) { s[t] = 0.0 }
        for k in serial(9) {
          for t in thread(8) {
            for p in unroll(4) { if k * 4 + p < 33 { s[t] += x[k * 4 + p, t % 5] } }
          }
        }
        for t in thread(8) { y[t] = s[t] }
      }
    }""")
    text = " ".join(print_func(uniform_guards(func)).split())
    assert "for t in thread(8) { if k < 8 { for p in unroll(4) { s[t] += x[k * 4 + p" in text


def test_a_guard_of_whole_vectors_is_one_of_the_first_element() -> None:
    text = _check(
        "for k in serial(9) { for p in unroll(2) { if k * 4 + p < 32 & t < 5 {"
        " s[0] += x[k * 4 + p, t] } } }"
    )
    assert "for k in serial(9) { if k < 8 { for p in unroll(2) { s[0] +=" in text


def test_other_guards_stay() -> None:
    for body in (
        "for p in unroll(4) { if p + t < 5 { s[0] += x[p, t] } }",  # in no serial loop
        "for k in serial(4) { if x[0, 0] < 1.0 & t < 5 { s[0] += x[k, t] } }",  # reads memory
        "for k in serial(2) { for p in unroll(3) { if 3 - p + t < 5 * k { s[0] += x[p, 0] } } }",
        "for k in serial(4) { if t < 5 { s[0] += x[k, t] } else { s[0] = 1.0 } }",
    ):
        assert uniform_guards(_func(body)) == _func(body), body
