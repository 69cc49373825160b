from __future__ import annotations

from dataclasses import replace

from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.scheduled import sources
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.gpu.gemm.split_k import longest_axis, split_k_factor


def _factor(m: int, n: int, k: int, min_k: int = 64, sms: int = 132) -> int:
    ((func, _),) = sources(dense(m, n, k))
    block = next(b for b in block_graph(func).blocks if reductions(b))
    return split_k_factor(block, (64, 64, 64), min_k, replace(H200, sm_count=sms))


@for_each(
    ("m", "k", "factor"),
    [
        (64, 4096, 64),  # parts of 64
        (64, 1024, 16),
        (64 * 66, 4096, 2),  # 66 tiles twice are 132
        (64 * 67, 4096, 1),
        (64, 8 * 15 * 64, 8),  # no power of two divides K further into whole k-tiles
    ],
)
def test_every_sm_has_a_tile(m: int, k: int, factor: int) -> None:
    assert _factor(m, 64, k) == factor


def test_no_part_is_too_short() -> None:
    assert _factor(64, 64, 4096, min_k=1024) == 4


def test_the_longest_axis_is_split() -> None:
    ((func, _),) = sources(dense(64, 32, 128))
    (axes,) = (b.iters for b in block_graph(func).blocks if reductions(b))
    assert str(longest_axis(axes).extent) == "128"
