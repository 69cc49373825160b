from __future__ import annotations

from dataclasses import replace

from tilewright.passes.conv.conv_transpose_cost import (
    TransposedShape,
    gemm_cycles,
    is_gemm_faster,
    phases_cycles,
)
from tilewright.target.registry import CPUS


def _shape(
    size: int, channels: int, filters: int, kernel: int = 3, stride: int = 2
) -> TransposedShape:
    result = (size - 1) * stride + kernel
    pair = (size, result, kernel, stride, 0)
    return TransposedShape(1, *((n, n) for n in pair), channels, filters, 1, 32)


def test_few_filters_are_a_gemm() -> None:
    for target in CPUS.values():
        assert is_gemm_faster(_shape(48, 141, 1), target)
        assert is_gemm_faster(_shape(14, 143, 9), target)


def test_many_products_of_few_channels_are_phases() -> None:
    for target in CPUS.values():
        assert not is_gemm_faster(_shape(64, 8, 64, kernel=5), target)
        assert not is_gemm_faster(_shape(64, 8, 64, kernel=5, stride=1), target)


def test_more_of_anything_takes_longer() -> None:
    small = _shape(16, 32, 16)
    for cycles in (gemm_cycles, phases_cycles):
        for more in ({"images": 4}, {"channels": 64}, {"filters": 64}):
            target = CPUS["x86-64-v3"]
            assert cycles(replace(small, **more), target) > cycles(small, target)


def test_a_result_that_is_cut_is_moved_once_more() -> None:
    whole = _shape(16, 32, 16, kernel=4)
    cut = replace(whole, before=(1, 1))
    target = CPUS["x86-64-v4"]
    assert phases_cycles(cut, target) > phases_cycles(whole, target)
    assert gemm_cycles(cut, target) == gemm_cycles(whole, target)
