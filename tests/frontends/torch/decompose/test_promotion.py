from __future__ import annotations

import torch

from tilewright.frontends.torch.decompose.promotion import promoted, widened


def test_operands_are_of_the_type_of_the_result() -> None:
    whole, wide = torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.float64)
    assert [t.dtype for t in promoted(whole, wide)] == [torch.float64] * 2
    assert [t.dtype for t in promoted(whole, 2)] == [torch.int32] * 2
    assert [t.dtype for t in promoted(whole, 2.5)] == [torch.float32] * 2
    assert [t.dtype for t in promoted(whole, whole, to_float=True)] == [torch.float32] * 2


def test_only_16_bit_floats_are_widened() -> None:
    types = (torch.float16, torch.bfloat16, torch.float64, torch.int16)
    found = [widened(torch.ones(1, dtype=dtype)).dtype for dtype in types]
    assert found == [torch.float32, torch.float32, torch.float64, torch.int16]
