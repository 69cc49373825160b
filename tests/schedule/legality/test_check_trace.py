from __future__ import annotations

import pytest

from tests.schedule.programs import dense, func_of, matmul
from tests.tune.space.structures import STRUCTURES
from tests.tune.space.structures import func_of as structure
from tilewright.core.errors import LegalityError
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.legality import check_trace as check_trace_module
from tilewright.schedule.legality.check_trace import check_trace
from tilewright.schedule.trace import parse_trace
from tilewright.target.host import host

WAVE = """
func @wave(out A: f32[M, N]) {
  for i in serial(M) {
    for j in serial(N) {
      block "A" [vi: S(M) = i, vj: S(N) = j] reads A[vi - 1, vj + 1] writes A[vi, vj]
        { A[vi, vj] = A[vi - 1, vj + 1 ? vi > 0 & vj + 1 < N] + 1.0 }
    }
  }
}
"""
# The isl check of attention takes seconds; the others stand for all kinds of steps.
QUICK = [name for name in STRUCTURES if name != "attention"]


@pytest.mark.parametrize("name", QUICK)
def test_built_in_schedules_keep_dependences(name: str) -> None:
    func, constants = structure(name)
    check_trace(func, schedule_func(func, constants, host()).trace)


def test_steps_are_checked_together_until_one_changes_blocks(monkeypatch) -> None:
    seen: list[tuple[Func, Func]] = []
    monkeypatch.setattr(check_trace_module, "check", lambda a, b: seen.append((a, b)))
    trace = parse_trace(
        'split("mm.i0", [?, 4]); unroll("mm.i0.1"); reorder("mm.i0.0", "mm.i1", "mm.i0.1");'
        'inline("add"); split("mm.i1", [?, 4]); decompose_reduction("mm", "mm.r0");'
        'parallel("mm.i0.0")'
    )
    check_trace(dense(), trace)
    assert len(seen) == 3


def test_what_counts_is_where_steps_lead() -> None:
    func = func_of(WAVE)
    check_trace(func, parse_trace('split("j", [?, 4])'))
    with pytest.raises(LegalityError):
        check_trace(func, parse_trace('reorder("j", "i")'))
    check_trace(func, parse_trace('reorder("j", "i"); reorder("i", "j")'))


def test_fused_loops_are_taken_apart(monkeypatch) -> None:
    seen: list[Func] = []
    monkeypatch.setattr(check_trace_module, "check", lambda a, b: seen.append(b))
    check_trace(matmul(6, 8, 5), parse_trace('fuse("y.i0", "y.i1"); parallel("y.i0_i1")'))
    assert "//" not in str(seen[0].body)
    check_trace(matmul(), parse_trace('fuse("y.i0", "y.i1")'))  # sizes not known: as it is
