from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.core.dtypes import dtype
from tilewright.core.errors import ExecutionError
from tilewright.runtime.binding import Binder, Port, check_results

F32 = dtype("f32")
BINDER = Binder(
    [
        Port("x", F32, ("N", 3)),
        Port("mask", dtype("i64"), ("N", "M")),
        Port("scale", F32, ()),
    ],
    ["N", "M"],
    [[0, 0], [1, 1]],
)
X, MASK, SCALE = np.ones((4, 3), np.float32), np.ones((4, 2), np.int64), np.float32(2)


def message(code: str, *args: Any, **named: Any) -> str:
    with pytest.raises(ExecutionError) as caught:
        BINDER.bind(BINDER.in_order(args, named))
    assert caught.value.code == code
    return str(caught.value)


def test_by_position_and_by_name() -> None:
    for args, named in [
        ((X, MASK, SCALE), {}),
        ((X,), {"scale": SCALE, "mask": MASK}),
        ((), {"scale": SCALE, "mask": MASK, "x": X}),
    ]:
        arrays, sizes = BINDER.bind(BINDER.in_order(args, named))
        assert arrays[0] is X
        assert arrays[1] is MASK
        assert arrays[2].shape == ()
        assert sizes == [4, 2]


def test_port_text() -> None:
    assert str(BINDER.inputs[1]) == "mask: i64[N, M]"
    entry = {"name": "mask", "dtype": "i64", "shape": ["N", "M"]}
    assert Port.from_manifest(entry) == BINDER.inputs[1]


def test_wrong_arguments() -> None:
    assert "inputs mask, scale not given" in message("run.arguments", X)
    assert "input scale not given" in message("run.arguments", X, mask=MASK)
    assert "x is given twice" in message("run.arguments", X, MASK, x=X)
    assert "did you mean mask?" in message("run.arguments", X, msk=MASK)
    assert "(x: f32[N, 3], mask: i64[N, M], scale: f32[])" in message("run.arguments", q=1)
    assert "4 arguments given, the model has 3 inputs" in message("run.arguments", 1, 2, 3, 4)


def test_no_silent_casts() -> None:
    text = message("run.dtype", X.astype(np.float64), MASK, SCALE)
    assert "input x is f32, got an array of float64" in text
    assert 'astype("float32")' in text
    assert "int32" in message("run.dtype", X, MASK.astype(np.int32), SCALE)
    assert "float64" in message("run.dtype", X, MASK, 2.0)
    assert ">f4" in message("run.dtype", X.astype(">f4"), MASK, SCALE)
    assert "object" in message("run.dtype", object(), MASK, SCALE)


def test_lists_of_the_exact_type_are_welcome() -> None:
    arrays, sizes = BINDER.bind((X, [[1, 2]] * 4, SCALE))
    assert arrays[1].dtype == np.int64
    assert sizes == [4, 2]


def test_wrong_shapes() -> None:
    text = message("run.shape", np.ones((4, 5), np.float32), MASK, SCALE)
    assert "input x has shape [N, 3], got an array of shape [4, 5]" in text
    assert "[4]" in message("run.shape", np.ones(4, np.float32), MASK, SCALE)
    assert "got an array of shape [1]" in message("run.shape", X, MASK, np.ones(1, np.float32))


def test_sizes_must_agree() -> None:
    text = message("run.symbol", X, MASK[:3], SCALE)
    assert "size N is 4 in input x (axis 0) but 3 in input mask (axis 0)" in text


def test_memory_is_made_dense() -> None:
    wide = np.arange(48, dtype=np.float32).reshape(4, 12)
    raw = np.zeros(49, np.uint8)[1:].view(np.float32).reshape(4, 3)
    assert not raw.flags.aligned
    for array in (wide[:, ::4], np.asfortranarray(X), raw, X[::-1]):
        arrays, _ = BINDER.bind((array, MASK, SCALE))
        assert arrays[0].flags.c_contiguous
        assert arrays[0].flags.aligned
        np.testing.assert_array_equal(arrays[0], array)


class Tensor:
    """A tensor of another framework: it speaks DLPack only."""

    def __init__(self, array: np.ndarray, error: str = "") -> None:
        self.array, self.error = array, error

    def __dlpack__(self, **options: Any) -> Any:
        if self.error:
            raise BufferError(self.error)
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_dlpack() -> None:
    arrays, _ = BINDER.bind((Tensor(X), Tensor(MASK), SCALE))
    assert np.shares_memory(arrays[0], X)
    assert "it has a gradient" in message("run.array", Tensor(X, "it has a gradient"), MASK, SCALE)


def test_what_is_no_array() -> None:
    assert "a list cannot be read" in message("run.array", [[1.0], [1.0, 2.0]], MASK, SCALE)


def test_masks_are_not_ignored() -> None:
    masked = np.ma.masked_array(X, X > 0)
    assert "array.filled" in message("run.mask", masked, MASK, SCALE)


def test_empty_arrays_and_bf16() -> None:
    binder = Binder([Port("x", dtype("bf16"), ("N", 0))], ["N"], [[0, 0]])
    arrays, sizes = binder.bind((np.zeros((0, 0), ml_dtypes.bfloat16),))
    assert sizes == [0]
    assert arrays[0].shape == (0, 0)


def test_no_inputs() -> None:
    binder = Binder([], [], [])
    assert binder.bind(()) == ([], [])
    with pytest.raises(ExecutionError, match="takes no inputs"):
        binder.bind((1,))


def test_contradictory_declarations() -> None:
    with pytest.raises(ExecutionError, match="size K of input x"):
        Binder([Port("x", F32, ("K",))], ["N"], [[0, 0]])
    with pytest.raises(ExecutionError, match=r"axis 1 of input x: f32\[N, 3\] is not N"):
        Binder([Port("x", F32, ("N", 3))], ["N"], [[0, 1]])


def test_arrays_for_results() -> None:
    ports = [Port("a", F32, ("N", 3)), Port("b", dtype("i64"), ())]
    shapes = [(4, 3), ()]
    a, b = np.empty((4, 3), np.float32), np.empty((), np.int64)
    assert check_results(ports, shapes, {"b": b, "a": a}, [X])[0] is a
    frozen = np.empty((4, 3), np.float32)
    frozen.flags.writeable = False
    for given, said in [
        ({"a": a}, "arrays for a, b, got a"),
        ({}, "got none"),
        ({"a": a.tolist(), "b": b}, "is a list"),
        ({"a": a.astype(np.float64), "b": b}, "is float64 of shape [4, 3], not f32 of [4, 3]"),
        ({"a": a[:3], "b": b}, "is float32 of shape [3, 3], not f32 of [4, 3]"),
        ({"a": np.empty((3, 4), np.float32).T, "b": b}, "is not contiguous"),
        ({"a": frozen, "b": b}, "is not contiguous, aligned and writable"),
        ({"a": X, "b": b}, "shares its memory with an input"),
    ]:
        with pytest.raises(ExecutionError) as caught:
            check_results(ports, shapes, given, [X])
        assert said in str(caught.value)
    ports, shapes = [ports[0], Port("c", F32, ("N", 3))], [(4, 3), (4, 3)]
    with pytest.raises(ExecutionError, match="output c shares its memory with another"):
        check_results(ports, shapes, {"a": a, "c": a}, [X])
