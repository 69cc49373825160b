from __future__ import annotations

import numpy as np
import pytest

from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.distribute_registers import distribute_registers
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import buffers

TILE = """func @f(out A: f32[8, 12]) {
  for b in grid(1) {
    alloc T: f32[8, 12] @register
    for y in thread(2) { for x in thread(3) {
      for i in serial(4) { for j in serial(4) { T[y * 4 + i, x * 4 + j] = f32(i * 4 + j) } } } }
    for y2 in thread(2) { for x2 in thread(3) {
      for i2 in serial(4) { for j2 in serial(4) {
        A[y2 * 4 + i2, x2 * 4 + j2] = T[y2 * 4 + i2, x2 * 4 + j2] } } } }
  }
}"""


def test_a_thread_keeps_its_part() -> None:
    before = parse_func(TILE)
    after = distribute_registers(before)
    assert [str(d) for d in buffers(after)["T"].shape] == ["4", "4"]
    results = []
    for func in (before, after):
        a = np.zeros((8, 12), np.float32)
        run_func(func, {"A": a}, {})
        results.append(a)
    np.testing.assert_array_equal(*results)


def test_another_part_in_another_nest_is_refused() -> None:
    with pytest.raises(CodegenError, match="starts at"):
        distribute_registers(parse_func(TILE.replace("T[y2 * 4 + i2", "T[(1 - y2) * 4 + i2")))


def test_no_threads_no_change() -> None:
    func = parse_func("func @f(out A: f32[2]) { for i in serial(2) { A[i] = 1.0 } }")
    assert distribute_registers(func) is func


def test_every_one_of_several_buffers_shrinks() -> None:
    more = TILE.replace("alloc T", "alloc S: f32[6] @register alloc R: f32[6] @register alloc T")
    more = more.replace("{ T[y", "{ S[y * 3 + x] = 1.0 R[y * 3 + x] = 1.0 T[y")
    found = buffers(distribute_registers(parse_func(more)))
    assert [str(found[name].shape[0]) for name in "SRT"] == ["1", "1", "4"]


def test_a_part_may_be_read_at_several_numbers_behind_its_start() -> None:
    text = """func @f(X: f32[4, 8], out A: f32[8]) {
      for b in grid(2) {
        alloc T: f32[4, 8] @register
        for x in thread(4) { for g in serial(4) { T[g, b * 4 + x] = X[g, b * 4 + x] } }
        for y in thread(4) { A[b * 4 + y] = T[1, b * 4 + y] - T[3, b * 4 + y] }
      }
    }"""
    before = parse_func(text)
    after = distribute_registers(before)
    assert [str(d) for d in buffers(after)["T"].shape] == ["4", "1"]
    x = np.arange(32, dtype=np.float32).reshape(4, 8) ** 2
    for func in (before, after):
        a = np.zeros(8, np.float32)
        run_func(func, {"X": x, "A": a}, {})
        np.testing.assert_array_equal(a, x[1] - x[3])
