"""Calls with torch's tensors: here those of the processor, on a driver with no GPU behind it."""

from __future__ import annotations

import gc
import threading
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

import tilewright as tw
from tests.models import mlp, random_inputs, reference, transformer
from tests.runtime.cuda.fake_driver import FakeDriver
from tests.runtime.cuda.test_executable import _by_rate, _open
from tilewright.core.config import override
from tilewright.core.errors import ExecutionError
from tilewright.runtime.cuda import torch_calls
from tilewright.runtime.cuda.executable import CudaExecutable
from tilewright.runtime.cuda.torch_calls import TorchCalls, _strides


class _Torch:
    """The processor's torch as if it were a GPU's; `now` is the current stream."""

    number, device = 0, torch.device("cpu")

    def __init__(self) -> None:
        self.now = 7
        self.captures = False
        self.elsewhere = False
        self.grad_enabled = torch.is_grad_enabled
        self.selections = 0

    def stream(self) -> int:
        return self.now

    def capturing(self) -> bool:
        return self.captures

    def empty(self, shape: Any, strides: Any, dtype: Any) -> torch.Tensor:
        size = torch.Size(shape).numel() * dtype.itemsize
        room = torch.zeros(size + 256, dtype=torch.uint8)
        start = -room.data_ptr() % 256
        flat = room[start : start + size].view(dtype)
        return flat.as_strided(shape, strides)

    def is_elsewhere(self) -> bool:
        return self.elsewhere

    def selected(self) -> Any:
        self.selections += 1
        return nullcontext()

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def gpu_of(self, tensor: Any) -> int | None:
        return 0 if isinstance(tensor, torch.Tensor) else None

    def is_strided(self, tensor: Any) -> bool:
        return bool(tensor.layout == torch.strided)

    def from_dlpack(self, array: Any) -> Any:
        return torch.from_dlpack(array)

    def dtype(self, name: str) -> Any:
        return getattr(torch, name, None)


def _calls(model: onnx.ModelProto) -> tuple[CudaExecutable, FakeDriver, _Torch, TorchCalls]:
    compiled, driver = _open(model, interpret=False)
    there: Any = _Torch()
    compiled._torch = calls = TorchCalls(there, compiled._program)
    return compiled, driver, there, calls


def _given(model: onnx.ModelProto, n: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    (array,) = random_inputs(model, {"N": n}).values()
    (expected,) = reference(model, {model.graph.input[0].name: array}).values()
    return torch.from_numpy(np.array(array)), torch.from_numpy(expected)


def _near(found: Any, expected: torch.Tensor) -> None:
    assert isinstance(found, torch.Tensor)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_calls_of_a_known_kind_only_launch() -> None:
    model = mlp("N")
    compiled, driver, there, calls = _calls(model)
    for n in (3, 5):
        x, expected = _given(model, n)
        assert calls.repeat([x]) is None
        (first,) = calls.run([x])
        _near(first, expected)
        again = compiled(x)  # by way of what is known
        _near(again, expected)
        assert again.data_ptr() != first.data_ptr()
    assert (driver.waited, len(calls._known)) == (0, 2)
    assert set(driver.streams) == {there.now}
    assert driver.relaxing == 0
    compiled.close()
    assert {k: v for k, v in driver.live.items() if v} == {}
    with pytest.raises(ExecutionError, match="closed"):
        calls.run([x])


def test_streams_have_graphs_and_workspaces_of_their_own() -> None:
    model = mlp(3)
    _, driver, there, calls = _calls(model)
    x, expected = _given(model)
    for stream in (7, 0, 7, 9):
        there.now = stream
        driver.streams.clear()
        (found,) = calls.run([x])
        _near(found, expected)
        assert set(driver.streams) == {stream}
    (prepared,) = calls._known.values()
    assert set(prepared.graphs) == {7, 0, 9}
    arenas = {graph.places[-1] for graph in prepared.graphs.values()}
    assert len(arenas) == 3
    assert len([g for g in driver.graphs if g]) == 3


def test_no_more_streams_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_calls, "MAX_STREAMS", 2)
    model = mlp(3)
    compiled, driver, there, calls = _calls(model)
    x, expected = _given(model)
    for stream in range(5):
        there.now = stream
        (found,) = calls.run([x])
        _near(found, expected)
    assert len([g for g in driver.graphs if g]) == 2
    compiled.close()
    assert {k: v for k, v in driver.live.items() if v} == {}


def test_kinds_that_are_forgotten_are_met_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_calls, "MAX_KINDS", 2)
    model = mlp("N")
    _, _, _, calls = _calls(model)
    for n in (1, 2, 3, 1):
        x, expected = _given(model, n)
        (found,) = calls.run([x])
        _near(found, expected)
        assert len(calls._known) <= 2


