from __future__ import annotations

from tests.for_each import for_each
from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.cp_async import CP_ASYNC
from tilewright.schedule.intrin.table import INTRINSICS


@for_each("size", CP_ASYNC)
def test_a_copy_moves_its_bytes(size: int) -> None:
    source, to = pattern_of(CP_ASYNC[size]).params
    assert source.shape == to.shape
    assert int(str(to.shape[0])) * to.dtype.bytes == size
    assert f"shared.global.{size}(" in INTRINSICS[CP_ASYNC[size]].llvm
