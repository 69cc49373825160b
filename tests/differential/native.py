"""Differential runner: a graph compiled to machine code against the graph interpreted.

    check_native(graph, {"x": np.ones((3, 64), np.float32)})

The meaning is `ops.interpret.run_graph`. Floats may differ by what a contracted or reordered sum
makes of them; everything else is equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.core.dtypes import BOOL, DType
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.ops.interpret import run_graph
from tilewright.runtime.cpu.executable import Executable

Arrays = Mapping[str, np.ndarray]

# Relative and absolute tolerance of each float type; other types must agree exactly.
TOLERANCE = {
    "f16": (4e-3, 4e-3),
    "bf16": (3e-2, 3e-2),
    "f32": (2e-5, 2e-6),
    "f64": (1e-12, 1e-13),
}


def check_native(
    graph: Graph, inputs: Arrays, *, threads: int = 1, scale: float = 1.0
) -> Executable:
    """Compile a graph, run it and compare; `scale` loosens the tolerance. The executable."""
    model = compile(graph, threads=threads, cache=False)
    compare(graph, model, inputs, scale)
    return model


def compare(graph: Graph, model: Executable, inputs: Arrays, scale: float = 1.0) -> None:
    """Run a compiled graph and its interpretation on the same inputs."""
    expected = run_graph(graph, inputs)
    given = {k: v.copy() for k, v in inputs.items()}
    found = outputs_of(model, given)
    for name, array in inputs.items():
        assert_equal_bits(given[name], array, f"input {name} was written to")
    for name, array in zip(graph.outputs, found, strict=True):
        assert_close(array, expected[name], graph.tensor_type(name).dtype, name, scale)


def outputs_of(model: Executable, inputs: Arrays) -> tuple[np.ndarray, ...]:
    """The outputs in order: where one is an input or given twice, its name is another."""
    found = model(**inputs)
    return found if isinstance(found, tuple) else (found,)


def assert_same_on_threads(model: Executable, inputs: Arrays, *threads: int) -> None:
    """However many threads run it, a model gives the same bits."""
    model.set_threads(1)
    expected = outputs_of(model, inputs)
    for count in threads:
        model.set_threads(count)
        for number, array in enumerate(outputs_of(model, inputs)):
            assert_equal_bits(array, expected[number], f"output {number} on {count} threads")


def assert_close(
    found: np.ndarray, expected: np.ndarray, dtype: DType, name: str = "", scale: float = 1.0
) -> None:
    """Equal shape and type, and values as close as the type's tolerance says."""
    assert found.dtype == expected.dtype == dtype.numpy, name
    assert found.shape == expected.shape, name
    if dtype.name not in TOLERANCE:
        np.testing.assert_array_equal(found, expected, err_msg=name)
        return
    rtol, atol = (scale * t for t in TOLERANCE[dtype.name])
    a, b = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=name)


def assert_equal_bits(found: np.ndarray, expected: np.ndarray, name: str = "") -> None:
    """The same bytes: NaN equals itself, 0.0 and -0.0 differ."""
    assert found.shape == expected.shape, name
    assert found.tobytes() == expected.tobytes(), name


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: DType) -> np.ndarray:
    """Small numbers, of both signs where the type has them."""
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    low = 0 if dtype.kind == "uint" else -9
    return rng.integers(low, 10, shape).astype(dtype.numpy)


def random_inputs(
    graph: Graph, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, np.ndarray]:
    """Inputs for every port of a graph; `sizes` gives symbolic sizes a value."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for v in graph.inputs:
        assert isinstance(v.type, TensorType)
        shape = [evaluate(d, sizes or {}) for d in v.type.shape]
        inputs[v.name] = random_array(rng, shape, v.type.dtype)
    return inputs


def special_values(dtype: DType) -> np.ndarray:
    """NaN, infinities, signed zeros, denormals and the ends of the range."""
    assert dtype.is_float
    info = ml_dtypes.finfo(dtype.numpy)
    tiny = float(info.smallest_subnormal)
    items = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, float(info.max), float(info.min)]
    return np.array([*items, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5]).astype(dtype.numpy)
