"""Recurrent layers as machine code, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import assert_same_on_threads, check_native, random_inputs
from tests.ops.recurrent.recurrent_reference import GATES, layer_attrs, layer_weights
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BF16, F16, F32, F64, I32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder


def _layer(
    op: str,
    dims: tuple[object, object, int, int],
    dtype: DType = F32,
    direction: str = "forward",
    lengths: bool = False,
    **rest: object,
) -> Graph:
    """A layer of constant weights with initial states: time, batch, inputs, units."""
    time, batch, inputs, units = dims
    many = 2 if direction == "bidirectional" else 1
    g = GraphBuilder("layer")
    x = g.input("x", tensor(dtype, time, batch, inputs))
    weights = [g.constant(w.astype(dtype.numpy)) for w in layer_weights(op, inputs, units, many)]
    length = g.input("lengths", tensor(I32, batch)) if lengths else ""
    h = g.input("h", tensor(dtype, many, batch, units))
    return g.graph(
        *g.add_many(op, x, *weights, length, h, attrs=layer_attrs(op, direction, **rest))
    )


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("dtype", [F16, BF16, F64], ids=str)
def test_native_in_every_float_type(op: str, dtype: DType) -> None:
    graph = _layer(op, (3, 2, 4, 7), dtype)
    check_native(graph, random_inputs(graph), scale=2.0).close()


@pytest.mark.parametrize(
    ("op", "batch", "units"),
    [("lstm", 3, 17), ("gru", 5, 4), ("gru", 2, 17), ("rnn", 1, 32), ("lstm", 1, 1)],
)
def test_native_at_odd_sizes(op: str, batch: int, units: int) -> None:
    graph = _layer(op, (4, batch, 3, units), direction="bidirectional", lengths=True)
    inputs = random_inputs(graph)
    inputs["lengths"] = np.resize(np.array([2, 4, 0], np.int32), batch)
    check_native(graph, inputs, scale=4.0).close()


def test_native_with_symbolic_time_and_batch() -> None:
    graph = _layer("lstm", (Var("T"), Var("B"), 3, 12), direction="reverse")
    inputs = random_inputs(graph, {"T": 5, "B": 3})
    model = check_native(graph, inputs, scale=4.0)
    for time, batch in ((1, 1), (9, 2)):
        other = random_inputs(graph, {"T": time, "B": batch}, seed=time)
        y, *_ = model(**other)
        assert y.shape == (time, 1, batch, 12)
    model.close()


@pytest.mark.parametrize(("op", "units"), [("lstm", 228), ("gru", 262), ("rnn", 452)])
def test_units_are_shared_among_threads(op: str, units: int) -> None:
    graph = _layer(op, (2, 1, 8, units), reset_after=op == "gru")
    model = check_native(graph, random_inputs(graph), scale=10.0)
    assert_same_on_threads(model, random_inputs(graph), 2, 3)
    model.close()
