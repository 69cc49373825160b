from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.host_threads import run_launches
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.scheduled import H200, check, compare, finalized, scheduled
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import Var, as_int
from tilewright.codegen.launches import launches
from tilewright.core.dtypes import F16, F32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.walk import blocks
from tilewright.ir.types import tensor
from tilewright.ops.build import GraphBuilder
from tilewright.ops.recurrent_cells import StepsAttrs
from tilewright.schedule.builtin.gpu.choose import schedule_for_gpu

ACTIVATIONS = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def _steps(
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
    [("lstm", 1, 64), ("gru", 3, 53), ("rnn", 9, 35), ("lstm", Var("B"), 46), ("rnn", 1, 200)],
)
def test_steps_keep_their_meaning(cell: str, batch: object, units: int) -> None:
    assert check(_steps(cell, 2, batch, units), {"B": 2}) == ["steps"]


def test_weights_that_are_given_late_stay_as_they_lie() -> None:
    assert check(_steps("lstm", 2, 2, 48, constant=False), {}) == ["steps"]


def test_numbers_of_16_bits() -> None:
    assert check(_steps("lstm", 2, 1, 64, F16), {}) == ["steps"]


def test_a_state_that_is_rounded_is_one_launch() -> None:
    graph = _steps("lstm", 3, 1, 64, F16)
    (result,) = scheduled(graph)
    assert "previous.f16" in {b.name for b in blocks(result.func.body)}
    assert len(launches(finalized(result.func))) == 2


def test_a_number_of_steps_that_a_run_gives() -> None:
    assert check(_steps("rnn", Var("T"), 1, 96), {"T": 3}) == ["steps"]


def test_small_steps_stay_in_one_block_of_threads() -> None:
    assert check(_steps("lstm", 3, 1, 20), {}) == ["general"]


@pytest.mark.parametrize(("cell", "count"), [("lstm", 2), ("gru", 3), ("rnn", 2)])
def test_each_sum_is_one_launch_with_its_formulas(cell: str, count: int) -> None:
    (result,) = scheduled(_steps(cell, 64, 1, 512))
    found = launches(finalized(result.func))
    assert [x.loop for x in found] == ["at.t"] * count
    assert all(as_int(x.steps) == 64 for x in found)
    assert as_int(found[1].grid) >= 128


def test_what_is_emitted_runs_step_by_step() -> None:
    for func, constants in sources(_steps("lstm", 3, 2, 48)):
        plain = finalized(schedule_for_gpu(func, constants, H200).func)
        arrays = sample(func, {})
        expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
        own = {p.name: arrays.get(p.name, np.zeros(1)).reshape(-1) for p in plain.params}
        for p in plain.params:
            if p.name not in arrays:
                own[p.name] = np.full(as_int(p.shape[0]), np.nan, p.dtype.numpy)
            if p.name == "x1":
                own[p.name] = np.ascontiguousarray(arrays["x1"].transpose(2, 1, 0)).reshape(-1)
        run_launches(plain, own, {})
        compare({o: own[o].reshape(a.shape) for o, a in expected.items()}, expected)
