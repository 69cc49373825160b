from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.ci_sample import one_in
from tests.codegen.gpu.host_threads import run_launches
from tests.codegen.gpu.ptxas import assemble
from tests.codegen.native_func import sizes_of
from tests.finalize.kernel_steps import run, sample
from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200, check, compare, finalized, scheduled
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Var, as_int
from tilewright.codegen.gpu.launches import launches
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.core.dtypes import F16, F32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import blocks
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.recurrent.cells import StepsAttrs
from tilewright.schedule.builtin.gpu import recurrence
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.target.gpu import GpuTarget

ACTIVATIONS = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
Change = Callable[[Func], Func]


def steps_of(
    cell: str, time: object, batch: object, units: int, dtype: DType = F32, constant: bool = True
) -> Graph:
    g = GraphBuilder("f")
    gates = GATES[cell]
    rng = np.random.default_rng(units)
    x = g.input("x", tensor(dtype, time, batch, 1, gates, units))
    kinds = ACTIVATIONS[cell]
    attrs = StepsAttrs(kinds, (0.0,) * len(kinds), (0.0,) * len(kinds), reverse=cell == "rnn")

    def weights(name: str, count: int) -> str:
        if not constant:
            return g.input(name, tensor(dtype, units, count, units))
        values = rng.standard_normal((units, count, units)) / units
        return g.constant(values.astype(dtype.numpy), name)

    given = [weights("r", gates)] if cell != "gru" else [weights("r", 2), weights("q", 1)]
    if cell == "lstm":
        given += ["", "", g.input("h", tensor(dtype, batch, units))]
    return g.graph(*g.add_many(f"{cell}_steps", x, *given, attrs=attrs))


@pytest.mark.parametrize(
    ("cell", "batch", "units"),
    [
        ("lstm", 1, 64),
        pytest.param("gru", 3, 53, marks=pytest.mark.slow),
        ("rnn", 13, 35),
        pytest.param("lstm", Var("B"), 46, marks=pytest.mark.slow),
        pytest.param("rnn", 1, 200, marks=pytest.mark.slow),
    ],
)
def test_steps_keep_their_meaning(cell: str, batch: object, units: int) -> None:
    assert check(steps_of(cell, 2, batch, units), {"B": 2}) == ["recurrence"]


def test_weights_that_are_given_late_stay_as_they_lie() -> None:
    assert check(steps_of("lstm", 2, 2, 48, constant=False), {}) == ["recurrence"]


def test_numbers_of_16_bits() -> None:
    assert check(steps_of("lstm", 2, 1, 64, F16), {}) == ["recurrence"]


def test_a_state_that_is_rounded_is_one_launch() -> None:
    graph = steps_of("lstm", 3, 1, 64, F16)
    (result,) = scheduled(graph)
    assert "previous.f16" in {b.name for b in blocks(result.func.body)}
    assert [x.cooperative_launch for x in launches(finalized(result.func))] == [False, False, True]


def test_a_number_of_steps_that_a_run_gives() -> None:
    assert check(steps_of("rnn", Var("T"), 1, 96), {"T": 3}) == ["recurrence"]


def test_small_steps_stay_in_one_block_of_threads() -> None:
    assert check(steps_of("lstm", 3, 1, 20), {}) == ["opaque"]


@pytest.mark.parametrize(("cell", "count"), [("lstm", 2), ("gru", 3), ("rnn", 2)])
def test_each_sum_is_one_launch_with_its_formulas(cell: str, count: int) -> None:
    (result,) = scheduled(steps_of(cell, 64, 200, 512))
    found = launches(finalized(result.func))
    assert [x.loop for x in found] == ["at.t"] * count
    assert all(as_int(x.steps) == 64 for x in found)
    assert as_int(found[1].grid) >= 128


@pytest.mark.parametrize(("cell", "threads"), [("lstm", 512), ("gru", 256), ("rnn", 128)])
def test_blocks_stay_where_they_have_room_for_the_weights(cell: str, threads: int) -> None:
    (result,) = scheduled(steps_of(cell, 64, 1, 512))
    *before, last = launches(finalized(result.func))
    assert not any(x.cooperative_launch for x in before)
    assert last.cooperative_launch
    assert (as_int(last.grid), last.threads) == (128, threads)


