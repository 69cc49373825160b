from __future__ import annotations

import pytest
import torch

from tilewright.core.dtypes import BF16, F32, F64, I32, I64
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.dtypes import from_torch, promoted, to_torch


def test_there_and_back() -> None:
    assert from_torch(torch.bfloat16) == BF16
    assert to_torch(I64) == torch.int64


def test_promotion_is_torchs() -> None:
    assert promoted((I32, 1), (F32, 1)) == F32
    assert promoted((I32, 1), 2.5) == F32
    assert promoted((F32, 1), (F64, 0)) == F32
    assert promoted((I32, 2), 7) == I32


def test_unknown_types() -> None:
    with pytest.raises(UnsupportedError, match="float8"):
        from_torch(torch.float8_e5m2)
