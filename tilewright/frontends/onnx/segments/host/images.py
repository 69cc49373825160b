"""Images: decoded by Pillow, which is an extra."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from tilewright.frontends.onnx.segments.host.call import HostCall, HostOp

# What Pillow calls the pixels that are asked for; blue comes first in BGR.
_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


def image_decoder(call: HostCall) -> tuple[Any, ...]:
    """The pixels of an encoded image, `[height, width, channels]`."""
    try:
        from PIL import Image
    except ImportError as error:
        raise call.failure(
            "images are decoded by Pillow, which is not installed",
            "pip install 'tilewright[images]'",
        ) from error
    wanted = call.node.str_attr("pixel_format", "RGB")
    if wanted not in _MODES:
        raise call.failure(f"pixel_format is {wanted!r}", f"one of {', '.join(_MODES)}")
    try:
        with Image.open(BytesIO(call.inputs[0].tobytes())) as image:
            pixels = np.asarray(image.convert(_MODES[wanted]))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise call.failure(f"the image cannot be decoded: {error}") from error
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    return (np.ascontiguousarray(pixels[..., ::-1] if wanted == "BGR" else pixels),)


HOST: dict[str, HostOp] = {"ImageDecoder": image_decoder}
