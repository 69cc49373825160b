from __future__ import annotations

import pytest

from tests.schedule.builtin.gpu.gemm.test_tensor_core import tiles
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.gpu.test_attention import attention
from tilewright.finalize.gpu.mainloop import mainloop_of
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu


@pytest.mark.parametrize(
    ("func", "bounded"),
    [
        (attention(256, 256, 128, tile=(128, 128)), set()),
        (attention(200, 256, 128, tile=(128, 128)), {"a"}),
        (attention(256, 200, 128, tile=(128, 128)), {"kt", "vt"}),
        (attention(256, 256, 72, tile=(128, 128)), {"a", "kt", "vt"}),
        (attention(256, 4096, 256, tile=(128, 64, 2)), set()),
    ],
    ids=["all whole", "queries past the end", "keys past the end", "columns past the end", "parts"],
)
def test_producer_warps_copy_tiles(func: Func, bounded: set[str]) -> None:
    scheduled = schedule_for_gpu(func, frozenset(), H200).func
    assert mainloop_of(scheduled.body) is not None
    loads = [t for t in tiles(scheduled) if t.intrinsic.startswith("tma_load")]
    assert {t.dst.buffer for t in loads} == {"a", "kt", "vt"}
    assert {t.dst.buffer for t in loads if t.intrinsic.endswith("of_several")} == bounded


def test_operands_that_do_not_lie_in_rows_are_copied_by_all_threads() -> None:
    func = attention(128, 256, 128, tile=(128, 128), q_perm=(0, 2, 3, 1))
    scheduled = schedule_for_gpu(func, frozenset(), H200).func
    assert mainloop_of(scheduled.body) is None
