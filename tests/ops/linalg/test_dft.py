from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.linalg.dft import DftAttrs, plan
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(11)


def _parts(x: np.ndarray) -> np.ndarray:
    return np.stack([x.real, x.imag], -1)


def _complex(x: np.ndarray) -> np.ndarray:
    return x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)


@for_each("n", [1, 2, 3, 5, 8, 17, 60, 64, 90, 128, 131, 144])
@for_each("inverse", [False, True])
@for_each("parts", [1, 2])
def test_lengths(n: int, inverse: bool, parts: int) -> None:
    x = RNG.standard_normal((3, n, parts))
    expected = (np.fft.ifft if inverse else np.fft.fft)(_complex(x), axis=1)
    found = run_op("dft", x, attrs=DftAttrs(1, n, inverse))
    np.testing.assert_allclose(_complex(found), expected, rtol=1e-11, atol=1e-11)


def test_a_long_prime_length_is_a_convolution() -> None:
    assert plan(509).kind == "convolution"
    x = RNG.standard_normal((1, 509, 2))
    found = run_op("dft", x, attrs=DftAttrs(1, 509))
    np.testing.assert_allclose(_complex(found), np.fft.fft(_complex(x)), rtol=1e-10, atol=1e-10)


@for_each("n", [1, 2, 7, 8, 128, 130])
def test_one_side(n: int) -> None:
    x = RNG.standard_normal((2, n, 1))
    found = run_op("dft", x, attrs=DftAttrs(1, n, onesided=True))
    np.testing.assert_allclose(
        _complex(found), np.fft.rfft(x[..., 0], axis=1), rtol=1e-11, atol=1e-11
    )
    back = run_op("dft", found, attrs=DftAttrs(1, n, inverse=True, onesided=True))
    assert back.shape == x.shape
    np.testing.assert_allclose(back, x, rtol=1e-11, atol=1e-11)


@for_each(("size", "length"), [(5, 8), (8, 5)])
def test_inputs_are_filled_up_or_cut(size: int, length: int) -> None:
    x = RNG.standard_normal((2, size, 3, 2))
    found = run_op("dft", x, attrs=DftAttrs(1, length))
    expected = _parts(np.fft.fft(_complex(x), length, axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    half = run_op("dft", x, attrs=DftAttrs(1, length, inverse=True, onesided=True))
    expected = np.fft.irfft(_complex(x), length, axis=1)[..., None]
    np.testing.assert_allclose(half, expected, rtol=1e-11, atol=1e-12)


def test_any_axis_type_and_number_of_rows() -> None:
    x = RNG.standard_normal((4, 3, 5, 2)).astype("f2")
    for axis in (0, 1, 2, -2):
        found = run_op("dft", x, attrs=DftAttrs(axis, x.shape[axis]))
        assert found.dtype == np.float16
        expected = np.fft.fft(_complex(x.astype("f8")), axis=axis % 4 if axis >= 0 else 2)
        np.testing.assert_allclose(_complex(found), expected, rtol=1e-2, atol=1e-2)
    x = RNG.standard_normal((6, 4, 1)).astype("f4")
    found = run_op("dft", x, attrs=DftAttrs(1, 4), dims=[("rows", 4, 1)])
    np.testing.assert_allclose(_complex(found), np.fft.fft(x[..., 0]), atol=1e-5)
    assert run_op("dft", x[:0], attrs=DftAttrs(1, 4)).shape == (0, 4, 2)


def test_plans() -> None:
    assert plan(16).kind == "matrix"
    for n in (512, 400, 4096):
        assert plan(n).kind == "split"
        assert plan(n).a * plan(n).b == n
        assert plan(n).cost < n * n


def test_operands_that_do_not_fit() -> None:
    infer = get_op("dft").infer
    for x, attrs in (
        (tensor(F32, 4, 4, 3), DftAttrs(1, 4)),
        (tensor(F32, 4, 4, 2), DftAttrs(2, 2)),
        (tensor(F32, 4, 4, 2), DftAttrs(1, 0)),
        (tensor(I64, 4, 4, 2), DftAttrs(1, 4)),
    ):
        with pytest.raises(TypeCheckError):
            infer(attrs, [x])
