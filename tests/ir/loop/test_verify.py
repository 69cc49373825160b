from __future__ import annotations

import pytest

from tilewright.arith.expr import Reduce, Var, const
from tilewright.core.dtypes import F32
from tilewright.core.errors import VerifyError
from tilewright.ir.loop.nodes import Buffer, Func, Seq, Store
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.verify import verify_func

GOOD = """
func @mm(A: f32[M, K], B: f32[K, N], out C: f32[M, N])
  layout B = pack [K, N] -> [d0, d1]
{
  alloc T: f32[4] @register
  for i in parallel(M) {
    for j in serial(N) {
      for k in serial(K) {
        block "C" [vi: S(M) = i, vj: S(N) = j, vk: R(K) = k]
          reads A[vi, vk], B[vk, vj] writes C[vi, vj]
          init { C[vi, vj] = 0.0 }
          { C[vi, vj] += A[vi, vk] * B[vk, vj] }
      }
    }
    for u in unroll(4) {
      if i < 4 { T[u ? u < 2] = 1.0 }
    }
    tile fill C[i : 4, 0 : N]
  }
}
"""

# What is wrong, and the edit of the good function that makes it so.
WRONG = {
    "store-dtype": ("= 0.0", "= 0"),
    "store-to-input": ("out C", "C"),
    "missing-read": ("reads A[vi, vk], B", "reads B"),
    "missing-write": (" writes C[vi, vj]", ""),
    "duplicate-loop": ("for j in", "for i in"),
    "annotation": ("parallel(M) {", "parallel(M) {partitions=1} {"),
    "annotation-of-block": ("C[vi, vj]\n", "C[vi, vj] {shift_inward=1}\n"),
    "duplicate-buffer": ("alloc T:", "alloc A: f32[1] alloc T:"),
    "duplicate-iterator": ("vj: S(N)", "vi: S(N)"),
    "iterator-called-like-a-loop": ("vj: S(N)", "k: S(N)"),
    "loop-kind": ("parallel(M)", "strided(M)"),
    "vectorize-symbolic": ("unroll(4)", "vectorize(N)"),
    "extent-dtype": ("serial(N)", "serial(1.5)"),
    "scope": ("@register", "@nowhere"),
    "parameter-scope": ("A: f32[M, K]", "A: f32[M, K] @local"),
    "rank": ("A[vi, vk] *", "A[vi] *"),
    "loop-in-body": ("* B[vk, vj] }", "* B[k, vj] }"),
    "iterator-outside": ("if i < 4", "if vi < 4"),
    "loop-outside": ("tile fill C[i", "tile fill C[k"),
    "condition-dtype": ("if i < 4", "if i"),
    "mask-dtype": ("u < 2]", "u]"),
    "iterator-kind": ("vk: R(K)", "vk: Q(K)"),
    "predicate-dtype": ("writes C[vi, vj]\n", "writes C[vi, vj] where i\n"),
    "tile-op": ("tile fill", "tile paint"),
    "tile-to-input": ("tile fill C", "tile fill A"),
    "region-rank": ("tile fill C[i : 4, 0 : N]", "tile fill C[i : 4]"),
    "layout-parts": ("[d0, d1]", "[d0]"),
    "layout-axis": ("[d0, d1]", "[d0, d2]"),
    "layout-name": ("layout B", "layout D"),
    "outputs-first": ("A: f32[M, K], B: f32[K, N], out C", "out A: f32[M, K], B: f32[K, N], C"),
}


def test_a_good_function():
    verify_func(parse_func(GOOD))


@pytest.mark.parametrize("wrong", WRONG)
def test_broken_rules(wrong, golden):
    before, after = WRONG[wrong]
    assert before in GOOD
    with pytest.raises(VerifyError) as caught:
        verify_func(parse_func(GOOD.replace(before, after, 1)))
    golden(str(caught.value), wrong)


def test_two_blocks_of_one_name():
    block = 'block "x" [] writes C[0] { C[0] = 1.0 }'
    with pytest.raises(VerifyError, match="two blocks are called 'x'"):
        verify_func(parse_func(f"func @f(out C: f32[1]) {{ {block} {block} }}"))


