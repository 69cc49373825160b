from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.dtypes import (
    BF16,
    BOOL,
    C128,
    DTYPES,
    F8E5M2,
    F16,
    F32,
    I8,
    INT4,
    U64,
    DType,
    dtype,
    from_numpy,
)
from tilewright.core.errors import TypeCheckError


@for_each("name", DTYPES)
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


def test_what_is_stored_and_not_computed_with() -> None:
    assert F8E5M2.is_storage
    assert F8E5M2.is_small
    assert BF16.is_storage
    assert not BF16.is_small
    assert not F16.is_storage
    assert INT4.is_small
    assert not INT4.is_storage
    assert not I8.is_small
    assert (INT4.bytes, C128.bytes, C128.alignment, F32.alignment) == (1, 16, 8, 4)


def test_what_is_no_element_type() -> None:
    with pytest.raises(TypeCheckError, match=r"dtype.unknown.*f8"):
        dtype("f8")
    with pytest.raises(TypeCheckError, match=r"dtype.numpy.*datetime"):
        from_numpy(np.dtype("datetime64[s]"))


def test_a_copy_is_the_same_type() -> None:
    assert pickle.loads(pickle.dumps(BF16)) is BF16
    assert copy.deepcopy(I8) is I8
    assert DType("bf16", "float", 16) is BF16
