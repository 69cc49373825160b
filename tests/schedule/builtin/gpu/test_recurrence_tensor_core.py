from __future__ import annotations

from dataclasses import replace

import pytest

from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.scheduled import H200, compare, finalized, scheduled
from tests.schedule.builtin.gpu.test_recurrence import run_emitted, steps_of
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import as_int
from tilewright.codegen.gpu.launches import launches
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import For, Func, Stmt, Tile
from tilewright.ir.loop.thread_mapping import is_grid_sync
from tilewright.ir.loop.walk import rewrite_stmts, statements
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu


def _instructions(graph: Graph) -> set[str]:
    (result,) = scheduled(graph)
    tiles = (s for _, s in statements(finalized(result.func).body) if isinstance(s, Tile))
    return {t.intrinsic for t in tiles}


@pytest.mark.parametrize(
    ("cell", "batch"),
    [("lstm", 7), *(pytest.param(*c, marks=pytest.mark.slow) for c in (("gru", 6), ("rnn", 18)))],
)
def test_steps_by_instructions_keep_their_meaning(cell: str, batch: int) -> None:
    for func, constants in sources(steps_of(cell, 2, batch, 64, F16)):
        arrays = sample(func, {})
        expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
        compare(run(schedule_for_gpu(func, constants, H200).func, arrays, {}), expected)


def _launched_often(func: Func) -> Func:
    """Blocks of threads that do not stay, so that they may run one after another."""

    def left(s: Stmt) -> Stmt | None:
        return replace(s, annotations=()) if isinstance(s, For) and is_grid_sync(s) else None

    return replace(func, body=rewrite_stmts(func.body, left))


@pytest.mark.parametrize(
    ("cell", "batch"), [pytest.param("lstm", 7, marks=pytest.mark.slow), ("rnn", 17)]
)
def test_what_is_emitted(cell: str, batch: int) -> None:
    graph = steps_of(cell, 2, batch, 64, F16)
    assert any(name.startswith("mma_f16") for name in _instructions(graph))
    assert not run_emitted(graph, H200, {}, _launched_often)


def test_both_types() -> None:
    assert "mma_bf16_16x16_nt" in _instructions(steps_of("gru", 2, 8, 64, BF16))


@pytest.mark.parametrize(
    ("batch", "units", "dtype"), [(1, 64, F16), (8, 96, F16), (8, 64, F32), (600, 64, F16)]
)
def test_others_do_without(batch: int, units: int, dtype: DType) -> None:
    assert not _instructions(steps_of("lstm", 3, batch, units, dtype))


def test_a_whole_layer_is_one_launch_of_all_blocks() -> None:
    (result,) = scheduled(steps_of("lstm", 64, 32, 512, F16))
    *_, steps = launches(finalized(result.func))
    assert steps.cooperative_launch
    assert as_int(steps.grid) == 64
    assert steps.shared <= H200.max_shared_per_block


def test_weights_that_do_not_fit_are_read_in_every_step() -> None:
    (result,) = scheduled(steps_of("lstm", 2, 4, 2048, F16))
    assert not any(x.cooperative_launch for x in launches(finalized(result.func)))
