from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tests.models import convnet, mlp, random_inputs, reference, transformer
from tests.runtime.cuda.fake_driver import FakeDriver
from tilewright.core.config import override
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import ExecutionError
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.runtime.cuda.device_array import LEGACY_STREAM, DeviceArray
from tilewright.runtime.cuda.dlpack import CUDA, capsule
from tilewright.runtime.cuda.executable import CudaExecutable

MODELS = {"mlp": mlp(3), "convnet": convnet(), "transformer": transformer()}


def _open(model: onnx.ModelProto, interpret: bool = True) -> tuple[CudaExecutable, FakeDriver]:
    driver = FakeDriver(lower(model, make_options(target="cuda")), interpret)
    compiled = tw.compile(model, target="cuda")
    return CudaExecutable(compiled.container, driver), driver


# The interpreter takes half a minute for more than the smallest one.
@pytest.mark.parametrize(
    ("name", "interpret"),
    [
        ("mlp", True),
        *((name, False) for name in MODELS if name != "convnet"),
        pytest.param("convnet", False, marks=pytest.mark.slow),
    ],
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


@pytest.mark.parametrize(
    ("precision", "near"),
    [
        ("fp16", 2e-3),
        *(pytest.param(*p, marks=pytest.mark.slow) for p in (("bf16", 1e-2), ("tf32", 2e-3))),
    ],
)
def test_lower_precision(precision: str, near: float) -> None:
    model = MODELS["convnet"]
    inputs = random_inputs(model)
    build = lower(model, make_options(target="cuda", precision=precision))
    container = tw.compile(model, target="cuda", precision=precision).container
    found = CudaExecutable(container, FakeDriver(build, False)).run(inputs)
    whole = tw.compile(model, target="cuda").container.weights.nbytes
    assert (container.weights.nbytes < whole) == (precision != "tf32")
    for key, expected in reference(model, inputs).items():
        assert found[key].dtype == np.float32
        assert np.linalg.norm(found[key] - expected) < near * np.linalg.norm(expected)


@pytest.mark.parametrize(("batch", "often"), [(2, 1), pytest.param("B", 3, marks=pytest.mark.slow)])
def test_a_recurrent_layer_is_launched_once_or_step_by_step(batch: int | str, often: int) -> None:
    time, units = 3, 48
    rng = np.random.default_rng(3)
    shapes = {"W": (1, 4 * units, 5), "R": (1, 4 * units, units), "B": (1, 8 * units)}
    weights = [
        numpy_helper.from_array((rng.standard_normal(s) / 4).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    node = helper.make_node("LSTM", ["x", "W", "R", "B"], ["y", "h", "c"], hidden_size=units)
    results = {"y": (time, 1, batch, units), "h": (1, batch, units), "c": (1, batch, units)}
    infos = {
        n: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
        for n, shape in {"x": (time, batch, 5), **results}.items()
    }
    graph = helper.make_graph([node], "g", [infos.pop("x")], [*infos.values()], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    inputs = random_inputs(model, {"B": 2})
    compiled, driver = _open(model, False)
    for _ in range(2):  # the second time is a replay
        found = compiled.run(inputs)
        for key, expected in reference(model, inputs).items():
            np.testing.assert_allclose(found[key], expected, rtol=1e-4, atol=1e-5)
    assert max(Counter(driver.launched).values()) == 2 * often


def test_symbolic_sizes_have_a_frame_each() -> None:
    model = mlp("N")
    compiled, driver = _open(model, interpret=False)
    for n in (1, 5, 2, 5):
        inputs = random_inputs(model, {"N": n})
        for key, expected in reference(model, inputs).items():
            np.testing.assert_allclose(compiled.run(inputs)[key], expected, rtol=1e-4, atol=1e-5)
    assert len(driver.graphs) == 3


def test_parts_of_a_joined_value_are_computed_side_by_side() -> None:
    widths = (3, 8, 5)
    given = [
        helper.make_tensor_value_info(f"x{n}", TensorProto.FLOAT, [6, w])
        for n, w in enumerate(widths)
    ]
    nodes = [helper.make_node("Softmax", [f"x{n}"], [f"s{n}"]) for n in range(3)]
    nodes += [helper.make_node("Concat", ["s0", "s1", "s2"], ["j"], axis=1)]
    nodes += [helper.make_node("Softmax", ["j"], ["y"])]
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, sum(widths)])]
    graph = helper.make_graph(nodes, "g", given, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    compiled, driver = _open(model)
    inputs = random_inputs(model)
    (expected,) = reference(model, inputs).values()
    for _ in range(5):  # each time in another order
        np.testing.assert_allclose(compiled.run(inputs)["y"], expected, rtol=1e-4, atol=1e-5)
    (nodes,) = driver.graphs
    assert sum(not node.earlier for node in nodes) == len(widths)


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


def _by_rate() -> onnx.ModelProto:
    """A model that does one thing at 16000 and another otherwise."""
    branches = [
        helper.make_graph(
            [helper.make_node(op, ["x"], [op])],
            op,
            [],
            [helper.make_tensor_value_info(op, TensorProto.FLOAT, [4])],
        )
        for op in ("Exp", "Neg")
    ]
    nodes = [
        helper.make_node("Constant", [], ["k"], value_int=16000),
        helper.make_node("Equal", ["rate", "k"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    given = [("x", TensorProto.FLOAT, [4]), ("rate", TensorProto.INT64, [])]
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(*v) for v in given], results
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_choice_by_an_input_is_a_graph_for_each_outcome() -> None:
    compiled, driver = _open(_by_rate())
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    for rate in (16000, 8000, -1, 16000):
        expected = np.exp(x) if rate == 16000 else -x
        np.testing.assert_allclose(compiled(x, np.array(rate)), expected, rtol=1e-5)
    assert len(driver.graphs) == 2
    # what decides may be on the GPU, and is read there
    rates = [_Tensor(np.array(rate)) for rate in (16000, 8000)]
    for rate, expected in zip(rates, (np.exp(x), -x), strict=True):
        np.testing.assert_allclose(np.asarray(compiled(x, rate)), expected, rtol=1e-5)
    assert len(driver.graphs) == 2
    with override(gpu_sync=True):
        np.testing.assert_allclose(compiled(x, np.array(5)), -x)


def test_compiled_saved_and_loaded_without_a_gpu(tmp_path: Path) -> None:
    compiled = tw.compile(MODELS["mlp"], target="cuda")
    loaded = tw.load(compiled.save(tmp_path / "model.tw"))
    assert isinstance(loaded, CudaExecutable)
    assert loaded.inputs == compiled.inputs
    assert "gpu.rowwise" in loaded.explain()


class _Tensor:
    """An array on the GPU, which here is the host's memory; notes who asks for it."""

    def __init__(self, array: np.ndarray, shift: int = 0, device: int = 0) -> None:
        raw = np.zeros(array.nbytes + 64, np.uint8)
        start = -raw.__array_interface__["data"][0] % 32 + shift
        self.array = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        self.array[...] = array
        self.device = device
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, *, stream: int) -> Any:
        self.streams.append(stream)
        place = self.array.__array_interface__["data"][0]
        kind = I64 if self.array.dtype == np.int64 else F32
        return capsule(place, self.array.shape, kind, (CUDA, self.device), self.array)


def _there(model: onnx.ModelProto, n: int = 3) -> tuple[CudaExecutable, FakeDriver, _Tensor, Any]:
    compiled, driver = _open(model, interpret=False)
    (inputs,) = random_inputs(model, {"N": n}).values()
    (expected,) = reference(model, {compiled.inputs[0].name: inputs}).values()
    return compiled, driver, _Tensor(inputs), expected


def test_arrays_on_the_gpu_stay_there() -> None:
    compiled, driver, x, expected = _there(mlp("N"))
    results = [compiled(x) for _ in range(3)]
    assert x.streams == [1] * 3
    for y in results:
        assert isinstance(y, DeviceArray)
        assert y.shape == expected.shape
        assert y.nbytes == expected.nbytes
        np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-4, atol=1e-5)
    assert len({y.__dlpack__(stream=-1) and y._memory.address for y in results}) == 3
    # a result is an argument, and the graph is the same wherever arrays lie
    assert len(driver.graphs) == 1
    again = compiled.run({compiled.inputs[0].name: x})
    changed = len(driver.changed)
    del again
    gc.collect()
    compiled(x)  # into the same memory
    assert len(driver.changed) == changed
    compiled.close()
    del results, y
    gc.collect()
    assert {k: v for k, v in driver.live.items() if v} == {}


def test_arrays_that_begin_anywhere_and_the_hosts_beside_them() -> None:
    a, b = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [5, 9]) for n in "ab")
    c = helper.make_tensor_value_info("c", TensorProto.FLOAT, [5, 9])
    graph = helper.make_graph([helper.make_node("Sub", ["a", "b"], ["c"])], "g", [a, b], [c])
    compiled, _ = _open(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    one, two = (np.random.default_rng(n).random((5, 9), np.float32) for n in range(2))
    for args in ((_Tensor(one, 4), two), (one, _Tensor(two)), (_Tensor(one), _Tensor(two, 8))):
        np.testing.assert_array_equal(np.asarray(compiled(*args)), one - two)
    into = np.zeros((5, 9), np.float32)
    compiled.run({"a": _Tensor(one), "b": two}, into={"c": into})
    np.testing.assert_array_equal(into, one - two)
    assert compiled.latency(_Tensor(one), two, runs=2)


def test_kernel_after_kernel_where_failures_are_looked_for() -> None:
    compiled, driver, x, expected = _there(mlp("N"))
    with override(gpu_sync=True):
        for argument in (x, x.array):
            found = np.asarray(compiled(argument))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert driver.graphs == []


def test_streams_of_callers() -> None:
    compiled, driver, x, _ = _there(mlp("N"))
    y = compiled(x)
    y.__dlpack__()
    assert driver.followed == []  # it is there already
    compiled.use_stream(0)
    y = compiled(x)
    assert x.streams == [1, LEGACY_STREAM]
    y.__dlpack__()
    y.__dlpack__(stream=LEGACY_STREAM)
    assert driver.followed == []
    y.__dlpack__(stream=7)
    assert driver.followed == [(7, LEGACY_STREAM)]
    waited = driver.waited
    del y
    gc.collect()
    compiled(x)
    assert driver.waited == waited + 1  # stream 7 may not be done with it


def test_arrays_that_cannot_be_read_are_refused() -> None:
    compiled, _, x, _ = _there(mlp("N"))
    x.device = 3
    with pytest.raises(ExecutionError, match="on GPU 3, the model on GPU 0"):
        compiled(x)
    x = _Tensor(np.zeros((3, 15), np.float32))
    with pytest.raises(ExecutionError, match="got an array of shape"):
        compiled(x)
    del _Tensor.__dlpack__
    with pytest.raises(ExecutionError, match="cannot be read where it is"):
        compiled(x)


@pytest.mark.gpu
@pytest.mark.parametrize("name", MODELS)
def test_whole_models_on_a_gpu(name: str) -> None:
    inputs = random_inputs(MODELS[name])
    with tw.compile(MODELS[name], target="cuda") as compiled:
        for key, expected in reference(MODELS[name], inputs).items():
            np.testing.assert_allclose(compiled.run(inputs)[key], expected, rtol=1e-4, atol=1e-5)
