from __future__ import annotations

from tests.codegen.gpu.test_flash_attention import emitted
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.codegen.gpu.launches import PRODUCER_THREADS


def test_blocks_are_as_many_as_run_at_once() -> None:
    launch, text = emitted(128)
    assert (str(launch.grid), str(launch.tiles)) == (str(H200.sm_count), "320")
    assert (launch.threads, launch.block_threads) == (256, 256 + PRODUCER_THREADS)
    assert len(launch.maps) == 3
    # Registers of those that copy go to the others: 168 for each of 384 threads.
    assert "setmaxnreg.dec.sync.aligned.u32 24;" in text
    assert "setmaxnreg.inc.sync.aligned.u32 240;" in text
