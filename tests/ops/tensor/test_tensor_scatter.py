from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import ExecutionError, TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.tensor_scatter import TensorScatterAttrs

RNG = np.random.default_rng(4)


@for_each("circular", [False, True])
@for_each("shape", [(3, 7, 2), (3, 2, 7, 1)])
def test_each_sequence_at_its_own_place(shape: tuple[int, ...], circular: bool) -> None:
    cache, axis = RNG.standard_normal(shape).astype("f4"), shape.index(7)
    update = RNG.standard_normal((*shape[:axis], 3, *shape[axis + 1 :])).astype("f4")
    starts = np.array([0, 4, 6 if circular else 2])
    expected = cache.copy()
    for n, start in enumerate(starts):
        places = (start + np.arange(3)) % 7
        np.moveaxis(expected[n], axis - 1, 0)[places] = np.moveaxis(update[n], axis - 1, 0)
    attrs = TensorScatterAttrs(axis, circular)
    found = run_op("tensor_scatter", cache, update, starts, attrs=attrs)
    np.testing.assert_array_equal(found, expected)


def test_without_starts_and_beyond_the_end() -> None:
    cache, update = np.zeros((2, 4, 1), "i4"), np.ones((2, 2, 1), "i4")
    attrs = TensorScatterAttrs()
    found = run_op("tensor_scatter", cache, update, attrs=attrs)
    np.testing.assert_array_equal(found[:, :, 0], [[1, 1, 0, 0]] * 2)
    for circular, wrong in ((False, 3), (False, -1), (True, 4)):
        starts, attrs = np.array([0, wrong]), TensorScatterAttrs(circular=circular)
        with pytest.raises(ExecutionError, match=f"index {wrong} is outside"):
            run_op("tensor_scatter", cache, update, starts, attrs=attrs)


def test_operands_that_do_not_fit() -> None:
    infer = get_op("tensor_scatter").infer
    cache, update = tensor(F32, 2, 4, 3), tensor(F32, 2, 1, 3)
    for wrong in (
        [cache, tensor(F32, 2, 1, 4)],
        [cache, tensor(I64, 2, 1, 3)],
        [cache, update, tensor(I64, 3)],
        [cache, update, tensor(F32, 2)],
    ):
        with pytest.raises(TypeCheckError):
            infer(TensorScatterAttrs(), wrong)
    with pytest.raises(TypeCheckError, match="axis 0"):
        infer(TensorScatterAttrs(0), [cache, update])