def test_arguments_in_any_layout_and_place() -> None:
    model = mlp(3)
    _, _, _, calls = _calls(model)
    x, expected = _given(model)
    turned = x.T.contiguous().T
    room = torch.zeros(x.numel() + 1)
    room[1:] = x.flatten()
    odd = room[1:].view(x.shape)
    negated = torch._neg_view(-x)
    assert not turned.is_contiguous()
    assert odd.data_ptr() % 16
    for given, known in ((turned, True), (odd, False), (x[:, :], True), (negated, False)):
        (found,) = calls.run([given])
        _near(found, expected)
        again = calls.repeat([given])
        assert (again is not None) == known
        if known:
            _near(again, expected)


def _sub() -> onnx.ModelProto:
    a, b, c = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [5, 9]) for n in "abc")
    graph = helper.make_graph([helper.make_node("Sub", ["a", "b"], ["c"])], "g", [a, b], [c])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_arrays_of_the_host_beside_tensors() -> None:
    compiled, _, there, calls = _calls(_sub())
    one, two = torch.rand(5, 9), torch.rand(5, 9)
    for args in ((one, two.numpy()), (one.numpy(), two), (one, two)):
        (found,) = calls.run(args)
        assert torch.equal(found, one - two)
    assert compiled(one, b=two).shape == (5, 9)
    there.captures = True
    with pytest.raises(ExecutionError, match="no CUDA graph"):
        calls.run((one, two.numpy()))


def test_what_is_captured_has_a_workspace_of_its_own() -> None:
    model = mlp(3)
    _, driver, there, calls = _calls(model)
    x, expected = _given(model)
    there.captures = True
    for _ in range(2):
        (found,) = calls.run([x])  # the first call may be one
        _near(found, expected)
    (prepared,) = calls._known.values()
    assert prepared.graphs == {}
    assert driver.graphs == []
    with override(gpu_sync=True):
        (found,) = calls.run([x])
    _near(found, expected)


def test_a_kernel_that_torch_has_seen_fail_is_told_by_us() -> None:
    model = mlp(3)
    _, driver, there, calls = _calls(model)
    x, _ = _given(model)
    calls.run([x])

    def fails(*_: Any) -> bool:
        raise RuntimeError("an illegal memory access was encountered")

    there.capturing = fails
    with pytest.raises(RuntimeError, match="illegal"):
        calls.repeat([x])  # for all that the driver knows, it was something else
    driver.synchronize_all = lambda: driver.failures.check(700, "waiting for the GPU")
    driver.failures._words = lambda status: "illegal"
    with pytest.raises(ExecutionError, match="a kernel failed") as told:
        calls.repeat([x])
    assert told.value.notes[0].startswith("launched last: ") == bool(driver.failures.launched)
    with pytest.raises(ExecutionError, match="cannot be used any more"):
        calls.run([x])


def test_kernel_after_kernel_where_failures_are_looked_for() -> None:
    model = mlp(3)
    compiled, driver, _, calls = _calls(model)
    x, expected = _given(model)
    calls.run([x])
    graphs = len(driver.graphs)
    with override(gpu_sync=True):
        assert calls.repeat([x]) is None
        (found,) = calls.run([x])
    _near(found, expected)
    assert len(driver.graphs) == graphs
    compiled.close()


def test_a_choice_by_an_input_goes_step_by_step() -> None:
    _, _, _, calls = _calls(_by_rate())
    x = torch.linspace(-1, 1, 4)
    for rate in (torch.tensor(16000), np.array(8000), torch.tensor(-1)):
        (found,) = calls.run([x, rate])
        torch.testing.assert_close(found, x.exp() if rate == 16000 else -x)


def test_results_whose_sizes_a_run_gives() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [8])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [1, "K"])
    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    _, _, _, calls = _calls(model)
    for values in ([1.0, 0, 0, 2, 0, 0, 0, 3], [0.0] * 8):
        given = torch.tensor(values)
        (found,) = calls.run([given])
        assert torch.equal(found, given.nonzero().T)


def test_wrong_arguments_are_refused() -> None:
    _, driver, _, calls = _calls(mlp(3))
    x = torch.zeros(3, 16)
    for given, message in (
        (torch.zeros(3, 15), "got an array of shape"),
        (torch.zeros(3, 16, dtype=torch.float64), r"is f32, got an array of float64"),
        (torch.zeros(3, 16, requires_grad=True), "asks for a gradient"),
        (torch.zeros(3, 16).to_sparse(), "layout sparse_coo"),
        (torch.zeros(3), "got an array of shape"),
    ):
        with pytest.raises(ExecutionError, match=message):
            calls.run([given])
    with pytest.raises(ExecutionError, match="2 arguments given"):
        calls.run([x, x])
    driver.number = 1
    with pytest.raises(ExecutionError, match="on GPU 0, the model on GPU 1"):
        calls.run([x])
    assert not calls._known


def test_tensors_that_would_get_a_gradient_are_taken_without_one() -> None:
    model = mlp(3)
    _, _, _, calls = _calls(model)
    x, expected = _given(model)
    x.requires_grad_()
    with torch.no_grad():
        calls.run([x])
        _near(calls.repeat([x]), expected)
    assert calls.repeat([x]) is None
    with pytest.raises(ExecutionError, match="asks for a gradient"):
        calls.run([x])


