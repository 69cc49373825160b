from __future__ import annotations

from dataclasses import replace

import pytest

from tests.finalize.gpu.test_check_synchronization import PINGPONG
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense, the_kernel
from tests.schedule.builtin.gpu.scheduled import H200, finalized, take_tile, with_sms
from tilewright.core.dtypes import F16
from tilewright.finalize.gpu.mainloop import mainloop_of
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.finalize.gpu.warp_specialize import warp_specialize
from tilewright.ir.loop.nodes import Roles
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import statements_in

PLAIN = """func @copy(A: f32[64], out C: f32[64]) {
  for b in grid(2) {
    for x in thread(32) { C[b * 32 + x] = A[b * 32 + x] }
  }
}"""


def test_a_persistent_loop_has_roles_that_parse_again(monkeypatch: pytest.MonkeyPatch) -> None:
    take_tile(monkeypatch, PINGPONG)
    _, scheduled = the_kernel(dense(320, 64, 128, F16, "nn"), with_sms(2))
    func = finalized(replace(scheduled, annotations=(ALIGNED_PARAMS,)))
    verify_func(func)
    assert parse_func(print_func(func)) == func
    (roles,) = (s for s in statements_in(func.body) if isinstance(s, Roles))
    found = [(r.name, r.warps, r.registers) for r in roles.roles]
    assert found == [("consumer", 8, 240), ("producer", 4, 24)]
    assert mainloop_of(func.body) is None  # the copies and the product have loops of their own
    assert "for matmul.total.b_0_0_1.block in grid(2)" in print_func(func)


def test_other_loops_stay() -> None:
    func = parse_func(PLAIN)
    assert warp_specialize(func, H200) == func
    assert mainloop_of(func.body) is None
