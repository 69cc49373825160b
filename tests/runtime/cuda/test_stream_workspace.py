from __future__ import annotations

import gc

from tilewright.runtime.cuda.stream_workspace import workspace_of


class _Memory:
    def __init__(self, size: int) -> None:
        self.size = size

    def data_ptr(self) -> int:
        return self.size << 20


def test_each_stream_has_one_that_grows() -> None:
    one, other = workspace_of(0, 91), workspace_of(0, 92)
    assert one is workspace_of(0, 91)
    assert one is not other
    for size, address in ((100, 100), (50, 100), (200, 200), (100, 200)):
        assert one.address(size, _Memory) == address << 20
    assert other.address(0, _Memory) == 0
    del one
    gc.collect()
    assert workspace_of(0, 91).address(10, _Memory) == 10 << 20
