"""rapidocr, unchanged: the text in the images of a folder."""

from __future__ import annotations

import logging

from answer import arguments, repeated, report
from rapidocr import RapidOCR

folder, seconds = arguments()
logging.disable(logging.WARNING)
engine = RapidOCR()
images = sorted(folder.glob("*.png"))


def read() -> dict[str, list[str]]:
    """File name to the lines of text, in order."""
    found = {path.name: engine(str(path)) for path in images}
    return {name: list(result.txts or ()) for name, result in found.items()}


report(*repeated(read, seconds))
