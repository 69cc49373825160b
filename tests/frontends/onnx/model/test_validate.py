from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from tests.for_each import for_each
from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.model import validate
from tilewright.frontends.onnx.model.validate import check_wellformed


def _model(*nodes: onnx.NodeProto, output: str = "y", opset: int = 21) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(list(nodes), "g", [x], [ValueInfoProto(name=output)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _refused(model: ModelProto, code: str, node: str = "") -> None:
    with pytest.raises(FrontendError) as caught:
        check_wellformed(model, "m.onnx")
    assert caught.value.code == code
    assert caught.value.loc.file == "m.onnx"
    assert caught.value.loc.node == node


def _local(name: str, *calls: str) -> onnx.FunctionProto:
    values = ["a", *(f"t{i}" for i in range(len(calls)))]
    nodes = [
        helper.make_node(op, [values[i]], [values[i + 1]], domain="" if op == "Abs" else "l")
        for i, op in enumerate(calls)
    ]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("l", 1)]
    return helper.make_function("l", name, ["a"], [values[-1]], nodes, opsets)


def _calling(*functions: onnx.FunctionProto) -> ModelProto:
    model = _model(helper.make_node("f0", ["x"], ["y"], domain="l"))
    model.opset_import.append(helper.make_opsetid("l", 1))
    model.functions.extend(functions)
    return model


def test_valid_models_pass() -> None:
    check_wellformed(_model(helper.make_node("Add", ["x", "x"], ["y"])), "m.onnx")
    check_wellformed(_model(helper.make_node("Clip", ["x", "", "x"], ["y"])), "m.onnx")
    check_wellformed(_calling(_local("f0", "f1", "f1"), _local("f1", "Abs")), "m.onnx")
    check_wellformed(_model(helper.make_node("Nope", ["x"] * 9, ["y"], domain="d")), "m.onnx")


@for_each(
    ("inputs", "outputs", "code"),
    [
        (["x"], ["y"], "onnx.missing-input"),
        (["", "x"], ["y"], "onnx.missing-input"),
        (["x", "x", "x"], ["y"], "onnx.node"),
        (["x", "x"], ["y", "z"], "onnx.node"),
        (["x", "x"], [], "onnx.node"),
    ],
)
def test_operands_and_results_are_counted(inputs: list[str], outputs: list[str], code: str) -> None:
    model = _model(helper.make_node("Add", inputs, outputs, name="n"))
    _refused(model, code, "n")


@for_each("inputs", [["", "x"], ["x", "", "x"], [""]])
def test_none_of_any_number_is_absent(inputs: list[str]) -> None:
    _refused(_model(helper.make_node("Concat", inputs, ["y"], name="n")), "onnx.missing-input", "n")


def test_nested_graphs_are_checked() -> None:
    branch = helper.make_graph([helper.make_node("Add", ["x"], ["z"], name="n")], "b", [], [])
    node = helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)
    _refused(_model(node), "onnx.missing-input", "n")


def test_names_are_texts() -> None:
    data = _model(helper.make_node("Abs", ["x"], ["y"], name="qqqq")).SerializeToString()
    _refused(ModelProto.FromString(data.replace(b"qqqq", b"qq\xff\xff")), "onnx.damaged")


def test_versions_are_versions() -> None:
    node = helper.make_node("Abs", ["x"], ["y"], name="n")
    for version in (-1, 0, 1 << 40):
        _refused(_model(node, opset=version), "onnx.opset", "n")
    model = _model(node)
    model.opset_import[0].domain = "ai.onnx.ml"
    _refused(model, "onnx.opset", "n")


def test_outputs_are_defined() -> None:
    _refused(_model(output="nowhere"), "onnx.undefined-value")
    function = _local("f0", "Abs")
    function.output[0] = "nowhere"
    _refused(_calling(function), "onnx.undefined-value", "f0")


def test_functions_come_to_an_end() -> None:
    _refused(_calling(_local("f0", "f1"), _local("f1", "Abs", "f0")), "onnx.function", "f1")
    _refused(_calling(_local("f0", "f0")), "onnx.function", "f0")


def test_functions_are_not_written_out_without_bound() -> None:
    levels = [_local(f"f{i}", f"f{i + 1}", f"f{i + 1}") for i in range(40)]
    _refused(_calling(*levels, _local("f40", "Abs")), "onnx.function")
    assert validate.MAX_NODES < 2**40
