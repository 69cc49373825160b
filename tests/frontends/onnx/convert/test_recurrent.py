"""Recurrent layers against onnxruntime, which the formulas of ONNX leave no choice."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import check_node, imported, run_node
from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.driver.compile import compile

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OUTPUTS = {"LSTM": 3, "GRU": 2, "RNN": 2}


def _operands(
    op: str,
    *,
    batch: int = 2,
    directions: int = 1,
    units: int = 5,
    bias: bool = True,
    lengths: tuple[int, ...] = (),
    states: bool = False,
    peepholes: bool = False,
) -> list[np.ndarray | None]:
    """Random operands of a layer over 5 steps of 3 features."""
    rng = np.random.default_rng(units)

    def normal(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 0.5).astype(np.float32)

    rows = GATES[op] * units
    found: list[np.ndarray | None] = [
        normal(5, batch, 3),
        normal(directions, rows, 3),
        normal(directions, rows, units),
        normal(directions, 2 * rows) if bias else None,
        np.array(lengths, np.int32) if lengths else None,
        normal(directions, batch, units) if states else None,
    ]
    if op == "LSTM":
        found.append(normal(directions, batch, units) if states else None)
        found.append(normal(directions, 3 * units) if peepholes else None)
    while found[-1] is None:
        found.pop()
    return found


def _check(op: str, attributes: dict[str, Any], **operands: Any) -> None:
    units = operands.get("units", 5)
    inputs = _operands(op, **operands)
    check_node(op, inputs, outputs=OUTPUTS[op], hidden_size=units, **attributes)


@pytest.mark.parametrize("op", GATES)
def test_directions_states_and_lengths(op: str) -> None:
    _check(op, {})
    _check(op, {"direction": "reverse"}, bias=False, lengths=(5, 2))
    both = {"direction": "bidirectional"}
    _check(op, both, directions=2, states=True, lengths=(3, 5), units=4)
    _check(op, {**both, "clip": 0.3}, directions=2, batch=1)


def test_peepholes_and_coupled_gates() -> None:
    _check("LSTM", {}, peepholes=True, states=True)
    _check("LSTM", {"input_forget": 1, "clip": 0.4}, peepholes=True)


def test_a_reset_after_the_product() -> None:
    _check("GRU", {"linear_before_reset": 1})
    _check("GRU", {"linear_before_reset": 1, "clip": 0.2}, bias=False)
    both = {"linear_before_reset": 1, "direction": "bidirectional"}
    _check("GRU", both, directions=2, lengths=(4, 1))


@for_each("name", ["Affine", "Elu", "LeakyRelu", "Relu", "Softplus", "ThresholdedRelu", "Sigmoid"])
def test_activations(name: str) -> None:
    given = {"activation_alpha": [0.3], "activation_beta": [0.4]}
    _check("RNN", {"activations": [name], **given})


def test_parameters_go_to_the_activations_that_take_them() -> None:
    names = ["HardSigmoid", "Softsign", "ScaledTanh"]
    given = {"activation_alpha": [0.3, 0.7], "activation_beta": [0.4, 0.8]}
    _check("LSTM", {"activations": names, **given})
    _check("LSTM", {"activations": ["HardSigmoid", "LeakyRelu", "Elu"]})


def test_unwanted_outputs_may_be_left_out() -> None:
    inputs = _operands("LSTM")
    (y,) = run_node("LSTM", inputs, outputs=1, hidden_size=5)
    np.testing.assert_array_equal(y, run_node("LSTM", inputs, outputs=3, hidden_size=5)[0])


def test_what_is_refused() -> None:
    inputs = _operands("LSTM")
    with pytest.raises(FrontendError, match="hidden_size is 6, the weights have 5"):
        imported("LSTM", inputs, hidden_size=6)
    with pytest.raises(FrontendError, match="direction is 'up'"):
        imported("LSTM", inputs, hidden_size=5, direction="up")
    with pytest.raises(FrontendError, match="it has 1 activations"):
        imported("LSTM", inputs, hidden_size=5, activations=["Tanh"])
    with pytest.raises(UnsupportedError, match="activation Cube"):
        imported("LSTM", inputs, hidden_size=5, activations=["Cube", "Tanh", "Tanh"])
    lengths = np.ones(2, np.float32)
    with pytest.raises(FrontendError, match="sequence_lens must be integers"):
        imported("LSTM", [*inputs, lengths], hidden_size=5)


def _stack(op: str, units: int) -> onnx.ModelProto:
    """Two layers, the second on the output of the first, of any length and batch."""
    nodes, constants = [], []
    value, size = "x", 6
    for layer in range(2):
        rng = np.random.default_rng(layer)
        shapes = {"W": (1, GATES[op] * units, size), "R": (1, GATES[op] * units, units)}
        for name, shape in shapes.items():
            data = rng.uniform(-0.3, 0.3, shape).astype(np.float32)
            constants.append(numpy_helper.from_array(data, f"{name}{layer}"))
        operands = [value, f"W{layer}", f"R{layer}"]
        nodes.append(helper.make_node(op, operands, [f"y{layer}"], hidden_size=units))
        nodes.append(helper.make_node("Squeeze", [f"y{layer}", "axes"], [f"z{layer}"]))
        value, size = f"z{layer}", units
    constants.append(numpy_helper.from_array(np.array([1]), "axes"))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["T", "B", 6])
    y = helper.make_tensor_value_info(value, TensorProto.FLOAT, ["T", "B", units])
    graph = helper.make_graph(nodes, "stack", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_layers_compiled_for_any_length(op: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = _stack(op, 20)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    compiled = compile(model, threads=1, cache=False)
    for shape in ((1, 1, 6), (7, 3, 6)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(compiled(x=x), expected, rtol=1e-4, atol=1e-5)
    compiled.close()
