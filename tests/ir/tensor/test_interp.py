from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.for_each import for_each
from tests.ir.tensor.test_text import SOFTMAX
from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.tensor import interp
from tilewright.ir.tensor.interp import run_program
from tilewright.ir.tensor.text import parse_program
from tilewright.lower.loop_nests import program_func


def run(source: str, sizes: dict[str, int] | None = None, **inputs: np.ndarray) -> np.ndarray:
    program = parse_program(source)
    return run_program(program, inputs, sizes)[program.outputs[0]]


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("limit", [1 << 23, 40, 1])
def test_softmax_in_chunks_of_any_size(limit, monkeypatch):
    monkeypatch.setattr(interp, "MAX_ELEMENTS", limit)
    x = random(5, 7)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(run(SOFTMAX, x=x), e / e.sum(1, keepdims=True), rtol=1e-6)


CONV = """
tensor @conv(x: f32[N, C, H, W], w: f32[O, C, 3, 3]) -> y {
  y: f32[N, O, H, W] = [n, o, i, j] sum(c in C, r in 3, s in 3)
    (x[n, c, i + r - 1, j + s - 1 ? (0 <= i + r - 1) & (i + r - 1 < H)
                                  & (0 <= j + s - 1) & (j + s - 1 < W)] * w[o, c, r, s])
}"""


@pytest.mark.parametrize("limit", [1 << 23, 500])
def test_padded_convolution(limit, monkeypatch):
    monkeypatch.setattr(interp, "MAX_ELEMENTS", limit)
    x, w = random(2, 3, 6, 5), random(4, 3, 3, 3)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("ncijrs,ocrs->noij", windows, w)
    np.testing.assert_allclose(run(CONV, x=x, w=w), expected, rtol=1e-4, atol=1e-5)


@for_each(
    ("op", "dtype", "empty"),
    [
        ("sum", np.float32, 0),
        ("prod", np.float32, 1),
        ("max", np.float32, -np.inf),
        ("min", np.int32, 2**31 - 1),
        ("max", np.uint8, 0),
        ("any", np.bool_, False),
        ("all", np.bool_, True),
    ],
)
def test_reductions(op, dtype, empty):
    kind = {np.float32: "f32", np.int32: "i32", np.uint8: "u8", np.bool_: "bool"}[dtype]
    source = f"tensor @f(x: {kind}[M, N]) -> y {{ y: {kind}[M] = [i] {op}(k in N) x[i, k] }}"
    x = np.abs(random(4, 9) * 10).astype(dtype)
    result = run(source, x=x)
    np.testing.assert_allclose(result, getattr(np, op)(x, axis=1).astype(dtype), rtol=1e-5)
    assert result.dtype == dtype
    assert run(source, x=x[:, :0]).tolist() == [empty] * 4
    assert run(source, x=x[:0]).shape == (0,)


def test_nan_wins_in_max():
    source = "tensor @f(x: f32[N]) -> y { y: f32[] = [] max(k in N) x[k] }"
    assert np.isnan(run(source, x=np.array([1, np.nan, 3], np.float32)))


def test_axes_that_no_factor_depends_on():
    source = """tensor @f(x: f32[M], z: f32[]) -> y {
      y: f32[M, 2] = [i, j] sum(k in K, q in 3) (x[i] * z[])
    }"""
    x, z = random(4), np.array(2, np.float32)
    expected = np.repeat(x[:, None] * 30, 2, 1)
    np.testing.assert_allclose(run(source, {"K": 5}, x=x, z=z), expected, rtol=1e-6)
    assert (run(source, {"K": 0}, x=np.full(4, np.inf, np.float32), z=z) == 0).all()


@for_each(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_half_precision_sums_in_single(kind, dtype):
    source = f"""tensor @f(x: {kind}[N]) -> y, z {{
      y: {kind}[] = [] sum(k in N) x[k]
      z: {kind}[] = [] sum(k in N) (x[k] * x[k])
    }}"""
    ones = np.ones(4096, dtype)  # added one by one in half precision this would stop early
    results = run_program(parse_program(source), {"x": ones})
    assert [float(v) for v in results.values()] == [4096, 4096]


def test_integer_products_wrap():
    source = "tensor @f(x: i8[N]) -> y { y: i8[] = [] sum(k in N) (x[k] * x[k]) }"
    assert run(source, x=np.array([100, 100], np.int8)) == np.int8(20000 % 256)


def test_wrong_inputs():
    with pytest.raises(ExecutionError, match="'x' cannot be an array of float64"):
        run(SOFTMAX, x=np.zeros((2, 2)))
    with pytest.raises(ExecutionError, match="no array for x"):
        run(SOFTMAX)


BODIES = (
    "x[i, j] + y[j, i]",
    "sum(k in 3) (x[i, k] * y[k, j])",
    "max(k in 3) (x[i, k] + y[j, 2 - k])",
    "sum(k in 3, q in 2) (x[k, q + i ? q + i < 3] * y[j, k])",
    "sum(k in 3) select(x[i, k] < y[k, j], x[i, k], 0.0)",
    "exp(x[2 - i, j]) * f32(i // 2 + j % 2)",
)


@given(st.sampled_from(BODIES), st.sampled_from(BODIES))
def test_the_loops_of_a_program_mean_the_same(first, second):
    source = f"""tensor @f(x: f32[3, 3], y: f32[3, 3]) -> b {{
      a: f32[3, 3] = [i, j] {first}
      b: f32[3, 3] = [i, j] {second.replace("y[", "a[")}
    }}"""
    program = parse_program(source)
    x, y = random(3, 3), random(3, 3).T.copy()
    b = np.zeros((3, 3), np.float32)
    run_func(program_func(program), {"x": x, "y": y, "b": b})
    np.testing.assert_allclose(b, run_program(program, {"x": x, "y": y})["b"], rtol=1e-5, atol=1e-5)
