"""Random models of one indexing operator, each with an index planted outside its tensor.

    python -m tests.differential.index_cases --count 500 --seed 7 [--target cuda]

A case is right where the model agrees with ONNX Runtime on good indices, and refuses the bad one
with an error that names the node, the index and the size. Indices may be computed in the model, and
sizes may be symbolic.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

OPERATORS = ("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND")
SIZES = (1, 1, 2, 3, 5, 8, 17, 40)
NODE = "target"


@dataclass(frozen=True)
class IndexCase:
    """A model, good inputs, and inputs with a bad index into a dimension of `size`."""

    model: onnx.ModelProto
    good: dict[str, np.ndarray]
    bad: dict[str, np.ndarray]
    index: int
    size: int


def random_cases(seed: int, count: int) -> Iterator[IndexCase]:
    """So many cases."""
    rng = np.random.default_rng(seed)
    return (_case(rng) for _ in range(count))


def fault_of(case: IndexCase, target: str = "native") -> str:
    """What is wrong about how a compiled model treats a case; "" if nothing is."""
    import onnxruntime

    with tw.compile(case.model, target=target, cache=False) as model:
        found = model.run(case.good)["y"]
        session = onnxruntime.InferenceSession(case.model.SerializeToString())
        (expected,) = session.run(None, case.good)
        if not np.allclose(found, expected, atol=1e-5):
            return "good indices give something else"
        try:
            model.run(case.bad)
        except tw.Error as error:
            wanted = (f"index {case.index} is", f"of {case.size}\n", f"node {NODE}")
            is_right = error.code == "run.index" and all(w in f"{error}\n" for w in wanted)
            return "" if is_right else f"another error: {error}"
        return f"index {case.index} into {case.size} elements gives a result"


def _case(rng: np.random.Generator) -> IndexCase:
    op = str(rng.choice(OPERATORS))
    shape = [int(s) for s in rng.choice(SIZES, rng.integers(1, 4))]
    axis = int(rng.integers(0, len(shape)))
    indices, limits = _indices(rng, op, shape, axis)
    inputs = {"x": rng.standard_normal(shape).astype(np.float32), "i": indices}
    if op.startswith("Scatter"):
        tuples = (*indices.shape[:-1], *shape[indices.shape[-1] :])
        wanted = tuples if op == "ScatterND" else indices.shape
        inputs["u"] = rng.standard_normal(wanted).astype(np.float32)
    place = tuple(int(rng.integers(0, n)) for n in indices.shape)
    size = limits[place[-1] if op.endswith("ND") else 0]
    wrong = int(rng.choice([size, -size - 1, size + 1000, -size - 1000, 2**30, -(2**30)]))
    bad = indices.copy()
    bad[place] = wrong
    computed = bool(rng.random() < 0.4)
    model = _model(rng, op, inputs, axis, computed)
    good = {**inputs, "i": indices - computed}
    return IndexCase(model, good, {**inputs, "i": bad - computed}, wrong, size)


def _indices(
    rng: np.random.Generator, op: str, shape: list[int], axis: int
) -> tuple[np.ndarray, list[int]]:
    """Good indices, and the sizes of the dimensions that they point into."""
    kind: Any = np.int64 if op.endswith("ND") else rng.choice([np.int32, np.int64])
    outer = [int(s) for s in rng.choice(SIZES, rng.integers(1, 3))]
    if op.endswith("ND"):
        limits = shape[: int(rng.integers(1, len(shape) + 1))]
        return np.stack([rng.integers(-n, n, outer) for n in limits], -1).astype(kind), limits
    if op != "Gather":
        outer = [int(rng.integers(1, n + 1)) for n in shape]
    return rng.integers(-shape[axis], shape[axis], outer).astype(kind), [shape[axis]]


def _model(
    rng: np.random.Generator, op: str, inputs: dict[str, np.ndarray], axis: int, computed: bool
) -> onnx.ModelProto:
    attrs: dict[str, Any] = {} if op.endswith("ND") else {"axis": axis}
    if op.startswith("Scatter"):
        attrs["reduction"] = str(rng.choice(["none", "add"]))
    one = numpy_helper.from_array(np.array(1, inputs["i"].dtype), "one")
    names = ["x", "j" if computed else "i", *(["u"] if "u" in inputs else [])]
    nodes = [helper.make_node("Add", ["i", "one"], ["j"])] if computed else []
    nodes.append(helper.make_node(op, names, ["z"], name=NODE, **attrs))
    nodes.append(helper.make_node(str(rng.choice(["Relu", "Identity"])), ["z"], ["y"]))
    symbolic = rng.random() < 0.3
    ports = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(a.dtype),
            [f"{name}{d}" for d in range(a.ndim)] if symbolic and name != "i" else a.shape,
        )
        for name, a in inputs.items()
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "indexing", ports, [result], [one] if computed else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def main() -> None:
    """Try cases and say which are wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default="native")
    args = parser.parse_args()
    faults = [fault_of(case, args.target) for case in random_cases(args.seed, args.count)]
    wrong = [f"case {n}: {fault}" for n, fault in enumerate(faults) if fault]
    print("\n".join([*wrong, f"{args.count - len(wrong)} of {args.count} right"]))


if __name__ == "__main__":
    main()
