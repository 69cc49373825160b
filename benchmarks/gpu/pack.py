"""Models compiled for a GPU on a machine without one, packed with inputs and the CPU's results.

    python benchmarks/gpu/pack.py bundle NAME=model.onnx ...

Each becomes `bundle/NAME.npz.xz`: the saved model as bytes, its inputs, and what this machine's
processor computes from them. `run.py` checks and times them where the GPU is. With `--plain`, large
weights are replaced by a short pattern repeated, so that a model of any size packs small; models
are then as right or wrong as with others, but mean nothing.
"""

from __future__ import annotations

import argparse
import io
import lzma
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import tilewright as tw
from tests.models import random_inputs

# Elements of a weight from which on it is replaced, and the length of what is repeated: a prime, so
# that rows of usual lengths differ.
LARGE, PERIOD = 4096, 1009


def patterned(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with large weights made of a repeated pattern of their own scale."""
    rng = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        data = numpy_helper.to_array(tensor)
        if data.size >= LARGE and data.dtype.kind == "f":
            scale = float(data.std()) or 0.02
            short = (scale * rng.standard_normal(PERIOD)).astype(data.dtype)
            tensor.CopyFrom(numpy_helper.from_array(np.resize(short, data.shape), tensor.name))
    return model


def pack(model: onnx.ModelProto, inputs: dict[str, np.ndarray], to: Path) -> None:
    """Compile for both machines; the saved model and the CPU's results go to one file."""
    expected = tw.compile(model, cache=False).run(inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = tw.compile(model, target="cuda", cache=False).save(Path(folder) / "model.tw")
        code = np.frombuffer(path.read_bytes(), np.uint8)
    parts = {"model": code}
    parts |= {f"in.{name}": array for name, array in inputs.items()}
    parts |= {f"out.{name}": array for name, array in expected.items()}
    buffer = io.BytesIO()
    np.savez(buffer, **parts)
    to.write_bytes(lzma.compress(buffer.getvalue(), preset=1))


def main() -> None:
    """Pack the models that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--plain", action="store_true", help="replace large weights")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for item in args.models:
        name, _, file = item.partition("=")
        model = onnx.load(file)
        if args.plain:
            model = patterned(model)
        to = args.folder / f"{name}.npz.xz"
        pack(model, random_inputs(model), to)
        print(f"{name}: {to.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
