from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.schedule.programs import func_of
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import blocks, find_loop
from tilewright.schedule.builtin.cpu.simd_reduction import MAX_SCALAR_PARTIALS, reduce_in_lanes
from tilewright.schedule.schedule import Schedule


def _sums(extent: str) -> Func:
    return func_of(
        f"""
        func @f(a: f32[3, {extent}], out y: f32[3]) {{
          alloc s: f32[3]
          for i in serial(3) {{
            for k in serial({extent}) {{
              block "s" [v: S(3) = i, r: R({extent}) = k] reads a[v, r] writes s[v]
                init {{ s[v] = 0.0 }}
                {{ s[v] = s[v] + a[v, r] }}
            }}
            block "y" [v: S(3) = i] reads s[v] writes y[v] {{ y[v] = s[v] * 2.0 }}
          }}
        }}
        """
    )


def _result(func: Func, n: int) -> np.ndarray:
    y = np.zeros(3, np.float32)
    run_func(func, {"a": np.arange(3 * n, dtype=np.float32).reshape(3, n), "y": y}, {"N": n})
    return y


@for_each(("factor", "lanes"), [(0, 4), (4, 4), (16, 4), (8, 8), (64, 16)])
@for_each("n", [1, 16, 64, 70])
def test_meaning(factor: int, lanes: int, n: int) -> None:
    for extent in (str(n), "N"):
        before = _sums(extent)
        sch = Schedule(before)
        reduce_in_lanes(sch, "s", "r", factor, lanes)
        np.testing.assert_array_equal(_result(sch.func, n), _result(before, n))


def test_vectors_are_combined_then_halves_of_one() -> None:
    sch = Schedule(_sums("256"))
    reduce_in_lanes(sch, "s", "r", 48, 16)
    names = {b.name for b in blocks(sch.func.body)}
    assert {"s.rf", "s.rf2", "s.rf3", "s.rf4", "s.rf5"} <= names
    lanes = [str(find_loop(sch.func, f"s.final{n}.ax0.1").extent) for n in ("", 2, 3, 4)]
    assert lanes == ["16", "8", "4", "2"]
    assert find_loop(sch.func, "s.final.ax0.1").kind == "vectorize"
    assert str(find_loop(sch.func, "s.final5.ax0").extent) == str(MAX_SCALAR_PARTIALS)


def test_a_sum_of_nothing_but_minus_zero_is_zero() -> None:
    sch = Schedule(_sums("64"))
    reduce_in_lanes(sch, "s", "r", 64, 16)
    y = np.ones(3, np.float32)
    run_func(sch.func, {"a": np.full((3, 64), -0.0, np.float32), "y": y}, {})
    assert not np.signbit(y).any()
