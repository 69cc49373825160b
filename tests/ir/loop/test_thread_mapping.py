from __future__ import annotations

import numpy as np
import pytest

from tilewright.arith.evaluate import evaluate
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.parse import parse_stmt
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.thread_mapping import (
    ThreadMapping,
    is_grid_sync,
    private_buffers,
    thread_mappings,
    thread_values,
    threads_of,
)
from tilewright.ir.loop.walk import loops

NESTS = """func @f(out A: i64[8, 4], out B: i64[16]) {
  for b in grid(1) {
    for y in thread(8) { for k in serial(2) { for x in thread(4) { A[y, x] = y } } }
    for z in thread(16) { B[z] = z }
  }
}"""


def test_numbers_of_threads() -> None:
    body = parse_func(NESTS).body
    threads = threads_of(body)
    found = thread_mappings(body, threads)
    values = thread_values(found, threads)
    assert threads == 32
    assert [evaluate(values["y"], {"thread": t}) for t in (0, 3, 4, 31)] == [0, 0, 1, 7]
    assert [evaluate(values["x"], {"thread": t}) for t in (0, 3, 4, 31)] == [0, 3, 0, 3]
    assert found["y"].is_full
    assert not found["z"].is_full
    assert found["z"].active == 16


def test_an_extent_must_be_known() -> None:
    with pytest.raises(CodegenError, match="not constant"):
        threads_of(parse_func("func @f(out A: i64[N]) { for x in thread(N) { A[x] = x } }").body)


PRIVATE = """func @f(out A: f32[4], out B: f32[4]) {
  alloc T: f32[4] @register
  for b in grid(1) {
    for x in thread(4) { T[x] = 2.0 }
    for z in thread(4) { A[z] = T[z]  B[z] = T[3 - z] }
  }
}"""


def test_every_thread_has_its_own_registers() -> None:
    func = parse_func(PRIVATE)
    assert private_buffers(func.body) == {"T"}
    arrays = {name: np.zeros(4, np.float32) for name in "AB"}
    run_func(func, arrays, {})
    assert arrays["A"].tolist() == [2.0] * 4
    assert np.isnan(arrays["B"]).all()  # what other threads have written is not there


def test_shared_memory_is_seen_by_all() -> None:
    func = parse_func(PRIVATE.replace("@register", "@shared"))
    arrays = {name: np.zeros(4, np.float32) for name in "AB"}
    run_func(func, arrays, {})
    assert arrays["B"].tolist() == [2.0] * 4


def test_what_threads_combine_they_all_have() -> None:
    func = parse_func("""func @f(A: i64[8], out B: i64[8]) {
      for b in grid(1) {
        alloc s: i64[2] @register
        for y in thread(2) {
          for k in allreduce(4) {
            if k == 0 { s[y] = 0 }
            s[y] += A[y * 4 + k]
          }
        }
        for y2 in thread(2) { for x in thread(4) { B[y2 * 4 + x] = s[y2] } }
      }
    }""")
    a, b = np.arange(8), np.zeros(8, np.int64)
    run_func(func, {"A": a, "B": b}, {})
    assert b.tolist() == [6] * 4 + [22] * 4
    assert threads_of(func.body) == 8


def test_registers_outlive_a_block_that_stays() -> None:
    func = parse_func("""func @f(out A: f32[3, 2]) {
      alloc T: f32[1] @register
      for t in serial(3) {grid_sync=1} {
        for b in grid(2) {
          for x in thread(1) { T[0] = select(t == 0, f32(b), T[0] * 10.0)  A[t, b] = T[0] + 1.0 }
        }
      }
    }""")
    arrays = {"A": np.zeros((3, 2), np.float32)}
    run_func(func, arrays, {})
    assert arrays["A"].tolist() == [[1.0, 2.0], [1.0, 11.0], [1.0, 101.0]]
    assert [s.name for s in loops(func.body) if is_grid_sync(s)] == ["t"]


def test_threads_count_from_0_in_roles_and_their_groups() -> None:
    body = parse_stmt("""
        roles {
          consumer warps(8) {
            for w in warp(8) { }
            for g in group(2) { for v in warp(4) { } }
          }
          producer warps(4) { for t in thread(1) { } }
        }""")
    assert threads_of(body) == 384
    found = thread_mappings(body, 384)
    assert found["w"] == ThreadMapping(8, 32, 256)
    assert found["v"] == ThreadMapping(4, 32, 128)
    assert found["t"] == ThreadMapping(1, 1, 128)
