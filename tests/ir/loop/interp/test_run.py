from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func

MATMUL = """
func @mm(A: f32[M, K], B: f32[K, N], out C: f32[M, N]) {
  for i, j, k in serial(M, N, K) {
    block "C" [vi: S(M) = i, vj: S(N) = j, vk: R(K) = k] reads A[vi, vk], B[vk, vj] writes C[vi, vj]
      init { C[vi, vj] = 0.0 }  { C[vi, vj] += A[vi, vk] * B[vk, vj] }
  } }
"""


def run(source: str, sizes: dict[str, int] | None = None, **buffers: np.ndarray) -> None:
    run_func(parse_func(source), buffers, sizes)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("m", "n", "k"), [(3, 5, 7), (1, 1, 1), (0, 4, 2), (40, 50, 50)])
def test_matmul(m, n, k):
    a, b, c = random(m, k), random(k, n), np.full((m, n), np.nan, np.float32)
    run(MATMUL, A=a, B=b, C=c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_no_reduction_step_leaves_the_output_alone():
    c = np.full((2, 2), 7, np.float32)
    run(MATMUL, A=random(2, 0), B=random(0, 2), C=c)
    assert (c == 7).all()  # `init` belongs to the first step, and there is none


def test_split_loops_with_a_predicate_and_a_register_tile():
    source = """
    func @scale(x: f32[N], out y: f32[N]) {
      for o in parallel(N // 4 + 1) {
        alloc t: f32[4] @register
        for i in unroll(4) {
          block "t" [v: S(N) = o * 4 + i, w: S(4) = i] reads x[v] writes t[w]
            where o * 4 + i < N
            { t[w] = x[v] * 2.0 }
        }
        for j in vectorize(4) {
          if o * 4 + j < N { y[o * 4 + j] = t[j] }
        }
      }
    }"""
    x, y = random(11), np.zeros(11, np.float32)
    run(source, x=x, y=y)
    np.testing.assert_array_equal(y, x * 2)


def test_reading_what_was_never_written_shows():
    y = np.zeros(3, np.float32)
    run("func @f(out y: f32[3]) { alloc t: f32[3]  for i in serial(3) { y[i] = t[i] } }", y=y)
    assert np.isnan(y).all()


def test_sizes_come_from_shapes_or_from_the_caller():
    y = np.zeros(6, np.int64)
    source = "func @f(out y: i64[N * 2]) { for i in serial(N * 2) { y[i] = i * S } }"
    run(source, {"N": 3, "S": 5}, y=y)
    np.testing.assert_array_equal(y, np.arange(6) * 5)
    with pytest.raises(ExecutionError, match="no value for the size S"):
        run(source, {"N": 3}, y=y)


def test_lanes_under_a_vector_condition():
    source = """
    func @f(x: f32[5], out y: f32[5]) {
      if ramp(0, 1, 8) < broadcast(5, 8) {
        y[ramp(0, 1, 8)] = x[ramp(0, 1, 8)] + 1.0
      } else { y[ramp(0, 1, 8) - 3] = 9.0 }
    }"""
    x, y = random(5), np.zeros(5, np.float32)
    run(source, x=x, y=y)
    np.testing.assert_array_equal(y[:2], x[:2] + 1)
    np.testing.assert_array_equal(y[2:], [9, 9, 9])


def test_masked_accesses():
    source = """
    func @f(x: f32[4], p: i64[4], out y: f32[6]) {
      for i in serial(6) { y[i ? i < 5] = x[p[i] ? (i < 4) & (i != 1)] + 1.0 }
    }"""
    x, y = random(4), np.zeros(6, np.float32)
    run(source, x=x, p=np.array([3, 99, 1, 0]), y=y)
    np.testing.assert_array_equal(y, [x[3] + 1, 1, x[1] + 1, x[0] + 1, 1, 0])


def test_scalars_live_in_buffers_without_dimensions():
    y = np.zeros((), np.int32)
    run("func @f(x: i32[], out y: i32[]) { y[] = x[] + 1:i32 }", x=np.array(4, np.int32), y=y)
    assert y == 5


@pytest.mark.parametrize("index", ["i + 3", "i - 1", "ramp(i, 1, 4)"])
def test_out_of_bounds(index, golden):
    with pytest.raises(ExecutionError) as caught:
        run(
            f"func @f(x: f32[5], out y: f32[5]) {{ for i in serial(5) {{ y[0] = x[{index}] }} }}"
            if "ramp" not in index
            else f"func @f(x: f32[5], out y: f32[9]) {{ for i in serial(5) {{"
            f" y[{index}] = x[{index}] }} }}",
            x=random(5),
            y=np.zeros(9 if "ramp" in index else 5, np.float32),
        )
    golden(str(caught.value))


def test_a_block_outside_its_domain(golden):
    source = """
    func @f(out y: f32[8]) {
      for i in serial(8) {
        block "y" [v: S(5) = i] writes y[v] { y[v] = 1.0 }
      }
    }"""
    with pytest.raises(ExecutionError) as caught:
        run(source, y=np.zeros(8, np.float32))
    golden(str(caught.value))


@for_each(
    ("array", "message"),
    [
        (np.zeros((4, 4), np.float64), "cannot be an array of float64"),
        (np.zeros(4, np.float32), "shape \\[4\\]"),
        (None, "no array for C"),
    ],
)
def test_wrong_arguments(array, message):
    arrays = {} if array is None else {"C": array}
    with pytest.raises(ExecutionError, match=message):
        run(MATMUL, A=random(4, 4), B=random(4, 4), **arrays)


def test_read_only_outputs():
    c = np.zeros((2, 2), np.float32)
    c.flags.writeable = False
    with pytest.raises(ExecutionError, match="read-only"):
        run(MATMUL, A=random(2, 2), B=random(2, 2), C=c)
