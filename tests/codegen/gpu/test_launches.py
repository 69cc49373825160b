from __future__ import annotations

import pytest

from tilewright.codegen.gpu.launches import launches, symbol, tma_coordinates
from tilewright.core.errors import CodegenError
from tilewright.finalize.flatten import flatten
from tilewright.ir.loop.nodes import Tile
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import statements_in

TWO = """func @f.2(A: f32[N], W: f32[N], out C: f32[N]) {
  alloc T: f32[1] @local
  for i in grid(N) { for x in thread(64) { W[i] = A[i] } }
  for j in serial(N) { T[0] = W[j]  C[j] = T[0] }
}"""


def test_a_nest_is_a_launch() -> None:
    one, two = launches(parse_func(TWO))
    assert (one.name, one.threads, str(one.grid), one.block_var) == ("f$2", 64, "N", "i")
    assert (two.name, two.threads, str(two.grid), two.block_var) == ("f$2$$1", 1, "1", "")


def test_a_local_buffer_belongs_to_one() -> None:
    text = TWO.replace("W[i] = A[i]", "T[0] = A[i]")
    with pytest.raises(CodegenError, match="another launch"):
        launches(parse_func(text))


def test_a_loop_around_grids_is_launched_step_by_step() -> None:
    text = """func @f(A: f32[N], out C: f32[N]) {
      for t in serial(T) {
        for i in grid(N) { C[i] = A[i] }
        for x in thread(32) { A[x] = C[x] }
      }
      for j in grid(N) { C[j] += 1.0 }
    }"""
    one, two, three = launches(parse_func(text))
    assert [(x.loop, str(x.steps)) for x in (one, two, three)] == [
        ("t", "T"),
        ("t", "T"),
        ("", "1"),
    ]
    assert [(x.block_var, x.threads) for x in (one, two, three)] == [("i", 1), ("", 32), ("j", 1)]


COPIES = """func @f(A: bf16[N * 64], B: bf16[M * 192], out C: f32[8]) {
  for i in grid(M) {
    alloc T: bf16[4096] @shared
    alloc K: i64[1] @shared
    tile copy T[0 : 64] <- B[i * 64 : 192], K[0] using "tma_load_bf16_64x64"
    tile copy T[0 : 64] <- B[0 : 192], K[0] using "tma_load_bf16_64x64"
    tile copy T[0 : 64] <- A[0 : 64], K[0] using "tma_load_bf16_64x64"
    for x in thread(64) { C[0] = 0.0 }
  }
}"""


def test_matrices_whose_tiles_are_copied() -> None:
    (launch,) = launches(parse_func(COPIES))
    found = [(m.number, *map(str, m.shape), m.box) for m in launch.maps]
    assert found == [(1, "M", "192", (64, 64)), (0, "N", "64", (64, 64))]


def test_one_of_several_matrices_is_copied_within_its_bounds() -> None:
    func = parse_func(
        """func @f(A: bf16[4, 100, 6, 72], out C: f32[8]) {
          for i in grid(24) {
            alloc T: bf16[64, 128] @shared
            tile copy T[0 : 64, 0 : 128] <- A[i // 6 : 1, 64 : 64, i % 6 : 1, 0 : 128]
              using "tma_load_bf16_64x128_of_several"
            for x in thread(64) { C[0] = 0.0 }
          }
        }"""
    )
    (launch,) = launches(flatten(func))
    (found,) = launch.maps
    assert tuple(map(str, found.shape)) == ("4", "100", "6", "72")
    assert found.box == (1, 64, 1, 64)
    (tile,) = (s for s in statements_in(launch.body) if isinstance(s, Tile))
    assert [str(c) for c in tma_coordinates(tile.srcs[0])] == ["0", "i % 6", "64", "i // 6"]


def test_blocks_that_a_multiprocessor_should_have_room_for() -> None:
    text = "func @f(out C: f32[8]) { for i in grid(8) {min_blocks_per_sm=2} { C[i] = 0.0 } }"
    assert [x.min_blocks_per_sm for x in launches(parse_func(text))] == [2]
    assert [x.min_blocks_per_sm for x in launches(parse_func(COPIES))] == [0]


def test_names() -> None:
    assert symbol("conv.relu-2") == "conv$relu$2"
