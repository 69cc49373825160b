from __future__ import annotations

import numpy as np

from tests.schedule.programs import dense, refused
from tilewright.arith.expr import Cast
from tilewright.core.dtypes import F16, F32
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import buffers
from tilewright.ir.tensor.build import Builder
from tilewright.lower.loop_nests import program_func
from tilewright.ops.accumulation import narrow_product
from tilewright.schedule.schedule import Schedule


def _product(m: int = 3, n: int = 5, k: int = 32) -> Func:
    """`x @ w + 1` of f16, its products widened before they are summed."""
    b = Builder("mm")
    x, w = b.input("x", F16, (m, k)), b.input("w", F16, (k, n))
    total = b.compute(
        "total", (m, n), lambda i, j: b.sum((k,), lambda r: narrow_product(x[i, r], w[r, j]))
    )
    y = b.compute("y", (m, n), lambda i, j: Cast(F16, total[i, j] + 1.0))
    return program_func(b.program(y))


def _run(func: Func) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 32)).astype(np.float16)
    w = rng.standard_normal((32, 5)).astype(np.float16)
    arrays = {"x": x, "w": w, "y": np.zeros((3, 5), np.float16)}
    run_func(func, arrays, {})
    expected = x.astype(np.float64) @ w.astype(np.float64) + 1
    np.testing.assert_allclose(arrays["y"], expected, rtol=2e-2, atol=3e-2)
    return arrays["y"]


def test_the_whole_sum_is_narrow() -> None:
    sch = Schedule(_product())
    sch.narrow_accumulator("total")
    verify_func(sch.func)
    assert buffers(sch.func)["total"].dtype == F16
    _run(sch.func)
    assert sch.trace.replay(_product()) == sch.func


def test_parts_are_narrow_and_their_sum_is_wide() -> None:
    sch = Schedule(_product())
    outer, _ = sch.split("total.r0", [None, 8])
    sch.narrow_accumulator(sch.rfactor("total", outer))
    verify_func(sch.func)
    known = buffers(sch.func)
    assert (known["total.rf"].dtype, known["total"].dtype) == (F16, F32)
    _run(sch.func)


def test_refused() -> None:
    sch = Schedule(dense())
    refused("narrow-accumulator.sum", sch.narrow_accumulator, "mm")
    refused("narrow-accumulator.sum", Schedule(dense(4, 4, 4)).narrow_accumulator, "mm")
