"""rapidocr-onnxruntime, unchanged: the text in the images of a folder."""

from __future__ import annotations

from answer import arguments, repeated, report
from rapidocr_onnxruntime import RapidOCR

folder, seconds = arguments()
engine = RapidOCR()
images = sorted(folder.glob("*.png"))


def read() -> dict[str, list[str]]:
    """File name to the lines of text, in order."""
    found = {path.name: engine(str(path))[0] for path in images}
    return {name: [line[1] for line in lines or ()] for name, lines in found.items()}


report(*repeated(read, seconds))
