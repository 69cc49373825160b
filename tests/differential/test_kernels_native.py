"""Every kind of kernel as machine code: odd and empty sizes, one to three threads, any length."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ci_sample import one_in
from tests.differential.kernel_graphs import KERNELS, NEEDS_FIXED_CHANNELS, NEVER_EMPTY
from tests.differential.native import (
    assert_same_on_threads,
    check_native,
    compare,
    random_inputs,
)
from tests.for_each import for_each
from tilewright.arith.expr import Var
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph

# Sums are formed in another order than the interpreter's.
SCALE = 8
FIXED = [(1, 1, 1), (7, 13, 17), (64, 129, 31)]
LENGTHS = [(1, 1, 1), (2, 3, 5), (7, 64, 1), (33, 100, 17), (0, 4, 4), (4, 0, 4), (4, 4, 0)]


def _inputs(name: str, graph: Graph, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    inputs = random_inputs(graph, sizes)
    if name == "gathered":
        inputs["x1"] = inputs["x1"] % len(inputs["x0"])
    return inputs


@pytest.mark.parametrize("name", one_in(2, KERNELS))
def test_fixed_sizes(name: str) -> None:
    for sizes in FIXED:
        graph = KERNELS[name](*sizes)
        inputs = _inputs(name, graph, {})
        with check_native(graph, inputs, scale=SCALE) as model:
            assert_same_on_threads(model, inputs, 2, 3)


@pytest.mark.parametrize("name", one_in(2, KERNELS, first=1))
def test_one_kernel_for_all_sizes(name: str) -> None:
    fixed = name in NEEDS_FIXED_CHANNELS
    graph = KERNELS[name](Var("M"), 5, 12) if fixed else KERNELS[name](*map(Var, "MNK"))
    with compile(graph, threads=1, cache=False) as model:
        for sizes in LENGTHS:
            if 0 in sizes and name in NEVER_EMPTY:
                continue
            inputs = _inputs(name, graph, dict(zip("MNK", sizes, strict=True)))
            compare(graph, model, inputs, SCALE)
            assert_same_on_threads(model, inputs, 2)
            model.set_threads(1)


@pytest.mark.parametrize("name", KERNELS)
def test_special_values(name: str) -> None:
    """NaN, infinities and -0.0 go where they should and nowhere else."""
    graph = KERNELS[name](5, 16, 9)
    inputs = _inputs(name, graph, {})
    rng = np.random.default_rng(1)
    for array in inputs.values():
        if array.dtype.kind == "f":
            array.reshape(-1)[rng.integers(0, array.size, 4)] = (np.nan, np.inf, -np.inf, -0.0)
    with np.errstate(all="ignore"):
        check_native(graph, inputs, scale=SCALE).close()


@for_each("name", ["matmul", "conv", "max_columns", "sum_rows", "sum_all"])
def test_nothing_to_add_up(name: str) -> None:
    graph = KERNELS[name](*((4, 0, 4) if name == "conv" else (4, 4, 0)))
    check_native(graph, random_inputs(graph)).close()
