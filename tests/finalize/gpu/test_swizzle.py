from __future__ import annotations

import pytest

from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.swizzle import swizzle
from tilewright.ir.loop.text import parse_func, print_func

TEXT = """func @f(A: bf16[1024], out C: f32[1024]) {
  for b in grid(1) {
    alloc T: bf16[1024] @shared
    alloc S: f32[256] @fragment
    for x in thread(128) { T[ramp(x * 8, 1, 8)] = A[ramp(x * 8, 1, 8)] }
    for w in warp(1) { tile mma.nn S[0 : 16] <- T[0 : 64], T[0 : 64] using "mma_bf16_16x16_nn" }
    %s
  }
}"""


def test_pieces_change_places_within_their_rows() -> None:
    text = print_func(swizzle(parse_func(TEXT % "")))
    assert "T[ramp(x * 8 ^ x // 8 % 8 * 8, 1, 8)] = A[ramp(x * 8, 1, 8)]" in text


def test_long_rows_lie_in_panels_of_128_bytes() -> None:
    text = """func @f(A: f32[2048], B: f32[2048], out C: f32[4]) {
      for b in grid(1) {
        alloc T: f32[2048] @shared
        alloc U: f32[2048] @shared
        alloc S: f32[1024] @fragment
        for x in thread(512) { T[ramp(x * 4, 1, 4)] = A[ramp(x * 4, 1, 4)] }
        for w in warp(4) {
          tile mma.tt S[0 : 64] <- T[w * 16 : 64], U[0 : 32] using "wgmma_f32_64_tt"
        }
      }
    }"""
    found = print_func(swizzle(parse_func(text)))
    assert "T[w % 2 * 16 + w // 2 % 2 * 1024 + w // 4 * 32 : 64]" in found


def test_of_what_lies_across_a_sum_a_panel_has_the_rows_of_a_statement() -> None:
    text = """func @f(A: f16[1024], out C: f32[4]) {
      for b in grid(1) {
        alloc T: f16[16384] @shared
        alloc W: f16[2048] @fragment
        alloc S: f32[2048] @fragment
        for x in thread(128) { T[ramp(x * 8 + 8192, 1, 8)] = A[ramp(x * 8, 1, 8)] }
        for w in warp(4) {
          tile mma.nn S[0 : 128] <- W[0 : 128], T[0 : 128] using "wgmma_f16_128_rs_n"
          tile mma.nn S[0 : 128] <- W[64 : 128], T[8192 : 128] using "wgmma_f16_128_rs_n"
        }
      }
    }"""
    found = print_func(swizzle(parse_func(text)))
    assert "W[64 : 128], T[8192 : 128]" in found
    assert "4096" in found  # from one panel to the next


def test_eight_rows_are_in_eight_banks() -> None:
    for row_bytes in (128, 256, 512):
        for piece in range(row_bytes // 16):
            places = {row * row_bytes + (piece ^ row % 8) * 16 for row in range(8)}
            assert len({place % 128 for place in places}) == 8


def test_others_may_not_read_it() -> None:
    with pytest.raises(CodegenError, match="more than mma instructions"):
        swizzle(parse_func(TEXT % "for y in thread(64) { C[y] = f32(T[y]) }"))


def test_nothing_to_do() -> None:
    func = parse_func("func @f(A: f32[4], out C: f32[4]) { for x in thread(4) { C[x] = A[x] } }")
    assert swizzle(func) is func
