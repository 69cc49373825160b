"""Read the text of a scanned page.

    pip install pillow && pip install --no-deps rapidocr    # the latter for its two models only
    python examples/read_page.py scan.png

The wheel of rapidocr holds PP-OCRv6 as two ONNX models. One gives each pixel of the page the
probability that it is text; a recursive X-Y cut of that map finds the lines. The other reads one
line; CTC decoding turns its scores into characters. Both are compiled for one input size, which is
quicker than for any size, and kept in the compile cache for the next page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import onnx

import tilewright as tw

try:
    from PIL import Image

    MODELS = Path(distribution("rapidocr").locate_file("rapidocr/models"))
except ImportError as error:
    sys.exit(f"{error}: the docstring of {__file__} says what to install")

PAGE = 960, 960  # height and width that a page is scaled to fit
LINE = 48, 960  # the same of a line
THRESHOLD = 0.3  # a pixel of a higher probability is text
UNCLIP = 1.6  # the detector shrinks lines: grow them by area * UNCLIP / perimeter

Box = tuple[float, float, float, float]  # left, top, right, bottom


def main() -> None:
    """Print the text of a page line by line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path, help="image of an upright page")
    page = Image.open(parser.parse_args().page).convert("RGB")

    detect, _ = compiled("*_det_*.onnx", 1, 3, *PAGE)
    recognize, metadata = compiled("*_rec_*.onnx", 1, 3, *LINE)
    characters = ["", *metadata["character"].split("\n"), " "]  # class 0 is CTC's blank

    pixels, scale = fit(page, *PAGE)
    for box in cut(detect(pixels)[0, 0] > THRESHOLD):
        sides = np.divide(unclip(box), scale).clip(0, page.size * 2)
        line = page.crop(tuple(sides))
        print(decode(recognize(fit(line, *LINE)[0])[0], characters))


def compiled(pattern: str, *shape: int) -> tuple[Callable[..., np.ndarray], dict[str, str]]:
    """A model of the wheel, compiled for inputs of `shape`, and its metadata."""
    model = onnx.load(next(MODELS.glob(pattern)))
    names = [dim.dim_param for dim in model.graph.input[0].type.tensor_type.shape.dim]
    dims = {name: size for name, size in zip(names, shape, strict=True) if name}
    return tw.compile(model, dims=dims), {entry.key: entry.value for entry in model.metadata_props}


def fit(image: Image.Image, height: int, width: int) -> tuple[np.ndarray, float]:
    """The image scaled into f32[1, 3, height, width], values from -1 to 1; the scale."""
    scale = min(height / image.height, width / image.width)
    image = image.resize((round(image.width * scale), round(image.height * scale)))
    values = np.zeros((1, 3, height, width), np.float32)
    values[..., : image.height, : image.width] = np.array(image).transpose(2, 0, 1) / 127.5 - 1
    return values, scale


def cut(text: np.ndarray, x: int = 0, y: int = 0) -> Iterator[Box]:
    """Recursive X-Y cut: split a map of text at empty rows and columns until nothing splits."""
    parts = [
        (left, top, right, bottom)
        for top, bottom in runs(text.any(axis=1))
        for left, right in runs(text[top:bottom].any(axis=0))
    ]
    for left, top, right, bottom in parts:
        if len(parts) > 1:
            yield from cut(text[top:bottom, left:right], x + left, y + top)
        elif bottom - top > 3:  # a lower part is a speck
            yield x + left, y + top, x + right, y + bottom


def runs(marks: np.ndarray) -> np.ndarray:
    """Start and end of each run of true values."""
    return np.flatnonzero(np.diff(marks, prepend=False, append=False)).reshape(-1, 2)


def unclip(box: Box) -> Box:
    """The box grown to the whole line."""
    left, top, right, bottom = box
    height, width = bottom - top, right - left
    more = height * width * UNCLIP / (2 * (height + width))
    return left - more, top - more, right + more, bottom + more


def decode(scores: np.ndarray, characters: list[str]) -> str:
    """CTC: the best class of each step; repetitions count once, blanks not at all."""
    best = scores.argmax(axis=1)
    return "".join(characters[index] for index in best[np.diff(best, prepend=0) != 0])


if __name__ == "__main__":
    main()
