from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tilewright.runtime.cpu import execution_context as execution_context_module
from tilewright.runtime.cpu.execution_context import ExecutionContext
from tilewright.runtime.shape_plan import ShapePlan

F32 = np.dtype(np.float32)


class Doubler:
    """Stands for a native model: y = 2 x, with x found as `tw_call` finds it."""

    def __init__(self) -> None:
        self.bound = 0
        self.blocks: list[list[int]] = []

    def bind(self, args: Sequence[Any]) -> tuple[Sequence[np.ndarray], ShapePlan]:
        self.bound += 1
        array = np.ascontiguousarray(args[0], F32)
        dims = (ctypes.c_int64 * 1)(array.size)
        return [array], ShapePlan((array.shape,), (array.shape,), dims, 16 * array.size)

    def call(self, address: int) -> int:
        block = (ctypes.c_int64 * 9).from_address(address)
        self.blocks.append(list(block))
        size = ctypes.c_int64.from_address(block[2]).value
        holder, offset = block[7], block[1]
        data = ctypes.c_void_p.from_address(holder + offset).value or 0
        source, target = ((ctypes.c_float * size).from_address(at) for at in (data, block[8]))
        target[:] = [2 * value for value in source]
        ctypes.memset(block[3], 255, 16 * size)
        return 0 if size != 13 else 7


@pytest.fixture(params=["array", "cell"])
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Doubler:
    if request.param == "cell":
        monkeypatch.setattr(execution_context_module, "DATA_OFFSET", None)
    return Doubler()


def make(model: Doubler) -> ExecutionContext:
    return ExecutionContext(model.call, model.bind, [F32], [F32], 12345)


def check(context: ExecutionContext, x: Any) -> None:
    status, (y,) = context.run((x,))
    assert status == 0
    np.testing.assert_array_equal(y, 2 * np.asarray(x, F32))


def test_like_arguments_are_bound_once(model: Doubler) -> None:
    context = make(model)
    for value in range(5):
        check(context, np.full((2, 3), value, F32))
    assert model.bound == 1
    assert model.blocks[-1][0] == 1
    assert model.blocks[-1][4:6] == [12345, 0]


@pytest.mark.parametrize(
    "other",
    [
        np.ones((3, 2), F32),
        np.ones((2, 3), np.float64),
        np.ones((3, 2), F32).T,
        np.ones((2, 6), F32)[:, ::2],
        np.ones((2, 3), F32).view(np.matrix),
        np.frombuffer(b"\0" * 25, np.int8)[1:].view(F32).reshape(2, 3),
        [[1, 2, 3], [4, 5, 6]],
        np.zeros((2, 0), F32),
    ],
    ids=["shape", "dtype", "transposed", "strided", "subclass", "unaligned", "list", "empty"],
)
def test_others_are_bound_with_every_check(model: Doubler, other: Any) -> None:
    context = make(model)
    x = np.arange(6, dtype=F32).reshape(2, 3)
    check(context, x)
    check(context, other)
    assert model.bound == 2
    check(context, x)


def test_memory_that_may_not_be_written_is_welcome(model: Doubler) -> None:
    context = make(model)
    x = np.frombuffer(np.arange(4, dtype=F32).tobytes(), F32)
    check(context, x)
    check(context, x)
    assert model.bound == 1


def test_the_arena_grows(model: Doubler) -> None:
    context = make(model)
    for size in (4, 1000, 3, 100000):
        check(context, np.ones(size, F32))
        assert model.blocks[-1][3] % 64 == 0


def test_a_frame_without_memory_forgets_its_plan(
    model: Doubler, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = make(model)
    small, large = np.ones(4, F32), np.ones(1000, F32)
    check(context, small)

    def fail(*given: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(execution_context_module, "aligned_empty", fail)
        with pytest.raises(MemoryError):
            context.run((large,))
    check(context, small)
    assert model.bound == 3
    check(context, large)


def test_results_go_where_they_are_wanted(model: Doubler) -> None:
    context = make(model)
    x, y = np.arange(4, dtype=F32), np.empty(4, F32)
    status, results = context.run((x,), [y])
    assert status == 0
    assert results[0] is y
    np.testing.assert_array_equal(y, 2 * x)


def test_times_and_status_are_passed_on(model: Doubler) -> None:
    context = make(model)
    times = np.zeros(3, np.int64)
    x = np.ones(13, F32)
    assert context.run((x,), times=times)[0] == 7
    assert model.blocks[-1][5] == times.ctypes.data
    context.run((x,))
    assert model.blocks[-1][5] == 0
