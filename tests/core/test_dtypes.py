from __future__ import annotations

import numpy as np
import pytest

from tilewright.core.dtypes import BF16, BOOL, DTYPES, F32, I8, U64, dtype, from_numpy
from tilewright.core.errors import TypeCheckError


@pytest.mark.parametrize("name", DTYPES)
def test_names_and_numpy_types_go_both_ways(name: str) -> None:
    found = dtype(name)
    assert str(found) == name
    assert from_numpy(np.dtype(object) if name == "string" else found.numpy) == found
    assert found.numpy.itemsize == found.bytes


def test_kinds() -> None:
    assert F32.is_float
    assert BF16.is_float
    assert not BOOL.is_integer
    assert I8.is_integer
    assert U64.is_integer
    assert not U64.is_float


def test_what_is_no_element_type() -> None:
    with pytest.raises(TypeCheckError, match=r"dtype.unknown.*f8"):
        dtype("f8")
    with pytest.raises(TypeCheckError, match=r"dtype.numpy.*datetime"):
        from_numpy(np.dtype("datetime64[s]"))
