from __future__ import annotations

import pytest

from tilewright.arith.expr import Load, Var, const
from tilewright.core.errors import ScheduleError
from tilewright.ir.loop.nodes import Block, For, Seq, Store
from tilewright.ir.loop.text import parse_func, print_stmt
from tilewright.ir.loop.walk import (
    accesses,
    blocks,
    buffers,
    expressions,
    find_block,
    find_loop,
    loops,
    loops_above,
    map_exprs,
    map_stmt,
    rewrite_stmts,
    seq,
    statements,
    statements_in,
    substitute_stmt,
    touched_buffers,
)

FUNC = parse_func("""
func @f(A: f32[N, 8], out C: f32[N]) {
  alloc T: f32[8] @register
  for i in parallel(N) {
    if i < N { T[0 ? i < 3] = A[i, 0] } else { T[1] = 0.0 }
    for k in serial(8) {
      block "C" [vi: S(N) = i, vk: R(8) = k] reads A[vi, vk], T[vk] writes C[vi]
        where i < N
        init { C[vi] = 0.0 }
        { C[vi] += A[vi, vk] * T[vk] }
    }
    tile fill T[0 : 8]
  }
}""")


def test_nothing_changed_is_the_same_object():
    assert map_stmt(FUNC.body, lambda s: s) is FUNC.body
    assert map_exprs(FUNC.body, lambda e: e) is FUNC.body
    assert rewrite_stmts(FUNC.body, lambda s: None) is FUNC.body
    assert substitute_stmt(FUNC.body, {"q": const(1)}) is FUNC.body
    assert substitute_stmt(FUNC.body, {}) is FUNC.body


def test_untouched_parts_stay_the_same_object():
    changed = substitute_stmt(FUNC.body, {"k": Var("q")})
    before, after = (list(statements(s)) for s in (FUNC.body, changed))
    same = [b is a for (_, b), (_, a) in zip(before, after, strict=True)]
    assert same.count(False) == 5  # the block and what stands around it: Alloc For Seq For


def test_substitution_reaches_everything(golden):
    golden(print_stmt(substitute_stmt(FUNC.body, {"N": const(16), "i": Var("o") * 4 + Var("p")})))


def test_rewriting_goes_bottom_up():
    def drop_blocks(s):
        return Seq(()) if isinstance(s, Block) else None

    def drop_empty_loops(s):
        return Seq(()) if isinstance(s, For) and s.body == Seq(()) else drop_blocks(s)

    assert [s.name for s in loops(rewrite_stmts(FUNC.body, drop_empty_loops))] == ["i"]


def test_seq_flattens():
    a, b, c = (Store("C", (const(n),), const(1)) for n in range(3))
    assert seq(a) is a
    assert seq(seq(a, b), c) == Seq((a, b, c))
    assert seq() == Seq(())


def test_statements_come_with_what_is_around_them():
    found = {type(s).__name__: path for path, s in statements(FUNC.body)}
    assert [type(s).__name__ for s in found["Block"]] == ["Alloc", "For", "Seq", "For"]
    assert [type(s).__name__ for s in found["If"]] == ["Alloc", "For", "Seq"]


def test_finding_by_name():
    assert find_block(FUNC, "C").iters[1].name == "vk"
    assert find_loop(FUNC, "k").kind == "serial"
    assert [s.name for s in loops_above(FUNC, "C")] == ["i", "k"]
    assert loops_above(FUNC, find_block(FUNC, "C")) == loops_above(FUNC, "C")
    assert [b.name for b in blocks(FUNC.body)] == ["C"]
    assert list(buffers(FUNC)) == ["A", "C", "T"]


def test_names_that_are_not_there(golden):
    with pytest.raises(ScheduleError) as caught:
        find_loop(FUNC, "kk")
    golden(str(caught.value), "no-loop")
    with pytest.raises(ScheduleError) as caught:
        find_block(parse_func("func @g() { }"), "C")
    golden(str(caught.value), "no-block")


def test_accesses_in_order():
    found = list(accesses(FUNC.body))
    stores = [a.buffer for a in found if isinstance(a, Store)]
    loaded = {a.buffer for a in found if isinstance(a, Load)}
    assert stores == ["T", "T", "C", "C"]
    assert loaded == {"A", "C", "T"}
    assert touched_buffers(FUNC.body) == ({"A", "C"}, {"C"})


def test_expressions_include_signatures():
    texts = {str(e) for e in expressions(FUNC.body)}
    assert {"N", "i < N", "i < 3", "vi", "k", "8", "0.0"} <= texts


ROLES = parse_func("""
func @g(A: f32[64], out C: f32[64], out arrived: i64[1]) {
  for b in grid(4) {
    alloc full: i64[2] @shared
    mbarrier_init full[0 : 2] count 1
    barrier
    roles {
      consumer warps(4) registers(232) {
        for g in group(2) {
          let tile = b * 2 + g
          mbarrier_wait full[tile % n] parity tile // n % 2
          mbarrier_arrive full[tile % n] ? 0 < tile
        }
      }
      producer warps(1) {
        await arrived[0] count n
        signal arrived[0]
      }
    }
  }
}""")


def test_statements_of_roles_are_walked(golden):
    body = ROLES.body
    assert map_exprs(body, lambda e: e) is body
    assert rewrite_stmts(body, lambda s: None) is body
    golden(print_stmt(substitute_stmt(body, {"n": const(2), "b": Var("block")})))
    assert {"tile % n", "tile // n % 2", "0 < tile", "b * 2 + g", "n"} <= {
        str(e) for e in expressions(body)
    }
    assert touched_buffers(body) == ({"arrived"}, {"arrived"})
    assert [type(s).__name__ for s in statements_in(body)][4:7] == ["Barrier", "Roles", "For"]
