from __future__ import annotations

import torch
from torch._export.serde import schema
from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE as DTYPES_OF_TORCH
from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_MEMORY_FORMAT

from tilewright.frontends.torch.program.enumerations import DTYPES, MEMORY_FORMATS, STRIDED


def test_numbers_are_those_that_torch_writes() -> None:
    assert {int(number): dtype for number, dtype in DTYPES_OF_TORCH.items()} == DTYPES
    theirs = {int(number): found for number, found in _SERIALIZE_TO_TORCH_MEMORY_FORMAT.items()}
    assert theirs == MEMORY_FORMATS
    assert schema.Layout.Strided == STRIDED
    assert torch.float32 in DTYPES.values()
