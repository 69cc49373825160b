from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from tests.for_each import for_each
from tilewright.core.dtypes import DTYPES as OURS
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.onnx.model.dtypes import DTYPES, onnx_dtype


@for_each("code", [c for c in TensorProto.DataType.values() if c])
def test_every_type_of_onnx_is_known(code: int) -> None:
    found = onnx_dtype(code)
    if code != TensorProto.STRING:
        assert found.numpy == helper.tensor_dtype_to_np_dtype(code)


def test_all_of_ours_have_a_number() -> None:
    assert set(DTYPES.values()) == set(OURS.values())


def test_what_is_no_type() -> None:
    with pytest.raises(UnsupportedError, match="UNDEFINED is not supported"):
        onnx_dtype(0)
    with pytest.raises(UnsupportedError, match="99 is not supported"):
        onnx_dtype(99)
