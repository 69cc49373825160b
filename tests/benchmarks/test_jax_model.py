"""Models of ONNX as functions of JAX give what the reference gives, in f32 and in f16."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

pytest.importorskip("jax")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

Save = Callable[..., Path]


@pytest.fixture
def jax_model(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import jax_model

    return jax_model


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write a graph that computes y, from x and what is named; shapes are unknown."""

    def write(
        nodes: list[onnx.NodeProto], opset: int = 17, others: str = "", **constants: np.ndarray
    ) -> Path:
        inputs = [_port("x"), *(_port(n, onnx.TensorProto.INT64) for n in others.split())]
        tensors = [numpy_helper.from_array(a, n) for n, a in constants.items()]
        graph = helper.make_graph(nodes, "g", inputs, [_port("y")], tensors)
        path = tmp_path / "model.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), path)
        return path

    return write


def _port(name: str, kind: int = onnx.TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, None)


def _check(jax_model: ModuleType, path: Path, **inputs: np.ndarray) -> None:
    """In f32 and f16, with weights as arguments; settings known and not."""
    import jax

    (want,) = ReferenceEvaluator(str(path)).run(None, inputs)
    for numbers, close in ((np.float32, 1e-5), (np.float16, 1e-2)):
        arrays = jax_model.jax_weights(path, numbers)
        arrays |= {name: jax_model.narrowed(array, numbers) for name, array in inputs.items()}
        for settings in (jax_model.settings_of(inputs), {}):
            (got,) = jax.jit(jax_model.jax_model(path, numbers, settings))(arrays)
            np.testing.assert_allclose(got, want, rtol=close, atol=close)


def _counted(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 8


@pytest.mark.parametrize("axes", [[0], [0, 2]])
def test_axes_of_older_models_are_attributes(
    jax_model: ModuleType, save: Save, axes: list[int]
) -> None:
    squeeze = helper.make_node("Squeeze", ["x"], ["s"], axes=axes)
    unsqueeze = helper.make_node("Unsqueeze", ["s"], ["y"], axes=[1])
    _check(jax_model, save([squeeze, unsqueeze], opset=11), x=_counted(1, 2, 1, 3))


@pytest.mark.parametrize(
    ("scale", "place", "rounding"),
    [
        (2.0, "asymmetric", "floor"),
        (2.3, "asymmetric", "floor"),
        (0.5, "half_pixel", "round_prefer_floor"),
        (2.5, "half_pixel", "round_prefer_ceil"),
        (2.0, "align_corners", "ceil"),
    ],
)
def test_resize_takes_the_nearest(
    jax_model: ModuleType, save: Save, scale: float, place: str, rounding: str
) -> None:
    words = {"coordinate_transformation_mode": place, "nearest_mode": rounding}
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest", **words)
    scales = np.array([1, 1, scale, scale], np.float32)
    _check(jax_model, save([node], scales=scales), x=_counted(1, 2, 4, 6))


@pytest.mark.parametrize("rate", [8000, 16000])
def test_if_reads_a_setting(jax_model: ModuleType, save: Save, rate: int) -> None:
    outer = helper.make_node("Relu", ["x"], ["r"])
    equal = helper.make_node("Equal", ["rate", "high"], ["is_high"])
    branches = [
        helper.make_graph([helper.make_node(op, ["r"], [f"y_{op}"])], op, [], [_port(f"y_{op}")])
        for op in ("Neg", "Exp")
    ]
    words = {"then_branch": branches[0], "else_branch": branches[1]}
    choose = helper.make_node("If", ["is_high"], ["y"], **words)
    path = save([outer, equal, choose], others="rate", high=np.array(16000))
    _check(jax_model, path, x=_counted(2, 3), rate=np.array(rate))


def test_f16_stays_f16_where_it_is_wide_enough(jax_model: ModuleType, save: Save) -> None:
    """A cast to f32 is one to f16; a sum too large for f16 is none, and divides again."""
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=onnx.TensorProto.FLOAT),
        helper.make_node("MatMul", ["wide", "w"], ["product"]),
        helper.make_node("ReduceSum", ["product", "axes"], ["sum"]),
        helper.make_node("Div", ["product", "sum"], ["share"]),
        helper.make_node("MatMul", ["share", "w"], ["y"]),
    ]
    path = save(nodes, w=np.full((4, 4), 50, np.float32), axes=np.array([1]))
    _check(jax_model, path, x=np.full((2, 4), 100, np.float32))
    (got,) = jax_model.jax_model(path, np.float16)({"x": np.ones((2, 4), np.float16)})
    assert got.dtype == np.float16
