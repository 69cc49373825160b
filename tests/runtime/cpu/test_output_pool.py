from __future__ import annotations

import gc

import ml_dtypes
import numpy as np

from tests.for_each import for_each
from tilewright.runtime.cpu.output_pool import BUFFERS, OutputPool

F32 = np.dtype(np.float32)
SHAPE = (3, 5)


@for_each("dtype", [np.float32, np.int8, np.bool_, ml_dtypes.bfloat16])
@for_each("shape", [(), (0,), (3, 5), (100000,)])
def test_an_array_is_as_asked_for(shape: tuple[int, ...], dtype: type) -> None:
    array, address = OutputPool(np.dtype(dtype)).take(shape)
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert address == array.ctypes.data
    assert address % 64 == 0
    assert array.flags.carray


def test_a_buffer_is_used_again_only_when_nobody_holds_it() -> None:
    pool = OutputPool(F32)
    first, where = pool.take(SHAPE)
    second, elsewhere = pool.take(SHAPE)
    assert where != elsewhere
    del first
    assert pool.take(SHAPE)[1] == where
    assert pool.take(SHAPE)[1] == where
    del second
    assert pool.take(SHAPE)[1] in (where, elsewhere)


@for_each(
    "view",
    [
        lambda a: a[1:, ::2],
        lambda a: a.T.reshape(-1, order="A")[3:4],
        lambda a: a.view(np.int8),
        lambda a: memoryview(a),
        lambda a: memoryview(a[1])[1:],
        lambda a: np.frombuffer(a, np.uint8)[3:],
        lambda a: np.lib.stride_tricks.as_strided(a, (2, 2), (4, 4)),
        lambda a: np.from_dlpack(a),
        lambda a: a.__dlpack__(),
        lambda a: a.base,
        lambda a: a.flat,
        lambda a: a.ctypes,
        lambda a: [a] * 3,
    ],
)
def test_every_kind_of_view_holds_the_buffer(view: object) -> None:
    pool = OutputPool(F32)
    array, where = pool.take(SHAPE)
    held = view(array)  # type: ignore[operator]
    del array
    others = [pool.take(SHAPE) for _ in range(5)]
    assert where not in [address for _, address in others]
    del held, others
    gc.collect()


def test_results_that_are_held_stay_as_they_are() -> None:
    pool = OutputPool(F32)
    held = []
    for number in range(10):
        array, _ = pool.take(SHAPE)
        array[:] = number
        held.append(array)
    assert [float(array.max()) for array in held] == list(range(10))
    assert len({array.ctypes.data for array in held}) == 10


def test_the_pool_does_not_grow() -> None:
    pool = OutputPool(F32)
    held = [pool.take(SHAPE) for _ in range(100)]
    assert len(pool._buffers) == BUFFERS
    del held
    for size in range(1, 1000, 7):
        pool.take((size * 100,))
    assert len(pool._buffers) == BUFFERS


def test_sizes_may_change() -> None:
    pool = OutputPool(F32)
    where = pool.take((100, 50))[1]
    array, again = pool.take((50, 90))
    assert (array.shape, again) == ((50, 90), where)
    small, _ = pool.take((3,))
    assert small.shape == (3,)


def test_a_small_result_does_not_hold_a_large_buffer() -> None:
    pool = OutputPool(F32)
    pool.take((1 << 20,))
    small, _ = pool.take((4,))
    assert small.base.nbytes < 1 << 10
