from __future__ import annotations

import random

from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BF16
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.attention.tiled_loops import tiled_func
from tilewright.schedule.builtin.gpu.attention_order import busiest
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu


def _trace(batches: object, rows: object) -> str:
    """The schedule of attention under a causal mask."""
    qkv = [tensor(BF16, batches, rows, 128)] * 3
    attrs = FusedAttentionAttrs(scale=0.1, window_right=0)
    func = tiled_func(Problem(attrs, tuple(qkv), qkv[0], (128, 128)))
    return str(schedule_for_gpu(func, frozenset(), H200).trace)


@for_each(("batches", "rows", "together"), [(64, 4096, 2), (24, 3824, 6), (7, 2288, 7)])
def test_as_many_batches_follow_each_other_as_is_even(
    batches: int, rows: int, together: int
) -> None:
    assert f'split("batch.at.n0", [?, {together}])' in _trace(batches, rows)
    steps = range(-(-rows // 128), 0, -1)
    mean = (sum(steps) + 2 * len(steps)) * batches / H200.sm_count
    assert busiest(steps, together, batches // together, H200.sm_count) < 1.2 * max(
        mean, steps[0] + 2
    )


def test_what_a_block_gets() -> None:
    """Turn by turn from either end: 5 and 2, 4 and 3 with what is around them; then 2 or 3."""
    assert busiest([3, 2], 2, 1, 2) == (3 + 2) + (2 + 2)
    assert busiest([3, 1], 3, 1, 4) == max((5, 5, 5 + 3, 3 + 3))
    assert busiest([1], 1, 1, 132) == 3


def test_the_busiest_block_has_at_least_the_mean() -> None:
    draw = random.Random(7)
    for _ in range(50):
        steps = [draw.randint(1, 40) for _ in range(draw.randint(1, 30))]
        together, groups, blocks = (draw.randint(1, n) for n in (8, 8, 140))
        whole = together * groups * (sum(steps) + 2 * len(steps))
        found = busiest(steps, together, groups, blocks)
        assert whole / blocks <= found <= whole


def test_batches_that_a_run_gives_follow_each_other() -> None:
    assert 'split("batch.at.n0"' not in _trace(Var("B"), 512)
