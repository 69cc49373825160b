"""Products of 8-bit integers on a GPU, with zero points of every kind, checked exactly.

    python benchmarks/gpu/integers.py [--shapes 100] [--json results.json]

Every shape is a MatMulInteger of random sizes and types: weights are constants or not, each zero
point is absent, one for all, or one a row or column. Results must be those of NumPy to the bit.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.runtime.container import Container

SEED = 7
WORKERS = 14
ZEROS = ("none", "one", "each")
KINDS = {"i8": (np.int8, TensorProto.INT8), "u8": (np.uint8, TensorProto.UINT8)}
# Sizes are drawn as powers of two, the exponent between these; half of the depths are whole pieces.
LEAST, MOST = 1.0, 10.5
PIECE = 16


@dataclass(frozen=True)
class Case:
    """One product: sizes, types, the kinds of both zero points, whether weights are constants."""

    m: int
    n: int
    k: int
    left: str
    right: str
    left_zero: str = "none"
    right_zero: str = "none"
    constant: bool = True

    @property
    def name(self) -> str:
        """What it is called."""
        weights = "constant" if self.constant else "given"
        zeros = f"zeros {self.left_zero} {self.right_zero}"
        return f"{self.m}x{self.n}x{self.k} {self.left} {self.right} {zeros} {weights}"


def random_cases(count: int) -> list[Case]:
    """Cases of random sizes, types and zero points."""
    rng = np.random.default_rng(SEED)
    found = []
    for _ in range(count):
        m, n, k = (int(2 ** rng.uniform(LEAST, MOST)) for _ in range(3))
        if rng.random() < 0.5:
            k = -(-k // PIECE) * PIECE
        left, right = (str(rng.choice(list(KINDS))) for _ in range(2))
        zeros = (str(rng.choice(ZEROS)) for _ in range(2))
        found.append(Case(m, n, k, left, right, *zeros, constant=bool(rng.random() < 0.7)))
    return found


def operands(case: Case) -> dict[str, np.ndarray]:
    """Random operands over the whole range, and zero points."""
    rng = np.random.default_rng((SEED, case.m, case.n, case.k))

    def drawn(kind: str, *shape: int) -> np.ndarray:
        dtype = KINDS[kind][0]
        about = np.iinfo(dtype)
        return rng.integers(about.min, about.max + 1, shape).astype(dtype)

    found = {"x": drawn(case.left, case.m, case.k), "w": drawn(case.right, case.k, case.n)}
    for name, kind, zero, size in (
        ("x0", case.left, case.left_zero, case.m),
        ("w0", case.right, case.right_zero, case.n),
    ):
        if zero != "none":
            found[name] = drawn(kind, *((size,) if zero == "each" else ()))
    return found


def model_of(case: Case) -> onnx.ModelProto:
    """The product as a model; zero points are constants, as they are in models."""
    arrays = operands(case)
    kinds = {"x": KINDS[case.left][1], "w": KINDS[case.right][1]}
    given = ["x"] if case.constant else ["x", "w"]
    inputs = [helper.make_tensor_value_info(n, kinds[n], arrays[n].shape) for n in given]
    names = [name if name in arrays else "" for name in ("x", "w", "x0", "w0")]
    out = helper.make_tensor_value_info("y", TensorProto.INT32, [case.m, case.n])
    held = [numpy_helper.from_array(a, n) for n, a in arrays.items() if n not in given]
    node = helper.make_node("MatMulInteger", names, ["y"])
    graph = helper.make_graph([node], "product", inputs, [out], held)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def expected(case: Case) -> np.ndarray:
    """The product by NumPy: exact, as it would wrap around in i32."""
    arrays = {name: a.astype(np.int64) for name, a in operands(case).items()}
    x0, w0 = arrays.get("x0", np.int64(0)), arrays.get("w0", np.int64(0))
    x = arrays["x"] - (x0[:, None] if np.ndim(x0) else x0)
    # Sums of so few products of two bytes are exact in f64, which NumPy multiplies much faster.
    sums = x.astype(np.float64) @ (arrays["w"] - w0).astype(np.float64)
    return sums.astype(np.int64).astype(np.int32)


def inputs(case: Case) -> list[np.ndarray]:
    """What the model is called with."""
    arrays = operands(case)
    return [arrays["x"]] if case.constant else [arrays["x"], arrays["w"]]


def compiled(case: Case) -> tuple[Case, Container | str]:
    """The product for the GPU, or what went wrong."""
    try:
        return case, compile_container(model_of(case), make_options(target="cuda", cache=False))
    except Exception as error:  # told where the others are
        return case, f"{type(error).__name__}: {error}"[:500]


def check(case: Case, container: Container | str) -> dict[str, Any]:
    """Whether the GPU computes what NumPy does."""
    from tilewright.runtime.cuda.executable import CudaExecutable

    try:
        if isinstance(container, str):
            raise RuntimeError(container)
        with CudaExecutable(container) as model:
            found = model(*inputs(case))
        wrong = int(np.count_nonzero(found != expected(case)))
        return {"right": wrong == 0, "wrong": wrong}
    except Exception as error:  # one that fails must not hide the others
        return {"right": False, "error": f"{type(error).__name__}: {error}"[:500]}


def main() -> None:
    """Check what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows: dict[str, Any] = {}
    with ProcessPoolExecutor(WORKERS) as pool:
        for case, container in pool.map(compiled, random_cases(args.shapes)):
            rows[case.name] = check(case, container)
            if not rows[case.name]["right"]:
                print(case.name, json.dumps(rows[case.name]), flush=True)
            if args.json:
                args.json.write_text(json.dumps({"shapes": rows}, indent=1))
    right = sum(row["right"] for row in rows.values())
    print(f"{right} of {len(rows)} random products of 8-bit integers right")


if __name__ == "__main__":
    main()
