"""Sequences against Python's lists."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.segments.host.host_calls import run_host
from tilewright.core.errors import ExecutionError

A, B, C = (np.full((2, 3), k, np.float32) for k in range(3))


def test_making_and_counting() -> None:
    (made,) = run_host("SequenceConstruct", A, B)
    assert made == [A, B] or (made[0] is A and made[1] is B)
    assert run_host("SequenceLength", made)[0] == 2
    assert run_host("SequenceEmpty")[0] == []


@for_each(("position", "expected"), [(0, A), (-1, C), (1, B)])
def test_at(position: int, expected: np.ndarray) -> None:
    assert run_host("SequenceAt", [A, B, C], np.array(position))[0] is expected


@for_each("position", [3, -4])
def test_positions_outside(position: int) -> None:
    for op in ("SequenceAt", "SequenceErase"):
        with pytest.raises(ExecutionError, match="outside a sequence of 3"):
            run_host(op, [A, B, C], np.array(position))


def test_inserting_and_erasing() -> None:
    given = [A, B]
    (longer,) = run_host("SequenceInsert", given, C)
    assert [id(x) for x in longer] == [id(A), id(B), id(C)]
    (front,) = run_host("SequenceInsert", given, C, np.array(-2))
    assert front[0] is C
    (end,) = run_host("SequenceInsert", given, C, np.array(2))
    assert end[2] is C
    (shorter,) = run_host("SequenceErase", [A, B, C])
    assert len(shorter) == 2
    assert len(given) == 2, "sequences are values"


def test_joining() -> None:
    np.testing.assert_array_equal(
        run_host("ConcatFromSequence", [A, B], axis=1)[0], np.concatenate([A, B], 1)
    )
    assert run_host("ConcatFromSequence", [A, B], axis=-1, new_axis=1)[0].shape == (2, 3, 2)
    with pytest.raises(ExecutionError, match="empty"):
        run_host("ConcatFromSequence", [], axis=0)


def test_splitting() -> None:
    x = np.arange(10).reshape(5, 2)
    whole = run_host("SplitToSequence", x)[0]
    assert [p.shape for p in whole] == [(1, 2)] * 5
    flat = run_host("SplitToSequence", x, axis=1, keepdims=0)[0]
    assert [p.shape for p in flat] == [(5,)] * 2
    assert [len(p) for p in run_host("SplitToSequence", x, np.array(2))[0]] == [2, 2, 1]
    assert [len(p) for p in run_host("SplitToSequence", x, np.array([1, 4]))[0]] == [1, 4]
    assert run_host("SplitToSequence", x[:0])[0] == []
    with pytest.raises(ExecutionError, match="do not add up to 5"):
        run_host("SplitToSequence", x, np.array([1, 1]))
    with pytest.raises(ExecutionError, match="parts of 0"):
        run_host("SplitToSequence", x, np.array(0))
