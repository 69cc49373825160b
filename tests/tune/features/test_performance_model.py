from __future__ import annotations

from collections.abc import Sequence

from tests.schedule.programs import dense, matmul
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.cpu import BUILTIN
from tilewright.target.cpu import CpuTarget
from tilewright.target.registry import CPUS
from tilewright.tune.features.accesses import statements_of
from tilewright.tune.features.performance_model import Cost, estimate, estimate_all

TARGET = CPUS["aarch64"]


def _tiled(rows: int, columns: int, size: int = 240, vector: bool = True) -> Func:
    """A product by tiles of registers."""
    sch = Schedule(matmul(size, size, size))
    sch.split("y.i0", [None, rows])
    sch.split("y.i1", [None, columns])
    sch.split("y.i1.1", [None, 4])
    sch.reorder("y.i0.0", "y.i1.0", "y.r0", "y.i0.1", "y.i1.1.0", "y.i1.1.1")
    sch.unroll("y.i0.1")
    sch.unroll("y.i1.1.0")
    if vector:
        sch.vectorize("y.i1.1.1")
    return sch.func


def _cost(func: Func, target: CpuTarget = TARGET) -> Cost:
    (s,) = statements_of(func, buffers(func))
    return estimate(s, target)


def _best(tiles: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return min(tiles, key=lambda tile: _cost(_tiled(*tile)).total)


def test_arithmetic_is_the_roof_of_a_good_tile() -> None:
    good = _cost(_tiled(5, 16))
    assert good.arithmetic == 240**3 / 4 / 2  # four lanes, two instructions a cycle
    assert good.arithmetic <= good.total < 1.5 * good.arithmetic
    assert good.spills == 0


def test_tiles_too_small_wait_and_tiles_too_large_spill() -> None:
    assert _cost(_tiled(1, 4)).dependency > _cost(_tiled(1, 4)).arithmetic
    assert _cost(_tiled(1, 4)).load_store > _cost(_tiled(5, 16)).load_store
    assert _cost(_tiled(12, 16)).spills > 0
    assert _best([(1, 4), (2, 8), (5, 16), (12, 24), (24, 48)]) == (5, 16)


def test_vectors_count() -> None:
    assert _cost(_tiled(4, 8, vector=False)).total > 2 * _cost(_tiled(4, 8)).total
    wide = CPUS["x86-64-v4"]
    assert _cost(_tiled(4, 8), wide).registers <= _cost(_tiled(4, 8)).registers


def test_what_does_not_fit_is_filled_again() -> None:
    small, large = _cost(_tiled(4, 8, size=48)), _cost(_tiled(4, 8, size=1200))
    assert small.fills == (0.0, 0.0, 0.0)
    assert large.fills[0] > large.fills[1] > 0


def test_threads() -> None:
    costs = {}
    for parallel in (False, True):
        sch = Schedule(dense(240, 240, 240))
        if parallel:
            sch.parallel("mm.i0")
        found = statements_of(sch.func, buffers(sch.func))
        costs[parallel], total = estimate_all(found, TARGET)
        forks = BUILTIN.fork_cycles if parallel else 0.0
        assert total == sum(cost.total for cost in costs[parallel]) + forks
    assert costs[True][0].threads == 4
    assert costs[True][0].total == costs[False][0].total / 4


def _copied(index: str) -> Cost:
    text = f"""
        func @f(x: f32[4096, 4096], out y: f32[4096, 1024]) {{
          for i in serial(4096) {{ for j in serial(256) {{ for k in vectorize(4) {{
            y[i, j * 4 + k] = x[{index}]
          }} }} }}
        }}
        """
    return _cost(parse_func(text))


def test_elements_that_may_be_anywhere_are_loaded_one_by_one() -> None:
    assert _copied("i, min(j * 4 + k, 4095)").load_store > 2 * _copied("i, j * 4 + k").load_store


def test_lines_that_nothing_announces_are_waited_for() -> None:
    rows, columns = _copied("i, j * 4 + k"), _copied("j * 4 + k, i")
    assert columns.fills[1] > 4 * rows.fills[1] > 0
