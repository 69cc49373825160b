from __future__ import annotations

import numpy as np

from tilewright.finalize.gpu.loads_first import loads_first
from tilewright.finalize.unroll import unroll
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func


def _func(body: str) -> Func:
    return parse_func(f"""func @f(x: f32[64], i: i64[8], out y: f32[64]) {{
      for b in grid(1) {{ for t in thread(8) {{ {body} }} }}
    }}""")


def _check(body: str) -> str:
    """The text after the step, which computes the same, as do the steps behind it."""
    before = _func(body)
    after = loads_first(before)
    text = print_func(after)
    assert parse_func(text) == after
    rng = np.random.default_rng(0)
    x, i = rng.standard_normal(64, np.float32), rng.integers(0, 64, 8)
    results = []
    for func in (before, after, unroll(vectorize(after))):
        arrays = {"x": x, "i": i, "y": np.zeros(64, np.float32)}
        run_func(func, arrays, {})
        results.append(arrays["y"])
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    return " ".join(text.split())


def test_values_are_loaded_before_they_are_stored() -> None:
    text = _check("for u in unroll(4) { y[u * 8 + t] = x[u * 8 + t] * 2.0 }")
    assert (
        "for u in unroll(4) { y.value[u] = x[u * 8 + t] * 2.0 } "
        "for u in unroll(4) { y[u * 8 + t] = y.value[u] }"
    ) in text


def test_indices_are_loaded_before_values() -> None:
    text = _check("for u in unroll(2) { y[u * 8 + t] = x[i[u * 4 + t % 4]] }")
    assert "for u in unroll(2) { y.index0[u] = i[u * 4 + t % 4] }" in text
    assert "for u in unroll(2) { y.value[u] = x[y.index0[u]] }" in text


def test_vectors() -> None:
    text = _check("for u in unroll(2) { for v in vectorize(4) { y[u * 32 + t * 4 + v] = x[v] } }")
    assert "{ for v in vectorize(4) { y.value[u * 4 + v] = x[v] } }" in text
    assert "for v in vectorize(4) { y[u * 32 + t * 4 + v] = y.value[u * 4 + v] }" in text


def test_other_loops_stay() -> None:
    for body in (
        "for u in serial(4) { y[u * 8 + t] = x[u * 8 + t] }",
        "for u in unroll(4) { y[u * 8 + t] = y[u + t] + x[t] }",  # reads what it writes
        "for u in unroll(4) { y[u * 8 + t] = 1.0 }",
        "alloc s: f32[1] @local s[0] = 0.0 for u in unroll(4) { s[0] += x[u] }",
        "alloc s: f32[4] @shared for u in unroll(4) { s[u] = x[u] }",
        "for u in unroll(4) { if u + t < 9 { y[u * 8 + t] = x[u] } }",
    ):
        assert loads_first(_func(body)) == _func(body), body
