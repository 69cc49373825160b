from __future__ import annotations

from tilewright.arith.expr import Var, const
from tilewright.finalize.gpu.select_stage import (
    counted_by,
    is_tma_load,
    one_element,
    select_stage,
)
from tilewright.ir.loop.text import parse_func, print_stmt
from tilewright.ir.loop.walk import statements_in

FUNC = """func @f(A: f16[8192], out C: f16[64]) {
  alloc T: f16[4096] @shared
  tile copy T[0 : 64] <- A[64 : 64] using "tma_load_f16_64x64"
  for i in serial(64) { C[i] = T[i] + A[i] }
  T[ramp(8, 1, 8)] = A[ramp(0, 1, 8)]
}"""


def test_accesses_move_to_a_stage() -> None:
    func = parse_func(FUNC)
    text = print_stmt(select_stage(func.body, {"T": const(4096)}, Var("k") % 3))
    assert "tile copy T[k % 3 * 4096 : 64] <- A[64 : 64]" in text
    assert "C[i] = T[k % 3 * 4096 + i] + A[i]" in text
    assert "T[ramp(k % 3 * 4096 + 8, 1, 8)] = A[ramp(0, 1, 8)]" in text


def test_only_tma_copies_arrive_at_an_mbarrier() -> None:
    func = parse_func(FUNC)
    counted = counted_by(func.body, one_element("full", Var("k")))
    lines = [print_stmt(s) for s in statements_in(counted) if is_tma_load(s)]
    assert lines == ['tile copy T[0 : 64] <- A[64 : 64], full[k] using "tma_load_f16_64x64"']
    assert print_stmt(counted).count("full") == 1