@for_each(
    ("cell", "rows", "units", "stays"),
    [
        ("lstm", 20, 512, True),
        ("lstm", 96, 512, True),
        ("lstm", 32, 256, True),
        ("lstm", 128, 128, False),  # every block reads the states of all rows
        ("lstm", 37, 512, False),  # no whole groups of rows
        ("lstm", 256, 512, False),  # shared memory has no room for the states
    ],
)
def test_many_rows_stay_where_states_are_fewer_than_weights(
    cell: str, rows: int, units: int, stays: bool
) -> None:
    (result,) = scheduled(steps_of(cell, 64, rows, units))
    assert any(x.cooperative_launch for x in launches(finalized(result.func))) == stays


@pytest.mark.parametrize("dtype", [F32, F16])
def test_nobody_stays_for_one_step(dtype: DType) -> None:
    graph = steps_of("lstm", 1, 8, 64, dtype)
    (result,) = scheduled(graph)
    assert not any(x.cooperative_launch for x in launches(finalized(result.func)))
    assert check(graph, {}) == ["recurrence"]


def run_emitted(
    graph: Graph, target: GpuTarget, sizes: dict[str, int], change: Change = lambda func: func
) -> bool:
    """Run the code of a changed recurrence; whether it is a cooperative launch."""
    stays = False
    for func, constants in sources(graph):
        plain = finalized(change(schedule_for_gpu(func, constants, target).func))
        stays |= any(x.cooperative_launch for x in launches(plain))
        arrays = sample(func, sizes)
        expected = {o: a.copy() for o, a in run(func, arrays, sizes).items()}
        own = {p.name: arrays.get(p.name, np.zeros(1)).reshape(-1) for p in plain.params}
        for p in plain.params:
            if p.name not in arrays:
                own[p.name] = np.zeros(evaluate(p.shape[0], sizes), p.dtype.numpy)
                own[p.name].view(np.uint8)[:] = 0xFF
        for name, layout in plain.layouts:
            order = [axis for axis, _, _ in layout.parts]
            own[name] = np.ascontiguousarray(arrays[name].transpose(order)).reshape(-1)
        run_launches(plain, own, sizes)
        compare({o: own[o].reshape(a.shape) for o, a in expected.items()}, expected)
    return stays


def test_what_is_emitted_runs_step_by_step() -> None:
    assert not run_emitted(steps_of("lstm", 3, Var("B"), 48), H200, {"B": 2})


@pytest.mark.parametrize(
    ("cell", "batch", "units", "dtype"),
    [
        ("lstm", 2, 5, F32),
        ("rnn", 1, 9, F32),
        ("rnn", 7, 9, F16),
        ("lstm", 16, 6, F32),
        ("lstm", 33, 6, F32),  # three times as many rows as a thread adds up at a time
        ("gru", 8, 9, F32),
    ],
)
def test_what_is_emitted_stays(
    cell: str, batch: int, units: int, dtype: DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrence, "MIN_PRODUCTS", 1)
    alone = replace(H200, sm_count=1)
    assert run_emitted(steps_of(cell, 4, batch, units, dtype), alone, {})


@pytest.mark.ptxas
@pytest.mark.parametrize(
    "sizes",
    one_in(
        2,
        [
            ("lstm", 1, 512, F32),
            ("gru", 4, 512, F32),
            ("lstm", 32, 512, F16),
            ("lstm", 16, 512, F32),
            ("gru", 6, 512, F16),
            ("lstm", 1, 512, F16),
            ("rnn", 16, 1024, F32),
            ("lstm", 3, 100, F32),
            ("lstm", 32, 512, F32),
            ("gru", 48, 512, F32),
        ],
    ),
)
def test_steps_that_stay_assemble_without_spills(
    sizes: tuple[str, int, int, DType], tmp_path: Path
) -> None:
    cell, batch, units, dtype = sizes
    (result,) = scheduled(steps_of(cell, 64, batch, units, dtype))
    plain = finalized(result.func)
    module = ModuleBuilder()
    emit_launches(module, plain, sizes_of(plain))
    reports = assemble(compile_object(module.text(), H200).decode(), tmp_path, H200.cpu)
    assert any(x.cooperative_launch for x in launches(plain))
    for launch in launches(plain):
        report = reports[launch.name]
        assert report.spilled == report.stack == 0
        assert report.registers * launch.threads <= H200.registers_per_sm
