from __future__ import annotations

from dataclasses import replace

from tests.differential.kernel_graphs import KERNELS
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.scheduled import H200, check, compare, finalized, scheduled
from tests.schedule.builtin.scheduled import kinds, sources
from tilewright.arith.expr import const
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.builtin.gpu.thread_per_element import THREADS, has_neighbours, threads_for


def test_meaning() -> None:
    assert "thread_per_element" in check(KERNELS["max_pool"](3, 8, 9), {})
    assert "thread_per_element" in check(KERNELS["max_columns"](7, 6, 5), {})


def test_a_sum_is_in_the_thread_that_needs_it() -> None:
    (result,) = scheduled(KERNELS["max_columns"](3, 96, 32))
    assert len(kinds(result.func)["thread"]) == 1
    assert "compute_at" in str(result.trace)


def test_many_windows_side_by_side_get_a_thread_each() -> None:
    for name, sizes, expected in (
        ("depthwise", (128, 128, 128), True),
        ("depthwise", (64, 16, 16), True),  # of which each thread adds few terms
        ("depthwise", (2, 8, 8), False),
        ("average_pool", (128, 128, 0), True),  # neighbours read every second element
        ("sum_rows", (512, 512, 64), False),
    ):
        ((func, _),) = sources(KERNELS[name](*sizes))[:1]
        structure = block_graph(func)
        block = next(b for b in structure.blocks if reductions(b))
        assert has_neighbours(block, structure, H200) == expected, (name, sizes)


SMALL = replace(H200, sm_count=1)


def test_neighbours_are_read_at_once() -> None:
    ((func, constants),) = sources(KERNELS["max_columns"](3, 16, 64))[:1]
    result = schedule_for_gpu(func, constants, SMALL)
    assert result.rule == "gpu.thread_per_element"
    assert "vectorize" in str(result.trace)
    arrays = sample(func, {})
    expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
    compare(run(result.func, arrays, {}), expected)
    compare(run(finalized(result.func), arrays, {}), expected)


def test_threads() -> None:
    assert threads_for([const(1)], H200) == H200.warp_size
    assert threads_for([const(100)], H200) == 128
    assert threads_for([const(99), const(1000)], H200) == THREADS
