from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import tilewright as tw
from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.errors import DIVISOR_SIZE, ExecutionError, TypeCheckError, index_outside

TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def quotient(dtype: str, shape: str = "N") -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g ({dtype}[{shape}] a, {dtype}[{shape}] b) => '
        f"({dtype}[{shape}] q, {dtype}[{shape}] r) {{ [part] q = Div(a, b) [rest] r = Mod(a, b) }}"
    )


@for_each("dtype", TYPES)
def test_divisors_stay_as_they_are(dtype: str) -> None:
    x = np.array([1, 3, np.iinfo(dtype).max, np.iinfo(dtype).min or 2], dtype)
    np.testing.assert_array_equal(run_op("nonzero_divisor", x), x)
    with pytest.raises(ExecutionError, match="integer division by zero"):
        run_op("nonzero_divisor", np.array([1, 0, 3], dtype))


def test_an_empty_dimension_is_no_divisor() -> None:
    assert index_outside(3, 0).code == "run.index"
    assert index_outside(1, DIVISOR_SIZE).code == "run.division"


def test_floats_have_a_quotient() -> None:
    with pytest.raises(TypeCheckError, match="not of integers"):
        run_op("nonzero_divisor", np.ones(3, np.float32))


@for_each("dtype", TYPES)
def test_every_zero_is_found_by_compiled_code(dtype: str) -> None:
    a, b = np.arange(37).astype(dtype), np.arange(1, 38).astype(dtype)
    with tw.compile(quotient(dtype)) as model:
        for place in (0, 15, 16, 36):
            wrong = b.copy()
            wrong[place] = 0
            with pytest.raises(ExecutionError) as caught:
                model(a, wrong)
            assert caught.value.code == "run.division"
            assert "node part" in str(caught.value)
        found = model(a, b)
    np.testing.assert_array_equal(found[0], a // b)
    np.testing.assert_array_equal(found[1], a % b)


def test_checks_can_be_switched_off() -> None:
    a, b = np.array([7, 8], np.int32), np.array([2, 0], np.int32)
    with tw.compile(quotient("int32"), checks="off") as model:
        np.testing.assert_array_equal(model(a, b), [[3, 0], [1, 0]])
