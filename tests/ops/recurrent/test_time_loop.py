from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Var
from tilewright.core.dtypes import F16, F32, I32
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.loop_builder import parameters
from tilewright.ops.recurrent.time_loop import ROW, UNIT, StepLoops


def _running_sum(ins: list[TensorType | None], outs: list[TensorType], **rest: object) -> StepLoops:
    """Adds each step's input to the state."""
    params = parameters(ins, outs)
    loops = StepLoops("sum", params, 0, bool(rest.get("reverse")), str(rest.get("lengths", "")))
    loops.state("previous", loops.previous("y1", ""))
    before = loops.load("previous", ROW, UNIT)
    loops.output(before + loops.input(0), before)
    return loops


def _run(loops: StepLoops, x: np.ndarray, **more: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    func = loops.func(("y0", "y1"))
    verify_func(func)
    assert parse_func(print_func(func), "") == func
    y, h = np.empty(x.shape[:2] + x.shape[4:], x.dtype), np.empty(x.shape[1:5:3], x.dtype)
    run_func(func, {"x0": x, "y0": y, "y1": h, **more}, {})
    return y, h


def _types(time: int, batch: int, units: int) -> tuple[TensorType, list[TensorType]]:
    x = tensor(F32, time, batch, 1, 1, units)
    return x, [tensor(F32, time, batch, units), tensor(F32, batch, units)]


def test_a_state_is_kept_from_step_to_step() -> None:
    x, outs = _types(4, 2, 3)
    data = np.random.default_rng(0).standard_normal((4, 2, 1, 1, 3)).astype(np.float32)
    y, h = _run(_running_sum([x], outs), data)
    np.testing.assert_allclose(y, np.cumsum(data[:, :, 0, 0], axis=0), rtol=1e-5)
    np.testing.assert_array_equal(h, y[-1])


def test_a_reversed_sequence_starts_at_its_own_end() -> None:
    x, outs = _types(4, 2, 1)
    data = np.arange(1, 9, dtype=np.float32).reshape(4, 2, 1, 1, 1)
    lengths = np.array([2, 4], np.int32)
    loops = _running_sum([x, tensor(I32, 2)], outs, reverse=True, lengths="x1")
    y, h = _run(loops, data, x1=lengths)
    assert y[:, 0, 0].tolist() == [4, 3, 0, 0]
    assert y[:, 1, 0].tolist() == [20, 18, 14, 8]
    assert h[:, 0].tolist() == [4, 20]


def test_narrow_types_are_computed_in_wider_ones() -> None:
    time = Var("T")
    ins: list[TensorType | None] = [tensor(F16, time, 1, 1, 1, 4)]
    loops = _running_sum(ins, [tensor(F16, time, 1, 4), tensor(F16, 1, 4)])
    assert loops.dtype == F32
    assert loops.own["previous"].dtype == F32
    verify_func(loops.func(("y0", "y1")))
