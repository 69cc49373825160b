"""Whole models: names, dimensions, constants; what is wrong is said where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.for_each import for_each
from tilewright.arith.expr import Var, const
from tilewright.core.errors import Error, FrontendError, TypeCheckError, UnsupportedError
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ir.graph.verify import verify_graph
from tilewright.ops.interpret import run_graph

F = TensorProto.FLOAT


def model(
    *nodes: onnx.NodeProto,
    inputs: dict[str, Any] | None = None,
    outputs: tuple[str, ...] = ("y",),
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 20,
) -> onnx.ModelProto:
    ins = [helper.make_tensor_value_info(k, F, s) for k, s in (inputs or {"x": ["n", 4]}).items()]
    outs = [helper.make_tensor_value_info(k, F, None) for k in outputs]
    tensors = [numpy_helper.from_array(a, k) for k, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", ins, outs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> onnx.NodeProto:
    name = attrs.pop("name", "here")
    return helper.make_node(op, inputs.split(), outputs.split(), name=name, **attrs)


def test_constants_refer_to_the_models_bytes() -> None:
    weight = np.arange(4096, dtype=np.float32)
    data = model(node("Add", "x w", "y"), inputs={"x": [4096]}, constants={"w": weight})
    raw = data.SerializeToString()
    (constant,) = import_onnx(raw).constants
    np.testing.assert_array_equal(constant.data, weight)
    assert not constant.data.flags.owndata


def test_dimensions() -> None:
    m = model(node("Relu", "x", "y"), inputs={"x": ["batch size", None, 3]})
    graph = import_onnx(m)
    assert graph.inputs[0].type.shape == (Var("batch_size"), Var("x_1"), const(3))
    assert graph.symbols() == ("batch_size", "x_1")
    fixed = import_onnx(m, dims={"batch size": 2})
    assert fixed.tensor_type("y").shape == (const(2), Var("x_1"), const(3))
    with pytest.raises(Error, match="no dynamic dimension named N"):
        import_onnx(m, dims={"N": 1})


def test_names_of_inputs_and_outputs_stay() -> None:
    m = model(
        node("Relu", "in:0 ", "a/b"),
        node("Relu", "a/b", "out:0"),
        node("Relu", "a/b", "v"),
        inputs={"in:0": [3]},
        outputs=("out:0", "v"),
    )
    graph = import_onnx(m)
    assert [v.name for v in graph.inputs] == ["in:0"]
    assert graph.outputs == ("out:0", "v")
    x = np.array([-1, 0, 2], np.float32)
    found = run_graph(graph, {"in:0": x})
    np.testing.assert_array_equal(found["out:0"], [0, 0, 2])


def test_outputs_that_are_not_results_of_their_own() -> None:
    """An input, a constant, and one value under two names."""
    m = model(
        node("Relu", "x", "r"),
        node("Identity", "r", "r2"),
        inputs={"x": [2]},
        outputs=("x", "k", "r", "r2"),
        constants={"k": np.ones(3, np.float32)},
    )
    graph = import_onnx(m)
    assert graph.outputs == ("x", "k", "r", "r2")
    x = np.array([1, -1], np.float32)
    found = run_graph(graph, {v.name: x for v in graph.inputs})
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_array_equal(found["k"], np.ones(3))
    np.testing.assert_array_equal(found["r2"], [1, 0])


def test_outputs_that_are_listed_again() -> None:
    outputs = ("y", "x", "y", "k", "x", "k", "y.out2")
    m = model(
        node("Relu", "x", "y"),
        node("Neg", "x", "y.out2"),
        inputs={"x": [2]},
        outputs=outputs,
        constants={"k": np.ones(3, np.float32)},
    )
    graph = import_onnx(m)
    verify_graph(graph)
    assert graph.outputs == ("y", "x", "y.out2_", "k", "x.out4", "k.out5", "y.out2")
    x = np.array([1, -1], np.float32)
    found = run_graph(graph, {"x": x})
    right = {"x": x, "y": np.maximum(x, 0), "k": np.ones(3), "y.out2": -x}
    for ours, name in zip(graph.outputs, outputs, strict=True):
        np.testing.assert_array_equal(found[ours], right[name])


def test_an_output_whose_name_is_taken_by_then() -> None:
    """Operators that a converter adds on the way may take the name before the output has it."""
    m = model(
        node("Mean", "x x x", "y_1"),
        node("Relu", "y_1", "y"),
        node("Add", "y y_1", "y_2"),
        inputs={"x": [2]},
        outputs=("y_1", "y", "y_2"),
    )
    found = run_graph(import_onnx(m), {"x": np.array([2, -4], np.float32)})
    np.testing.assert_allclose(found["y_1"], [2, -4])
    np.testing.assert_allclose(found["y"], [2, 0])
    np.testing.assert_allclose(found["y_2"], [4, -4])


def test_initializers_listed_as_inputs_are_constants() -> None:
    m = model(
        node("Add", "x w", "y"),
        inputs={"x": [3], "w": [3]},
        constants={"w": np.ones(3, np.float32)},
    )
    graph = import_onnx(m)
    assert [v.name for v in graph.inputs] == ["x"]


def test_unsorted_nodes() -> None:
    m = model(node("Relu", "t", "y"), node("Neg", "x", "t"), inputs={"x": [2]})
    found = run_graph(import_onnx(m), {"x": np.array([1, -1], np.float32)})
    np.testing.assert_array_equal(found["y"], [0, 1])


def test_local_functions_are_inlined() -> None:
    f = helper.make_function(
        "local", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 20)]
    )
    m = model(helper.make_node("Twice", ["x"], ["y"], domain="local"), inputs={"x": [2]})
    m.functions.append(f)
    m.opset_import.append(helper.make_opsetid("local", 1))
    found = run_graph(import_onnx(m), {"x": np.array([1, 2], np.float32)})
    np.testing.assert_array_equal(found["y"], [2, 4])


def _wrong(m: onnx.ModelProto) -> Error:
    with pytest.raises(Error) as caught:
        import_onnx(m)
    return caught.value


def test_unknown_operator() -> None:
    error = _wrong(model(node("Reluu", "x", "y")))
    assert isinstance(error, UnsupportedError)
    assert error.code == "onnx.operator"
    assert "Reluu of domain ai.onnx, version 20" in error.message
    assert (error.loc.file, error.loc.node) == ("g", "here")
    assert "Relu" in error.help
    other = _wrong(model(helper.make_node("Foo", ["x"], ["y"], domain="com.x")))
    assert "Foo of domain com.x" in other.message


def test_type_errors_are_located() -> None:
    m = model(node("MatMul", "x w", "y"), constants={"w": np.ones((5, 2), np.float32)})
    error = _wrong(m)
    assert isinstance(error, TypeCheckError)
    assert error.loc.node == "here"


@for_each(
    ("m", "code"),
    [
        (model(node("Relu", "q", "y")), "onnx.undefined-value"),
        (model(node("Relu", "x", "z")), "onnx.undefined-value"),
        (model(node("Add", "x y", "y")), "onnx.cycle"),
        (model(node("Relu", "x", "y"), node("Neg", "x", "y")), "onnx.duplicate-value"),
        (model(node("LeakyRelu", "x", "y", alpha=1)), "onnx.node"),
    ],
)
def test_wrong_graphs(m: onnx.ModelProto, code: str) -> None:
    error = _wrong(m)
    assert isinstance(error, FrontendError)
    assert error.code == code
    assert error.loc.file == "g"


def test_inputs_that_are_no_tensors_or_have_no_rank() -> None:
    m = model(node("Relu", "x", "y"))
    m.graph.input[0].type.tensor_type.ClearField("shape")
    assert _wrong(m).code == "onnx.input-rank"
    m = model(node("Relu", "x", "y"))
    m.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(m.graph.input[0].type))
    error = _wrong(m)
    assert error.code == "onnx.input-type"
    assert "sequence" in error.message


def test_too_many_outputs() -> None:
    error = _wrong(model(node("Relu", "x", "y z"), outputs=("y", "z")))
    assert error.code == "onnx.node"


def test_sparse_initializer() -> None:
    m = model(node("Add", "x w", "y"))
    sparse = m.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([2]), "i"))
    graph = import_onnx(m)
    (constant,) = graph.constants
    np.testing.assert_array_equal(constant.data, [0, 0, 1, 0])
