"""Stages are compiled once for a form of their values."""

from __future__ import annotations

import numpy as np

from tests.frontends.onnx.staged_models import RESHAPED, parsed
from tilewright.driver.compile import compile
from tilewright.driver.program import Program
from tilewright.frontends.onnx.read import read_model
from tilewright.frontends.onnx.stages import model_part
from tilewright.ir.graph.nodes import Graph
from tilewright.runtime.executable import Executable


class Counting:
    """Compiles, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, graph: Graph) -> Executable:
        self.count += 1
        made = compile(graph, threads=1, cache=False)
        assert isinstance(made, Executable)
        return made


def test_a_stage_serves_all_sizes() -> None:
    compiled = Counting()
    program = Program(model_part(read_model(RESHAPED)), compiled)
    for parts in ([1, 1], [1, 2], [1, 2], [2, 1]):
        shape = 2 * np.array(parts)
        x = np.ones(shape.prod(), np.float32)
        (y,) = program.run({"x": x, "parts": np.array(parts)})
        assert y.shape == tuple(shape)
    assert compiled.count == 4, "one for the first stage, one for each shape"


def test_sizes_are_exact_where_symbols_do_not_do() -> None:
    m = parsed("""
        g (int64[n] i, float[] values) => (float[] y) {
            depth = Constant <value = int64 {3}> ()
            y = OneHot (i, depth, values)
        }
    """)
    program = Program(model_part(read_model(m)), Counting())
    (y,) = program.run({"i": np.array([0, 2]), "values": np.array([0, 5], np.float32)})
    np.testing.assert_array_equal(y, [[5, 0, 0], [0, 0, 5]])
    assert program.exact
