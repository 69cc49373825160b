from __future__ import annotations

import pytest

from tests.finalize.gpu.test_overlapped_attention import emitted
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import const
from tilewright.finalize.gpu.roles import PRODUCER_WARPS, balanced_tile_loop
from tilewright.ir.loop.nodes import For, Let, Seq
from tilewright.ir.loop.thread_mapping import GRID, WARP_SIZE


def test_blocks_are_as_many_as_run_at_once() -> None:
    launch, text = emitted(128)
    assert str(launch.grid) == str(H200.sm_count)
    assert launch.threads == 256 + PRODUCER_WARPS * WARP_SIZE
    assert len(launch.maps) == 3
    # Registers of those that copy go to the others: 168 for each of 384 threads.
    assert "setmaxnreg.dec.sync.aligned.u32 24;" in text
    assert "setmaxnreg.inc.sync.aligned.u32 240;" in text


@pytest.mark.parametrize(("tiles", "blocks"), [(5, 5), (13, 4), (11, 4), (16, 4), (7, 3)])
def test_every_second_turn_begins_with_the_last_block(tiles: int, blocks: int) -> None:
    grid = For("g", const(tiles), GRID, Seq(()))
    loop = balanced_tile_loop(grid, "tile", const(blocks), lambda _: Seq(()))
    assert isinstance(loop, For)
    assert isinstance(loop.body, Let)
    order = []
    for block in range(blocks):
        here = {"g.block": block}
        turns = range(evaluate(loop.extent, here))
        order.append([evaluate(loop.body.value, {**here, loop.name: n}) for n in turns])
    assert sorted(n for own in order for n in own) == list(range(tiles))
    pairs = [own[0] + own[1] for own in order if len(own) > 1]
    assert set(pairs) <= {2 * blocks - 1}
