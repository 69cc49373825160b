from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.finalize.gpu.pad_shared import pad_shared
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import buffers

TURN = """func @f(A: f32[32, 32], out B: f32[32, 32]) {
  for b in grid(1) {
    alloc T: f32[32, 32] @shared
    for y in thread(8) { for x in thread(32) {
      for i in serial(4) { T[i * 8 + y, x] = A[i * 8 + y, x] } } }
    for y2 in thread(8) { for x2 in thread(32) {
      for i2 in serial(4) { B[i2 * 8 + y2, x2] = T[x2, i2 * 8 + y2] } } }
  }
}"""


def test_rows_read_across_are_longer() -> None:
    after = pad_shared(parse_func(TURN))
    assert [str(d) for d in buffers(after)["T"].shape] == ["32", "33"]
    a, b = np.arange(1024, dtype=np.float32).reshape(32, 32), np.zeros((32, 32), np.float32)
    run_func(after, {"A": a, "B": b}, {})
    np.testing.assert_array_equal(b, a.T)


@for_each(
    ("old", "new"),
    [
        ("T[x2, i2 * 8 + y2]", "T[i2 * 8 + y2, x2]"),
        ("for i2 in serial", "for i2 in vectorize"),
        ("@shared", ""),
    ],
)
def test_others_stay(old: str, new: str) -> None:
    func = parse_func(TURN.replace(old, new))
    assert pad_shared(func) == func


VECTORS = """func @f(A: f32[32, 16], out B: f32[16, 32]) {
  for b in grid(1) {
    alloc T: f32[32, 16] @shared
    for y in thread(32) { for x in thread(4) { for v in vectorize(4) {
      T[y, x * 4 + v] = A[y, x * 4 + v] } } }
    for x2 in thread(32) { for k in unroll(16) { B[k, x2] = T[x2, k] } }
  }
}"""


def test_rows_written_in_vectors_are_one_vector_longer() -> None:
    after = pad_shared(parse_func(VECTORS))
    assert [str(d) for d in buffers(after)["T"].shape] == ["32", "20"]
    a, b = np.arange(512, dtype=np.float32).reshape(32, 16), np.zeros((16, 32), np.float32)
    run_func(after, {"A": a, "B": b}, {})
    np.testing.assert_array_equal(b, a.T)


TURNED = """func @f(A: f32[32, 8], out B: f32[8, 32]) {
  for b in grid(1) {
    alloc T: f32[8, 32] @shared
    for t in thread(256) { T[t % 8, t // 8] = A[t // 8, t % 8] }
    for k in thread(8) { for x in thread(8) { for v in vectorize(4) {
      B[k, x * 4 + v] = T[k, x * 4 + v] } } }
  }
}"""


def test_rows_that_are_written_across_are_longer() -> None:
    after = pad_shared(parse_func(TURNED))
    assert [str(d) for d in buffers(after)["T"].shape] == ["8", "36"]
    a, b = np.arange(256, dtype=np.float32).reshape(32, 8), np.zeros((8, 32), np.float32)
    run_func(after, {"A": a, "B": b}, {})
    np.testing.assert_array_equal(b, a.T)


def test_single_values_have_no_rows() -> None:
    body = "alloc T: f32[] @shared\n T[] = 1.0\n B[] = T[]"
    func = parse_func(f"func @f(out B: f32[]) {{ for b in grid(1) {{ {body} }} }}")
    assert pad_shared(func) == func
