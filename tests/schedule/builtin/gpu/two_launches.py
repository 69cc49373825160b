"""Sums in parts that a second launch puts together."""

from __future__ import annotations

from tests.codegen.gpu.test_nvptx import check_on_threads
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.scheduled import H200, compare, finalized
from tests.schedule.builtin.scheduled import assert_replays, sources
from tilewright.codegen.gpu.launches import launches
from tilewright.ir.graph.nodes import Graph
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu


def check_two_launches(graph: Graph) -> None:
    """Every kernel is two launches, and computes the same after each step, and on threads."""
    for func, constants in sources(graph):
        result = schedule_for_gpu(func, constants, H200)
        assert_replays(func, result)
        plain = finalized(result.func)
        assert len(launches(plain)) == 2
        arrays = sample(func, {})
        expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
        compare(run(result.func, arrays, {}), expected)
        compare(run(plain, arrays, {}), expected)
        check_on_threads(func, constants, {})
