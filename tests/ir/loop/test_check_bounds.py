"""Accesses outside of their buffers are refused, whatever is between them and the loops."""

from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.core.errors import VerifyError
from tilewright.ir.loop.check_bounds import check_bounds, unproved_accesses
from tilewright.ir.loop.text import parse_func

TILED = """
func @scale(A: f32[N, 64], out B: f32[N, 64]) {
  for i.0 in parallel((N + 7) // 8) {
    for i.1 in serial(8) {
      for j in vectorize(64) {
        block "B" [vi: S(N) = i.0 * 8 + i.1, vj: S(64) = j] reads A[vi, vj] writes B[vi, vj]
          where i.0 * 8 + i.1 < N
          { B[vi, vj] = A[vi, vj] * 2.0 }
      }
    }
  }
}
"""
PADDED = """
func @pad(A: f32[N], out B: f32[N + 2]) {
  for i in serial(N + 2) {
    B[i] = A[i - 1 ? 0 < i & i - 1 < N]
  }
}
"""
BRANCHES = """
func @ends(A: f32[N], out B: f32[N]) {
  for i in serial(N) {
    if i < 1 { B[i] = A[0] } else { B[i] = A[i - 1] }
  }
}
"""
TILES = """
func @move(A: f32[32, 64], out B: f32[32, 64]) {
  alloc t: f32[16, 16] @local
  for i in serial(2) {
    for j in serial(4) {
      tile copy t[0 : 16, 0 : 16] <- A[i * 16 : 16, j * 16 : 16]
      tile copy B[i * 16 : 16, j * 16 : 16] <- t[0 : 16, 0 : 16]
    }
  }
}
"""
FUSED = """
func @fused(A: f32[M, 32], out B: f32[M, 32]) {
  for k in parallel((M + 5) // 6 * 2) {
    for i in serial(6) {
      for j in serial(16) {
        B[min(k % ((M + 5) // 6) * 6 + i, M - 1), k // ((M + 5) // 6) * 16 + j] = 0.0
      }
    }
  }
}
"""
GATHER = """
func @gather(T: i64[8], A: f32[100], out B: f32[8]) {
  for i in serial(8) { B[i] = A[T[i]] }
}
"""
COUNTED = """
func @counted(A: bool[9], out P: i64[9], out n: i64[1]) {
  n[0] = 0
  for k in serial(9) {
    P[n[0]] = k
    n[0] += i64(A[k])
  }
}
"""
ALL = (TILED, PADDED, BRANCHES, TILES, FUSED, GATHER, COUNTED)


@for_each("text", ALL, ids=lambda text: text.split("(")[0].split("@")[1])
def test_accesses_in_bounds(text: str) -> None:
    func = parse_func(text)
    check_bounds(func, func)
    tables = {GATHER: ["A[T[i]]"], COUNTED: ["P[n[0]]"]}.get(text, [])
    assert [found.split(":")[0] for found in unproved_accesses(func)] == tables


def test_what_only_the_compiler_knows_stays_where_it_is() -> None:
    """That `N` is `M` is a condition of the graph, which loops do not show."""
    text = TILED.replace("A: f32[N, 64]", "A: f32[M, 64]")
    func = parse_func(text)
    assert unproved_accesses(func)
    check_bounds(parse_func(text.replace("* 2.0", "* 3.0")), func)
    with pytest.raises(VerifyError, match="to be below M"):
        check_bounds(parse_func(text.replace("parallel((N + 7) // 8)", "parallel(N)")), func)


@for_each(
    ("text", "old", "new", "message"),
    [
        (TILED, "A[vi, vj] *", "A[vi + 1, vj] *", 'block "B" reads A[vi + 1, vj]: index 0'),
        (TILED, "{ B[vi, vj]", "{ B[vi, vj - 1]", "writes B[vi, vj - 1]: index 1 cannot be shown"),
        (TILED, "where i.0 * 8 + i.1 < N", "", 'block "B" reads A[vi, vj]: index 0'),
        (TILED, "where i.0 * 8 + i.1 < N", "where i.0 * 8 + i.1 <= N", "to be below N"),
        (TILED, "vectorize(64)", "vectorize(65)", "to be below 64"),
        (PADDED, "0 < i & ", "", "function pad reads A[i - 1 ? i - 1 < N]: index 0"),
        (PADDED, "i - 1 < N", "i < N + 2", "to be below N"),
        (BRANCHES, "i < 1", "i < 0", "reads A[i - 1]"),
        (BRANCHES, "for i in serial(N)", "for i in serial(N + 1)", "to be below N"),
        (TILES, "A[i * 16 : 16, j", "A[i * 17 : 16, j", "reads A[i * 17 : 16, j * 16 : 16]"),
        (TILES, "f32[16, 16] @local", "f32[15, 16] @local", "writes t[0 : 16, 0 : 16]: index 0"),
        (FUSED, "* 16 + j]", "* 17 + j]", "to be below 32"),
        (FUSED, "M - 1)", "M)", "to be below M"),
        (GATHER, "A[T[i]]", "A[T[i] + 1]", "reads A[T[i] + 1]: index 0"),
        (GATHER, "A[T[i]]", "A[T[i + 1]]", "reads A[T[i + 1]]: index 0"),
        (COUNTED, "i64(A[k])", "i64(A[k]) * 2", "writes P[n[0]]: index 0"),
    ],
)
def test_accesses_out_of_bounds(text: str, old: str, new: str, message: str) -> None:
    assert old in text
    with pytest.raises(VerifyError) as caught:
        check_bounds(parse_func(text.replace(old, new)), parse_func(text))
    assert caught.value.code == "loop.bounds"
    assert message in caught.value.message


def test_the_line_is_shown() -> None:
    wrong = parse_func(TILED.replace("A[vi, vj] *", "A[vi + 1, vj] *"), "scale.loops")
    with pytest.raises(VerifyError, match=r"\^{12}") as caught:
        check_bounds(wrong, parse_func(TILED))
    assert "B[vi, vj] = A[vi + 1, vj] * 2.0" in str(caught.value)
