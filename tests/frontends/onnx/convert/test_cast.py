"""Cast and CastLike, compiled, against the reference implementation of ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tests.for_each import for_each
from tests.frontends.onnx.one_node import model_of
from tilewright.core.dtypes import (
    BF16,
    DTYPES,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    F16,
    F32,
    F64,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    DType,
)
from tilewright.core.errors import Error, FrontendError
from tilewright.frontends.onnx.model.dtypes import DTYPES as CODES

CODE = {dtype: code for code, dtype in CODES.items()}
EDGES = [0.0, -0.0, 0.3, -1.7, 15.5, 239, 240, 247, 248, 249, 447, 448, 463, 464, 465, 1e4, 57344]
EDGES += [61439, 61440, 61441, 65504, -448, -480, -1e5, np.inf, -np.inf, np.nan, 1e-3, 2e-5, 3e-6]
FLOAT8 = (F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ)


def _cast(x: np.ndarray, to: DType, **options: object) -> tuple[np.ndarray, np.ndarray]:
    """What the compiled model gives, and what the reference does."""
    model = model_of("Cast", {"x": x}, opset=25, to=CODE[to], **options)
    with tw.compile(model, threads=1, cache=False) as executable:
        found = executable.run({"x": x})["y"]
    return found, ReferenceEvaluator(model).run(None, {"x": x})[0]


def _same(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.astype("f8"), expected.astype("f8"))


@for_each("saturate", [0, 1])
@for_each("source", [F16, BF16, F32, F64], ids=str)
@for_each("target", FLOAT8, ids=str)
def test_to_float8(target: DType, source: DType, saturate: int) -> None:
    with np.errstate(all="ignore"):
        x = np.array(EDGES).astype(source.numpy)
    _same(*_cast(x, target, saturate=saturate))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("source", FLOAT8, ids=str)
@pytest.mark.parametrize("target", FLOAT8, ids=str)
def test_between_float8(target: DType, source: DType, saturate: int) -> None:
    if source == target:
        return
    x = np.arange(256, dtype=np.uint8).view(source.numpy)
    wide = np.nan_to_num(x.astype("f4"), nan=np.nan, posinf=np.inf, neginf=-np.inf)
    found, _ = _cast(x, target, saturate=saturate)
    _same(found, _cast(wide, target, saturate=saturate)[1])


@pytest.mark.parametrize("target", SMALL_FLOATS, ids=str)
def test_integers_and_bools(target: DType) -> None:
    numbers = np.array([1, 2, 3, 17, 100, 255, 500, 70000, 2**40])
    wide = numbers.astype("f4")
    _same(_cast(numbers, target)[0], _cast(wide, target)[0])
    flags = np.array([True, True])
    _same(_cast(flags, target)[0].astype("f4"), np.ones(2, "f4"))


@pytest.mark.parametrize("rounding", ["up", "down", "nearest"])
def test_powers_of_two(rounding: str) -> None:
    x = np.array([1.0, 1.1, 1.5, 1.9, 2.0, 3.0, 0.124, 1e-30, 3e38, 2.0**-126, 1e38], "f4")
    _same(*_cast(x, F8E8M0, round_mode=rounding))
    _same(*_cast(x, F8E8M0, round_mode=rounding, saturate=0))


def test_what_is_no_power_of_two() -> None:
    """As the table in ONNX's text says, which its reference does not follow at the ends."""
    x = np.array([0, np.nan, np.inf, 3.4e38, 1e-40, 2.0**-127], "f4")
    least, greatest = 2.0**-127, 2.0**127
    found, _ = _cast(x, F8E8M0)
    np.testing.assert_array_equal(
        found.astype("f8"), [least, np.nan, greatest, greatest, least, least]
    )
    found, _ = _cast(x, F8E8M0, saturate=0, round_mode="nearest")
    np.testing.assert_array_equal(found.astype("f8"), [np.nan] * 5 + [least])


def test_a_rounding_that_is_none() -> None:
    with pytest.raises(FrontendError, match="round_mode is 'sideways'"):
        _cast(np.ones(2, "f4"), F8E8M0, round_mode="sideways")


@pytest.mark.parametrize("target", SMALL_INTEGERS, ids=str)
def test_small_integers_wrap(target: DType) -> None:
    x = np.arange(-20, 20)
    _same(*_cast(x, target))
    _same(*_cast(x.astype("f4"), target))


@pytest.mark.parametrize("source", [*SMALL_FLOATS, *SMALL_INTEGERS], ids=str)
def test_from_small_types_to_all_others(source: DType) -> None:
    x = np.arange(1 << source.bits, dtype=np.uint8).view(source.numpy)
    for target in (F16, BF16, F32, F64, DTYPES["bool"], DTYPES["i32"]):
        if target.is_float or not np.isnan(x.astype("f4")).any():
            _same(*_cast(x, target))


def test_cast_like() -> None:
    x, like = np.array(EDGES, "f4"), np.zeros(1, F8E4M3FN.numpy)
    model = model_of("CastLike", {"x": x, "like": like}, opset=25)
    with tw.compile(model, threads=1, cache=False) as executable:
        found = executable.run({"x": x, "like": like} if len(executable.inputs) > 1 else {"x": x})
    _same(found["y"], _cast(x, F8E4M3FN)[1])


def test_complex_numbers_are_not_converted() -> None:
    with pytest.raises(Error, match="c64 is not converted to f32"):
        _cast(np.ones(2, "c8"), F32)