def test_torch_on_another_gpu_comes_to_this_one() -> None:
    model = mlp(3)
    _, _, there, calls = _calls(model)
    x, expected = _given(model)
    there.elsewhere = True
    for number in (1, 2):
        assert calls.repeat([x]) is None
        (found,) = calls.run([x])
        _near(found, expected)
        assert there.selections == number


def test_models_share_the_workspace_of_a_stream() -> None:
    there = _Torch()
    there.now = 1234
    made = []
    for model in (mlp(3), transformer()):
        compiled, _, _, calls = _calls(model)
        calls._torch = there
        inputs = [torch.from_numpy(np.array(a)) for a in random_inputs(model).values()]
        calls.run(inputs)
        made.append((compiled, calls))
    spaces = {id(calls._workspaces[1234]) for _, calls in made}
    assert len(spaces) == 1
    del made, compiled, calls
    gc.collect()


def test_strides() -> None:
    assert _strides((2, 3, 4)) == torch.empty(2, 3, 4).stride()
    assert _strides((2, 0, 4)) == torch.empty(2, 0, 4).stride()
    assert _strides(()) == ()


def _there(*widths: int) -> tuple[tw.CompiledModel, torch.nn.Module]:
    """A model of products on the GPU, and what torch makes of it."""
    torch.manual_seed(len(widths))
    layers = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
    module = torch.nn.Sequential(*(m for one in layers for m in (one, torch.nn.GELU()))).eval()
    batch = torch.export.Dim("batch", min=2)
    exported = torch.export.export(
        module, (torch.zeros(3, widths[0]),), dynamic_shapes=({0: batch},)
    )
    return tw.compile(exported, target="cuda"), module.cuda()


@pytest.mark.gpu
def test_tensors_on_a_gpu() -> None:
    model, module = _there(40, 64, 24, 8)
    with model, torch.no_grad():
        results = []
        for n in (2, 7, 64):
            x = torch.randn(n, 40, device="cuda")
            wide = torch.randn(n, 80, device="cuda")
            for given in (x, x * 2, wide[:, ::2], x.T.contiguous().T, x):
                results += [(model(given), module(given)) for _ in range(2)]
            for _ in range(30):  # memory is used again, in the order of the stream
                results.append((model(x + 1) * 1, module(x + 1)))
        for found, expected in results:
            assert found.is_cuda
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
def test_nothing_is_waited_for_and_memory_is_torchs() -> None:
    model, module = _there(16, 512, 16)
    with model, torch.no_grad():
        x = torch.randn(256, 16, device="cuda")
        expected = module(x)
        model(x)
        torch.cuda.synchronize()
        held, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
        ended = torch.cuda.Event()
        torch.cuda._sleep(1 << 28)
        found = model(x)
        ended.record()
        assert not ended.query()
        assert torch.cuda.memory_allocated() == held + found.untyped_storage().nbytes()
        assert torch.cuda.mem_get_info()[0] == free
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("warm", [False, True])
def test_torch_captures_calls(warm: bool) -> None:
    model, module = _there(16, 64, 64, 8)
    with model, torch.no_grad():
        x = torch.randn(5, 16, device="cuda")
        module(x)
        if warm:
            model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            one = model(x)
            two = model(torch.cat([x, -x]))
        for _ in range(3):
            x.copy_(torch.randn(5, 16))
            between = model(x + 1)  # has a workspace of its own
            graph.replay()
            for found, given in ((one, x), (two, torch.cat([x, -x])), (between, x + 1)):
                torch.testing.assert_close(found, module(given), rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
def test_models_in_several_threads_and_streams() -> None:
    models = [_there(16, 64, 16), _there(16, 128, 96, 8)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
                for n in range(60):
                    model, module = models[(number + n) % 2]
                    x = torch.randn(3 + (n + number) % 5 * 16, 16, device="cuda")
                    torch.testing.assert_close(model(x), module(x), rtol=1e-3, atol=1e-4)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.gpu
def test_streams_side_by_side_do_not_meet() -> None:
    """Calls that are queued at once, each behind a wait of its stream."""
    model, module = _there(64, 256, 256, 64)
    with model, torch.no_grad():
        streams = [torch.cuda.Stream() for _ in range(4)]
        given = [torch.randn(128, 64, device="cuda") for _ in streams]
        torch.cuda.synchronize()
        results = []
        for n in range(40):
            number = n % len(streams)
            with torch.cuda.stream(streams[number]):
                if n < len(streams):
                    torch.cuda._sleep(1 << 24)
                results.append((model(given[number]), number))
        torch.cuda.synchronize()
        for found, number in results:
            torch.testing.assert_close(found, module(given[number]), rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
def test_an_index_outside_is_told_by_a_later_call() -> None:
    module = torch.nn.Embedding(40, 8).eval()
    good = torch.tensor([3, 39])
    with tw.compile(module, inputs=(good,), target="cuda") as model:
        good = good.cuda()
        model(good)
        model(good + 1)
        with pytest.raises(ExecutionError, match="index 40 is outside"):
            model.check()
        model(good + 1)
        torch.cuda.synchronize()
        with pytest.raises(ExecutionError, match="in an earlier call"):
            model(good)
        model(good)
        model.check()
