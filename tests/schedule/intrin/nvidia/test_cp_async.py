from __future__ import annotations

from tests.for_each import for_each
from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.cp_async import CP_ASYNC, CP_ASYNC_PADDED
from tilewright.schedule.intrin.table import INTRINSICS


@for_each("size", CP_ASYNC)
@for_each("names", [CP_ASYNC, CP_ASYNC_PADDED])
def test_a_copy_moves_its_bytes(size: int, names: dict[int, str]) -> None:
    source, to = pattern_of(names[size]).params
    assert source.shape == to.shape
    assert int(str(to.shape[0])) * to.dtype.bytes == size
    padded = names is CP_ASYNC_PADDED
    assert f"shared.global.{size}{'.s' * padded}(" in INTRINSICS[names[size]].llvm
