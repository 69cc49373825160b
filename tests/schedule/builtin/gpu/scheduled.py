"""Kernels under the built-in schedules for GPUs: their rules, and that each step keeps meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.scheduled import assert_replays, sources
from tilewright.finalize.gpu.pipeline import steps
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verify import verify_func
from tilewright.schedule.builtin.gpu import select_rule
from tilewright.schedule.builtin.gpu.gemm.select_tensor_core_tile import TensorCoreTiles
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import TensorCoreTile
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.target.gpu import GpuTarget
from tilewright.target.registry import resolve_gpu

H200 = resolve_gpu("cuda")
# Without `cp.async`, and with shorter `mma.sync` on fewer types.
T4 = resolve_gpu("cuda -arch=sm_75")


def with_sms(count: int) -> GpuTarget:
    """As many SMs of an H200."""
    return replace(H200, sm_count=count, mma_rate=H200.mma_rate * count // H200.sm_count)


def take_tile(patch: pytest.MonkeyPatch, tile: TensorCoreTile) -> None:
    """Let GEMMs on tensor cores have one tile to choose from."""
    found = select_rule.tensor_core_tiles_of

    def only(*given: Any) -> TensorCoreTiles | None:
        tiles = found(*given)
        return None if tiles is None else replace(tiles, default=tile, tiles=(tile,))

    patch.setattr(select_rule, "tensor_core_tiles_of", only)


def scheduled(graph: Graph) -> list[ScheduledFunc]:
    """Every kernel scheduled, its trace replayed."""
    results = []
    for func, constants in sources(graph):
        result = schedule_for_gpu(func, constants, H200)
        verify_func(result.func)
        assert_replays(func, result)
        results.append(result)
    return results


def finalized(func: Func, target: GpuTarget = H200) -> Func:
    """A scheduled function after all steps."""
    for _, step in steps(target):
        func = step(func)
    return func


def check(graph: Graph, sizes: Mapping[str, int]) -> list[str]:
    """Kernels compute the same before, after scheduling and after every step; the rules."""
    rules = []
    for func, constants in sources(graph):
        result = schedule_for_gpu(func, constants, H200)
        arrays = sample(func, sizes)
        expected = {o: a.copy() for o, a in run(func, arrays, sizes).items()}
        compare(run(result.func, arrays, sizes), expected)
        compare(run(finalized(result.func), arrays, sizes), expected)
        rules.append(result.rule.removeprefix("gpu."))
    return rules


def compare(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Results agree, wherever there are any."""
    for name, array in expected.items():
        if array.dtype.kind == "f":
            # A sum of nothing: loops that are not scheduled yet do not even start it.
            started = ~np.isnan(array)
            # In 16 bits the order of a sum shows in the last digit.
            near = 1e-4 if array.dtype.itemsize > 2 else 4e-3
            np.testing.assert_allclose(found[name][started], array[started], near, near / 10)
        else:
            np.testing.assert_array_equal(found[name], array)
