from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.for_each import for_each
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.arrays import to_argument, to_array, to_tensor

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int8, torch.bool]


@for_each("dtype", DTYPES)
def test_there_and_back_over_the_same_memory(dtype: torch.dtype) -> None:
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    back = to_tensor(to_array(tensor))
    assert back.dtype == dtype
    assert torch.equal(back, tensor)
    assert back.data_ptr() == tensor.data_ptr()


def test_complex_tensors_are_pairs_over_the_same_memory() -> None:
    tensor = torch.tensor([[1 + 2j, 3 - 1j]])
    pairs = to_array(tensor)
    assert pairs.dtype == np.float32
    assert torch.equal(torch.view_as_complex(to_tensor(pairs)), tensor)
    assert to_tensor(pairs).data_ptr() == tensor.data_ptr()
    np.testing.assert_array_equal(to_array(tensor.conj())[..., 1], [[-2, 1]])


def test_what_is_not_contiguous_is_copied() -> None:
    tensor = torch.arange(6.0).reshape(2, 3).T.requires_grad_()
    assert np.array_equal(to_array(tensor), tensor.detach().numpy())


def test_other_memories_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="on meta"):
        to_array(torch.empty(3, device="meta"))
    with pytest.raises(UnsupportedError, match="sparse_coo"):
        to_array(torch.eye(3).to_sparse())


def test_results_that_are_no_arrays_of_numpy() -> None:
    class Result:
        def __init__(self) -> None:
            self.array = np.arange(3.0)

        def __dlpack__(self, **given: object) -> object:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    result = Result()
    tensor = to_tensor(result)
    assert tensor.data_ptr() == result.array.ctypes.data
    assert isinstance(to_argument(tensor), np.ndarray)
