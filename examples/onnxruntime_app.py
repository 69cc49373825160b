"""Name the types of files with ONNX Runtime; a program that knows nothing of Tilewright.

    pip install magika onnxruntime    # magika for its model only
    python examples/onnxruntime_app.py README.md Makefile
    tilewright run-app -- python examples/onnxruntime_app.py README.md Makefile

The second command runs it on Tilewright, unchanged, also where ONNX Runtime is not installed. In a
program of your own, another import does the same:

    import tilewright.compat.onnxruntime as ort
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

try:
    import onnxruntime as ort

    MODELS = Path(distribution("magika").locate_file("magika/models"))
except ImportError as error:
    sys.exit(f"{error}: the docstring of {__file__} says what to install")


def main() -> None:
    """Print type and probability of each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="file")
    files = parser.parse_args().files

    folder = next(MODELS.glob("standard_*"))
    config = json.loads((folder / "config.min.json").read_text())
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        folder / "model.onnx", options, providers=["CPUExecutionProvider"]
    )
    batch = np.array([features(path.read_bytes(), config) for path in files], np.int32)
    (scores,) = session.run(["target_label"], {session.get_inputs()[0].name: batch})
    print(f"engine: {ort.__name__}")
    for path, row in zip(files, scores, strict=True):
        print(f"{path}: {config['target_labels_space'][row.argmax()]} {row.max():.3f}")


def features(content: bytes, config: dict) -> list[int]:
    """The first and last bytes without the white space around the content, padded."""
    size, block, padding = config["beg_size"], config["block_size"], config["padding_token"]
    start = content[:block].lstrip()[:size]
    end = content[-block:].rstrip()[-size:]
    return [*start, *[padding] * (2 * size - len(start) - len(end)), *end]


if __name__ == "__main__":
    main()
