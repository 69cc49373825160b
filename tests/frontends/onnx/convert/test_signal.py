"""Transforms of signals, against NumPy and onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import check_node, imported, run_node
from tilewright.core.errors import FrontendError, UnsupportedError

RNG = np.random.default_rng(12)


def test_dft_versions() -> None:
    x = RNG.standard_normal((2, 6, 5, 1)).astype("f4")
    by_attribute = run_node("DFT", [x], opset=17, axis=2)[0]
    axis = np.array(2)
    by_input = run_node("DFT", [x, None, axis], opset=20, constants=(2,))[0]
    expected = np.fft.fft(x[..., 0], axis=2)
    for found in (by_attribute, by_input):
        np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-5)
    assert run_node("DFT", [x], opset=17)[0].shape == (2, 6, 5, 2)


def test_dft_length() -> None:
    x = RNG.standard_normal((2, 6, 2)).astype("f4")
    found = run_node("DFT", [x, np.array(9)], constants=(1,))[0]
    signal = x[..., 0] + 1j * x[..., 1]
    np.testing.assert_allclose(
        found[..., 0] + 1j * found[..., 1], np.fft.fft(signal, 9, axis=1), atol=1e-5
    )
    back = run_node("DFT", [x], inverse=1, onesided=1)[0]
    np.testing.assert_allclose(back[..., 0], np.fft.irfft(signal, axis=1), atol=1e-5)
    with pytest.raises(UnsupportedError, match="a transform of length T"):
        imported("DFT", [x], dims={0: (2, "T", 2)})


@for_each("onesided", [0, 1])
def test_stft(onesided: int) -> None:
    x = RNG.standard_normal((2, 70, 1)).astype("f4")
    window, step = np.hanning(16).astype("f4"), np.array(7)
    for inputs in (
        [x, step, window],
        [x, step, None, np.array(16)],
        [x, step, window, np.array(16)],
    ):
        constants = {1, 3} & set(range(len(inputs)))
        check_node("STFT", inputs, constants=constants, onesided=onesided)


def test_stft_of_a_signal_of_any_length() -> None:
    x = RNG.standard_normal((1, 50, 1)).astype("f4")
    inputs = [x, np.array(5), np.ones(8, "f4")]
    found = run_node("STFT", inputs, constants=(1,), dims={0: (1, "T", 1)})[0]
    np.testing.assert_array_equal(found, run_node("STFT", inputs, constants=(1,))[0])


def test_stft_of_a_signal_without_parts() -> None:
    """The axis of real and imaginary parts may be left out, as real models do."""
    x = RNG.standard_normal((2, 50)).astype("f4")
    more = [np.array(5), np.ones(8, "f4")]
    found = run_node("STFT", [x, *more], constants=(1,))[0]
    np.testing.assert_array_equal(found, run_node("STFT", [x[..., None], *more], constants=(1,))[0])
    with pytest.raises(FrontendError, match="not a batch of signals"):
        imported("STFT", [x[0], *more], constants=(1,))


def test_frames_without_end() -> None:
    inputs = [np.ones((1, 16, 1), np.float32), np.array(2), None, np.array(1 << 40)]
    with pytest.raises(UnsupportedError, match="a transform of 1099511627776 elements"):
        imported("STFT", inputs, constants=(1, 3))


def test_mel_weight_matrix() -> None:
    numbers = [np.array(v) for v in (8, 64, 8192)] + [np.array(v, "f4") for v in (0, 4000)]
    check_node("MelWeightMatrix", numbers, constants=range(5), opset=17)
    check_node("MelWeightMatrix", numbers, constants=range(5), opset=17, output_datatype=11)


@for_each(("bins", "length"), [(2**62, 0), (0, 2**62)])
def test_bins_beyond_all_memory(bins: int, length: int) -> None:
    numbers = [np.array(v) for v in (bins, length, 8192)] + [np.array(v, "f4") for v in (0, 4000)]
    with pytest.raises(FrontendError, match=f"{bins} bins of {length} samples"):
        imported("MelWeightMatrix", numbers, constants=range(5), opset=17)


def test_frequencies_that_are_none() -> None:
    numbers = [np.array(v) for v in (8, 64, 8192)] + [np.array(v, "f4") for v in (5000, 4000)]
    with pytest.raises(FrontendError, match=r"from 5000.0 to 4000.0 Hz"):
        imported("MelWeightMatrix", numbers, constants=range(5), opset=17)