def test_a_buffer_after_its_scope():
    source = "func @f(out C: f32[1]) { { alloc T: f32[1] T[0] = 1.0 } C[0] = T[0] }"
    with pytest.raises(VerifyError, match="no buffer 'T' here"):
        verify_func(parse_func(source))


def test_a_reduction_in_a_loop():
    c = Buffer("C", F32, (const(1),))
    value = Reduce("sum", ((Var("k"), const(4)),), const(1, F32))
    with pytest.raises(VerifyError, match="belongs into a tensor expression"):
        verify_func(Func("f", (c,), ("C",), Store("C", (const(0),), value)))


def test_names_must_be_writable():
    with pytest.raises(VerifyError, match="'a b' cannot name a buffer"):
        verify_func(Func("f", (Buffer("a b", F32, ()),), (), Seq(())))


def test_nested_blocks_see_only_their_own_iterators():
    source = """
    func @f(out C: f32[16]) {
      for i in serial(4) {
        block "outer" [vo: S(4) = i] writes C[vo * 4 : 4] {
          for j in serial(4) {
            block "inner" [v: S(16) = vo * 4 + j] writes C[v] { C[v] = 1.0 }
          }
        }
      }
    }"""
    verify_func(parse_func(source))
    with pytest.raises(VerifyError, match='block "inner" uses the variable vo'):
        verify_func(parse_func(source.replace("{ C[v] =", "{ C[v + vo] =")))


ROLES = """
func @f(flags: i32[8], out arrived: i64[1], out C: f32[64]) {
  for b in grid(8) {
    alloc full: i64[2] @shared
    mbarrier_init full[0 : 2] count 1
    barrier
    roles {
      consumer warps(4) registers(232) {
        for g in group(2) {
          let tile = b * 2 + g
          mbarrier_wait full[tile % 2] parity tile // 2 % 2
          mbarrier_arrive full[tile % 2] ? 0 < tile
        }
      }
      producer warps(4) registers(24) { await arrived[0] count b signal arrived[0] }
    }
  }
}
"""

WRONG_ROLES = {
    "two-roles-of-one-name": ("producer warps", "consumer warps"),
    "registers": ("registers(24)", "registers(20)"),
    "no-warps": ("warps(4) registers(24)", "warps(0)"),
    "unequal-groups": ("group(2)", "group(3)"),
    "groups-of-symbolic-number": ("group(2)", "group(n)"),
    "barrier-in-a-role": ("signal arrived[0]", "barrier"),
    "grid-in-a-role": ("signal arrived[0]", "for c in grid(2) { }"),
    "roles-in-a-role": ("signal arrived[0]", "roles { other warps(1) { } }"),
    "roles-in-a-thread": (
        "roles {",
        "for t in thread(32) { roles { x warps(1) { } } } roles {",
    ),
    "let-twice": ("let tile = b * 2 + g", "let b = g"),
    "let-dtype": ("let tile = b * 2 + g", "let tile = 1.0"),
    "let-outside": ("await arrived[0] count b", "await arrived[0] count tile"),
    "no-arrivals": ("count 1", "count 0"),
    "two-mbarriers": ("mbarrier_wait full[tile % 2]", "mbarrier_wait full[0 : 2]"),
    "mbarrier-dtype": ("full: i64[2]", "full: i32[2]"),
    "parity-dtype": ("parity tile // 2 % 2", "parity true"),
    "arrival-mask": ("? 0 < tile", "? tile"),
    "flag-dtype": ("signal arrived[0]", "signal C[0]"),
    "flag-of-an-input": ("signal arrived[0]", "signal flags[0]"),
    "count-dtype": ("count b", "count true"),
}


def test_good_roles():
    verify_func(parse_func(ROLES))


@pytest.mark.parametrize("wrong", WRONG_ROLES)
def test_broken_rules_of_roles(wrong, golden):
    before, after = WRONG_ROLES[wrong]
    assert before in ROLES
    with pytest.raises(VerifyError) as caught:
        verify_func(parse_func(ROLES.replace(before, after, 1)))
    golden(str(caught.value), wrong)
