from __future__ import annotations

import numpy as np
import pytest

from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.scheduled import AARCH64, check, kinds, scheduled, sources
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BF16, F32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.recurrent.cells import StepsAttrs
from tilewright.schedule.builtin.cpu.recurrence import steps_loop
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.schedule import Schedule
from tilewright.target.registry import CPUS


def _lstm(time: object, batch: object, units: int, weights: DType = F32) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, time, batch, 1, 4, units))
    r = g.input("r", tensor(weights, units, 4, units))
    attrs = StepsAttrs(("sigmoid", "tanh", "tanh"), (0.0,) * 3, (0.0,) * 3)
    return g.graph(*g.add_many("lstm_steps", x, r, attrs=attrs))


def _gru(time: object, batch: object, units: int, weights: DType = F32) -> Graph:
    """With a product of its own for the candidate."""
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, time, batch, 1, 3, units))
    r = g.input("r", tensor(weights, units, 2, units))
    r2 = g.input("r2", tensor(weights, units, 1, units))
    attrs = StepsAttrs(("sigmoid", "tanh"), (0.0,) * 2, (0.0,) * 2, reverse=True)
    return g.graph(*g.add_many("gru_steps", x, r, r2, attrs=attrs))


@pytest.mark.parametrize("target", ["aarch64", "x86-64-v3"])
@pytest.mark.parametrize(("batch", "units"), [(1, 8), (2, 20), (5, 3), (Var("B"), 5)])
def test_steps_keep_their_meaning(target: str, batch: object, units: int) -> None:
    for graph in (_lstm(3, batch, units), _gru(Var("T"), batch, units)):
        assert check(graph, {"T": 3, "B": 3}, CPUS[target]) == ["recurrence"]


@pytest.mark.parametrize("target", ["neoverse-v1", "sapphirerapids", "x86-64-v3"])
@pytest.mark.parametrize(("batch", "units"), [(1, 8), (2, 20), (5, 3), (Var("B"), 6)])
def test_weights_in_bf16(target: str, batch: object, units: int) -> None:
    for graph in (_lstm(3, batch, units, BF16), _gru(Var("T"), batch, units, BF16)):
        ((func, _),) = sources(graph)
        result = schedule_func(func, frozenset({"x1", "x2"}), CPUS[target])
        sizes = {"T": 3, "B": 3}
        arrays = sample(func, sizes)
        expected = run(func, arrays, sizes)
        found = run(result.func, arrays, sizes)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-2, atol=1e-2)


def test_pairs_of_bf16_are_one_instruction() -> None:
    ((func, _),) = sources(_lstm(3, 1, 32, BF16))
    result = schedule_func(func, frozenset({"x1"}), CPUS["sapphirerapids"])
    assert 'using "vdpbf16ps"' in print_func(result.func)
    (layout,) = (layout for name, layout in result.func.layouts if name == "x1")
    assert layout.parts == ((2, 32, 0), (0, 2, 0), (1, 0, 0), (2, 32, 1), (0, 2, 1))


def test_sums_stay_in_registers() -> None:
    ((func, _),) = sources(_lstm(3, 1, 32))
    result = schedule_func(func, frozenset({"x1"}), AARCH64)
    assert "alloc sums: f32[3, 1, 4, 32] @register" in print_func(result.func)
    (layout,) = (layout for name, layout in result.func.layouts if name == "x1")
    assert layout.parts == ((2, 16, 0), (0, 0, 0), (1, 0, 0), (2, 16, 1))
    assert "parallel" not in kinds(result.func)


def test_rows_of_an_unknown_batch_do_not_make_tiles_narrower() -> None:
    rows = {}
    for name, graph in (("lstm", _lstm(3, Var("B"), 32)), ("gru", _gru(3, Var("B"), 32))):
        ((func, _),) = sources(graph)
        text = print_func(schedule_func(func, frozenset({"x1", "x2"}), AARCH64).func)
        rows[name] = [n for n in (2, 3, 4) if f"unroll({n}) {{edge_rows=1}}" in text]
    assert rows["lstm"] == [3]
    assert 4 not in rows["gru"]


def test_large_steps_are_shared_among_threads() -> None:
    (lstm,) = scheduled(_lstm(3, 1, 256))
    assert len(kinds(lstm.func)["parallel"]) == 1
    (gru,) = scheduled(_gru(3, 1, 512))
    assert len(kinds(gru.func)["parallel"]) == 2
    assert "at.t" in kinds(gru.func)["serial"]


@pytest.mark.parametrize("graph", [_lstm(2, 2, 12), _gru(2, 1, 460)], ids=["lstm", "gru"])
def test_every_step_is_legal(graph: Graph) -> None:
    ((func, constants),) = sources(graph)
    sch = Schedule(func, legality=True)
    for step in schedule_func(func, constants, AARCH64).trace.steps:
        sch.apply(step)


def test_only_a_loop_with_several_nests_is_a_recurrence() -> None:
    g = GraphBuilder("f")
    x, w = g.input("x", tensor(F32, 4, 4)), g.input("w", tensor(F32, 4, 4))
    ((func, _),) = sources(g.graph(g.add("relu", g.add("matmul", x, w))))
    assert steps_loop(func) is None
    ((func, _),) = sources(_lstm(3, 1, 4))
    loop = steps_loop(func)
    assert loop is not None
    assert loop.name == "at.t"
