"""One compilation serves every size: models with symbolic sizes, beside ONNX Runtime.

    python benchmarks/sizes.py [models] [--cache DIR]

Each model of the zoo that has symbolic sizes is compiled once, then run at several sizes; the
number of modules turned into machine code must not grow, and every output must agree with ONNX
Runtime's on the same input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import onnxruntime

import tilewright as tw
from tilewright.codegen.objects.compile import compiled_modules

ZOO = Path(__file__).parent / "results" / "cache"
SIZES = (1, 2, 5, 16, 33)
TOLERANCE = 1e-4


def resized(given: np.ndarray, shape: tuple[int | str, ...], size: int) -> np.ndarray:
    """Valid values at another size: what is given, repeated or cut."""
    return np.resize(given, [size if isinstance(d, str) else d for d in shape])


def largest_error(got: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """The largest difference of any output, relative to that output's largest magnitude."""
    return max(
        float(np.abs(got[n].astype(np.float64) - w).max() / max(np.abs(w).max(), 1e-30))
        for n, w in wanted.items()
    )


def check(folder: Path) -> bool:
    """Compile one model, run it at all sizes, print a line; whether everything agreed."""
    path = str(folder / "model.onnx")
    model = tw.compile(path, cache=False)
    if not model.manifest["symbols"]:
        return True
    data = np.load(folder / "inputs.npz")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    before, errors = compiled_modules(), []
    for size in SIZES:
        inputs = {p.name: resized(data[p.name], p.shape, size) for p in model.inputs}
        wanted = dict(zip(names, session.run(names, inputs), strict=True))
        errors.append(largest_error(model.run(inputs), wanted))
    again = compiled_modules() - before
    text = ", ".join(f"{n}: {e:.0e}" for n, e in zip(SIZES, errors, strict=True))
    print(f"{folder.name:20} {again} compilations while running at sizes {text}", flush=True)
    return again == 0 and max(errors) < TOLERANCE


def main() -> None:
    """Check the models; exit status 1 if one disagrees or compiles again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="names in the cache (default: all there)")
    parser.add_argument("--cache", type=Path, default=ZOO)
    args = parser.parse_args()
    names = args.models or sorted(p.parent.name for p in args.cache.glob("*/model.onnx"))
    sys.exit(0 if all([check(args.cache / name) for name in names]) else 1)


if __name__ == "__main__":
    main()
