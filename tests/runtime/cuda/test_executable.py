from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tests.models import convnet, mlp, random_inputs, reference, transformer
from tests.runtime.cuda.fake_driver import FakeDriver
from tilewright.core.errors import ExecutionError
from tilewright.driver.compiler import lower
from tilewright.runtime.cuda.executable import CudaExecutable, check_device

MODELS = {"mlp": mlp(3), "convnet": convnet(), "transformer": transformer()}


def _open(model: onnx.ModelProto, interpret: bool = True) -> tuple[CudaExecutable, FakeDriver]:
    driver = FakeDriver(lower(model, target="cuda"), interpret)
    compiled = tw.compile(model, target="cuda")
    return CudaExecutable(compiled.container, driver), driver


# The interpreter takes half a minute for more than the smallest one.
@pytest.mark.parametrize(
    ("name", "interpret"), [("mlp", True), *((name, False) for name in MODELS)]
)
def test_whole_models_without_a_gpu(name: str, interpret: bool) -> None:
    model = MODELS[name]
    inputs = random_inputs(model)
    compiled, driver = _open(model, interpret)
    for _ in range(2):  # the second time is a replay
        found = compiled.run(inputs)
        for key, expected in reference(model, inputs).items():
            np.testing.assert_allclose(found[key], expected, rtol=1e-4, atol=1e-5)
    compiled.close()
    assert {k: v for k, v in driver.live.items() if v} == {}
    with pytest.raises(ExecutionError, match="closed"):
        compiled.run(inputs)


@pytest.mark.parametrize(("precision", "near"), [("fp16", 2e-3), ("bf16", 1e-2)])
def test_lower_precision(precision: str, near: float) -> None:
    model = MODELS["convnet"]
    inputs = random_inputs(model)
    build = lower(model, target="cuda", precision=precision)
    container = tw.compile(model, target="cuda", precision=precision).container
    found = CudaExecutable(container, FakeDriver(build, False)).run(inputs)
    assert container.weights.nbytes < tw.compile(model, target="cuda").container.weights.nbytes
    for key, expected in reference(model, inputs).items():
        assert found[key].dtype == np.float32
        assert np.linalg.norm(found[key] - expected) < near * np.linalg.norm(expected)


def test_symbolic_sizes_have_a_frame_each() -> None:
    model = mlp("N")
    compiled, driver = _open(model, interpret=False)
    for n in (1, 5, 2, 5):
        inputs = random_inputs(model, {"N": n})
        for key, expected in reference(model, inputs).items():
            np.testing.assert_allclose(compiled.run(inputs)[key], expected, rtol=1e-4, atol=1e-5)
    assert len(driver.captured) == 3


def test_profile_has_all_steps() -> None:
    compiled, _ = _open(MODELS["mlp"])
    inputs = random_inputs(MODELS["mlp"])
    profile = compiled.profile(**inputs, runs=2)
    assert len(profile.rows) == len(compiled.manifest["kernels"])
    assert compiled.latency(*inputs.values(), runs=3) == [0.001] * 3


@pytest.mark.parametrize("holds", [False, True])
def test_profile_of_a_choice_has_no_time_of_what_was_left_out(holds: bool) -> None:
    branches = [
        helper.make_graph(
            [helper.make_node(op, ["x"], [op])],
            op,
            [],
            [helper.make_tensor_value_info(op, TensorProto.FLOAT, [4])],
        )
        for op in ("Exp", "Softmax")
    ]
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    given = [("c", TensorProto.BOOL, []), ("x", TensorProto.FLOAT, [4])]
    results = [helper.make_tensor_value_info("z", TensorProto.FLOAT, [4])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(*v) for v in given], results
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    compiled, _ = _open(model)
    rows = compiled.profile(np.array(holds), np.ones(4, np.float32), runs=2).rows
    assert len(rows) == len(compiled.manifest["kernels"])
    assert 0 < len([row for row in rows if row.median]) < len(rows)


def test_compiled_saved_and_loaded_without_a_gpu(tmp_path: Path) -> None:
    compiled = tw.compile(MODELS["mlp"], target="cuda")
    loaded = tw.load(compiled.save(tmp_path / "model.tw"))
    assert isinstance(loaded, CudaExecutable)
    assert loaded.inputs == compiled.inputs
    assert "gpu.rows" in loaded.explain()


class _Other:
    def capability(self) -> tuple[int, int]:
        return 8, 6

    def name(self) -> str:
        return "another GPU"


def test_code_for_another_architecture_is_refused() -> None:
    check_device("sm_80", _Other())
    for arch in ("sm_90a", "sm_89"):
        with pytest.raises(ExecutionError, match="another GPU is sm_86"):
            check_device(arch, _Other())


@pytest.mark.gpu
@pytest.mark.parametrize("name", MODELS)
def test_whole_models_on_a_gpu(name: str) -> None:
    inputs = random_inputs(MODELS[name])
    with tw.compile(MODELS[name], target="cuda") as compiled:
        for key, expected in reference(MODELS[name], inputs).items():
            np.testing.assert_allclose(compiled.run(inputs)[key], expected, rtol=1e-4, atol=1e-5)
