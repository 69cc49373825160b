from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Call
from tilewright.arith.walk import subexpressions
from tilewright.finalize.expand_math import expand_functions
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import expressions

TEXT = """
func @f(x: f32[N], out y: f32[N]) {
  for i in serial(N) { if 0.0 < exp(x[i]) { y[i] = tanh(x[i]) + sqrt(abs(x[i])) } }
}"""


def test_functions_everywhere_are_expanded() -> None:
    before = parse_func(TEXT)
    after = expand_functions(before)
    calls = {
        e.fn
        for root in expressions(after.body)
        for e in subexpressions(root)
        if isinstance(e, Call)
    }
    assert not calls & {"exp", "tanh"}
    x = np.linspace(-9, 9, 37, dtype="f4")
    expected, found = np.zeros(37, "f4"), np.zeros(37, "f4")
    run_func(before, {"x": x, "y": expected})
    run_func(after, {"x": x, "y": found})
    np.testing.assert_allclose(found, expected, rtol=3e-7)
