from __future__ import annotations

import numpy as np

from tests.finalize.math.jit_expression import jit
from tests.for_each import for_each
from tilewright.arith.expr import Call, Cast, Expr, Var, call, const
from tilewright.arith.walk import subexpressions
from tilewright.core.dtypes import BF16, BOOL, F16, F32, DType
from tilewright.finalize.math.expand import expand_calls, expand_math
from tilewright.finalize.math.table import EXPANSIONS
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import expressions

X = Var("x", F32)


def calls(e: Expr) -> set[str]:
    return {x.fn for x in subexpressions(e) if isinstance(x, Call)}


def test_nested_calls_are_all_expanded() -> None:
    e = expand_calls(call("log", call("exp", call("tanh", X)) + call("cos", X) + 2.0))
    assert calls(e) <= {"fma", "abs", "copysign"}
    x = np.linspace(-3, 3, 1001, dtype=np.float32)
    want = np.log(np.exp(np.tanh(x)) + np.cos(x) + 2)
    np.testing.assert_allclose(jit(e, [("x", F32)])(x), want, rtol=1e-5, atol=1e-6)


def test_what_has_no_expansion_stays_the_same_object() -> None:
    e = call("sqrt", X) + call("fma", X, X, X)
    assert expand_calls(e) is e


def test_shared_arguments_are_expanded_once() -> None:
    inner = call("exp", X)
    once = sum(1 for _ in subexpressions(expand_calls(inner)))
    twice = sum(1 for _ in subexpressions(expand_calls(inner + inner * inner)))
    assert twice == once + 2


def test_power_of_a_literal_needs_no_logarithm() -> None:
    assert expand_calls(call("pow", X, const(2.0, F32))) is X * X


@for_each("dtype", [F16, BF16], ids=str)
@for_each("fn", ["exp", "tanh", "erf", "sin", "pow"])
def test_narrow_floats_are_computed_in_f32(fn: str, dtype: DType) -> None:
    x = Var("x", dtype)
    args = (x, const(1.5, dtype)) if fn == "pow" else (x,)
    e = expand_calls(call(fn, *args))
    assert isinstance(e, Cast)
    assert (e.dtype, e.a.dtype) == (dtype, F32)
    inner = EXPANSIONS[fn, "f32"](*(Cast(F32, a) if a is x else const(1.5, F32) for a in args))
    assert calls(e) == calls(inner)


def test_isinf_of_narrow_floats_is_a_bool() -> None:
    e = expand_calls(call("isinf", Var("x", BF16)))
    assert e.dtype == BOOL
    assert not [x for x in subexpressions(e) if x.dtype == F32]


def test_f16_results_are_rounded_f32_results() -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = values[np.isfinite(values)]
    e = expand_calls(call("exp", Var("x", F16)))
    with np.errstate(over="ignore"):
        want = np.exp(finite.astype(np.float64)).astype(np.float16)
    got = jit(e, [("x", F16)])(finite)
    # Results a hair from the middle of two f16 numbers may be rounded the other way.
    assert (got.view(np.int16) - want.view(np.int16)).max() <= 1
    assert (got == want).mean() > 0.999


TEXT = """
func @f(x: f32[N], out y: f32[N]) {
  for i in serial(N) { if 0.0 < exp(x[i]) { y[i] = tanh(x[i]) + sqrt(abs(x[i])) } }
}"""


def test_functions_everywhere_are_expanded() -> None:
    before = parse_func(TEXT)
    after = expand_math(before)
    found_calls = {fn for root in expressions(after.body) for fn in calls(root)}
    assert not found_calls & {"exp", "tanh"}
    x = np.linspace(-9, 9, 37, dtype="f4")
    expected, found = np.zeros(37, "f4"), np.zeros(37, "f4")
    run_func(before, {"x": x, "y": expected})
    run_func(after, {"x": x, "y": found})
    np.testing.assert_allclose(found, expected, rtol=3e-7)
