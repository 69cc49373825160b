from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.gpu.test_attention import attention
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import loads
from tilewright.codegen.gpu.launches import launches
from tilewright.finalize.gpu.pipeline import finalize_gpu
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.loop.walk import own_expressions, statements_in
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu


def test_parts_are_put_together_by_a_launch_of_its_own() -> None:
    func = attention(4, 100, tile=(16, 32, 4))
    scheduled = schedule_for_gpu(func, frozenset(), H200).func
    arrays = sample(func, {})
    expected = run(func, arrays, {})["y0"].astype(np.float32)
    found = run(scheduled, arrays, {})["y0"].astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=1e-2)
    first, second = launches(finalize_gpu(replace(scheduled, annotations=(ALIGNED_PARAMS,)), H200))
    assert (str(first.grid), first.threads) == ("4", 32)
    assert (str(second.grid), second.threads) == ("1", 128)


def test_a_thread_reads_four_columns_of_a_part_at_a_time() -> None:
    func = attention(100, 300, 64, heads=4, tile=(64, 64, 2))
    scheduled = schedule_for_gpu(func, frozenset(), H200).func
    _, second = launches(finalize_gpu(replace(scheduled, annotations=(ALIGNED_PARAMS,)), H200))
    assert str(second.grid) == str(4 * 100 * 64 // 4 // 128)
    wide = [x for s in statements_in(second.body) for e in own_expressions(s) for x in loads(e)]
    vectors = {x.buffer for x in wide if any(isinstance(i, Ramp) for i in x.indices)}
    assert "parts.o" in vectors
