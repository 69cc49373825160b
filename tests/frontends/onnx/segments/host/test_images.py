"""Images decoded by Pillow."""

from __future__ import annotations

import sys
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from tests.for_each import for_each
from tests.frontends.onnx.segments.host.host_calls import run_host
from tilewright.core.errors import ExecutionError

PIXELS = np.arange(60, dtype=np.uint8).reshape(4, 5, 3) * 4


def encoded(kind: str) -> np.ndarray:
    image = Image.fromarray(PIXELS)
    file = BytesIO()
    image.save(file, format=kind)
    return np.frombuffer(file.getvalue(), np.uint8)


@for_each("kind", ["png", "bmp", "ppm", "tiff"])
def test_lossless_formats(kind: str) -> None:
    np.testing.assert_array_equal(run_host("ImageDecoder", encoded(kind))[0], PIXELS)


def test_pixel_formats() -> None:
    data = encoded("png")
    (bgr,) = run_host("ImageDecoder", data, pixel_format="BGR")
    np.testing.assert_array_equal(bgr, PIXELS[..., ::-1])
    (gray,) = run_host("ImageDecoder", data, pixel_format="Grayscale")
    assert gray.shape == (4, 5, 1)
    with pytest.raises(ExecutionError, match="pixel_format is 'YUV'"):
        run_host("ImageDecoder", data, pixel_format="YUV")


def test_what_is_no_image() -> None:
    data = encoded("png")
    for wrong in (data[:40], np.zeros(9, np.uint8), data[:0]):
        with pytest.raises(ExecutionError, match="cannot be decoded"):
            run_host("ImageDecoder", wrong)


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ExecutionError, match="Pillow, which is not installed"):
        run_host("ImageDecoder", np.zeros(9, np.uint8))
