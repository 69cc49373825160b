from __future__ import annotations

from tests.finalize.gpu.test_overlapped_attention import emitted
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.finalize.gpu.roles import PRODUCER_WARPS
from tilewright.ir.loop.thread_mapping import WARP_SIZE


def test_blocks_are_as_many_as_run_at_once() -> None:
    launch, text = emitted(128)
    assert str(launch.grid) == str(H200.sm_count)
    assert launch.threads == 256 + PRODUCER_WARPS * WARP_SIZE
    assert len(launch.maps) == 3
    # Registers of those that copy go to the others: 168 for each of 384 threads.
    assert "setmaxnreg.dec.sync.aligned.u32 24;" in text
    assert "setmaxnreg.inc.sync.aligned.u32 240;" in text
