from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilewright.compat.onnxruntime as ours
from tests.compat.onnxruntime.both import affine, assert_alike
from tests.for_each import for_each

BYTES = affine().SerializeToString()
X = np.arange(6, dtype=np.float32).reshape(2, 3)
Bind = Callable[[ModuleType, Any], None]


def _run(engine: ModuleType, bind: Bind) -> Any:
    session = engine.InferenceSession(BYTES)
    binding = session.io_binding()
    bind(engine, binding)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    values = [(v.numpy(), v.data_type()) for v in binding.get_outputs()]
    return values, binding.copy_outputs_to_cpu()


def _inputs(engine: ModuleType, binding: Any) -> None:
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("y", engine.OrtValue.ortvalue_from_numpy(X))


def _all_outputs(engine: ModuleType, binding: Any) -> None:
    _inputs(engine, binding)
    binding.bind_output("o")
    binding.bind_output("z", "cpu", 0)


def _by_address(engine: ModuleType, binding: Any) -> None:
    binding.bind_input("x", "cpu", 0, np.float32, [2, 3], X.ctypes.data)
    binding.bind_input("y", "cpu", 0, np.float32, (2, 3), X.ctypes.data)
    binding.bind_output("z")


def _no_outputs(engine: ModuleType, binding: Any) -> None:
    _all_outputs(engine, binding)
    binding.clear_binding_outputs()


def _no_inputs(engine: ModuleType, binding: Any) -> None:
    _all_outputs(engine, binding)
    binding.clear_binding_inputs()


def _wrong_type(engine: ModuleType, binding: Any) -> None:
    _all_outputs(engine, binding)
    binding.bind_cpu_input("x", X.astype(np.float64))


def _wrong_size(engine: ModuleType, binding: Any) -> None:
    _all_outputs(engine, binding)
    binding.bind_cpu_input("x", np.ones((2, 4), np.float32))


def _wrong_name(engine: ModuleType, binding: Any) -> None:
    binding.bind_cpu_input("q", X)


def _no_array(engine: ModuleType, binding: Any) -> None:
    binding.bind_cpu_input("x", [1])


def _half_a_buffer(engine: ModuleType, binding: Any) -> None:
    binding.bind_output("o", buffer_ptr=X.ctypes.data)


def _no_value(engine: ModuleType, binding: Any) -> None:
    binding.bind_ortvalue_output("o", X)


@for_each(
    "bind",
    [_all_outputs, _by_address, _no_outputs, _no_inputs, _wrong_type, _wrong_size, _wrong_name,
     _no_array, _half_a_buffer, _no_value],
)  # fmt: skip
def test_runs(bind: Bind) -> None:
    assert_alike(lambda engine: _run(engine, bind))


def _into(engine: ModuleType, target: np.ndarray) -> Any:
    session = engine.InferenceSession(BYTES)
    binding = session.io_binding()
    _inputs(engine, binding)
    binding.bind_output("o", "cpu", 0, target.dtype.type, target.shape, target.ctypes.data)
    session.run_with_iobinding(binding)
    return target


def test_results_go_where_they_are_wanted() -> None:
    assert_alike(lambda engine: _into(engine, np.zeros((2, 3), np.float32)))
    assert_alike(lambda engine: _into(engine, np.zeros((5, 3), np.float32)))
    assert_alike(lambda engine: _into(engine, np.zeros((2, 3), np.float64)))


def test_results_go_into_values() -> None:
    def call(engine: ModuleType) -> Any:
        session = engine.InferenceSession(BYTES)
        binding = session.io_binding()
        _inputs(engine, binding)
        target = engine.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
        binding.bind_ortvalue_output("o", target)
        session.run_with_iobinding(binding)
        return target.numpy()

    assert_alike(call)


def test_another_sessions_binding_is_refused() -> None:
    def call(engine: ModuleType) -> Any:
        binding = engine.InferenceSession(BYTES).io_binding()
        engine.InferenceSession(BYTES).run_with_iobinding(binding)

    assert_alike(call)


def test_other_devices_are_refused() -> None:
    binding = ours.InferenceSession(BYTES).io_binding()
    with pytest.raises(RuntimeError, match="device"):
        binding.bind_output("o", "cuda")
    assert binding.get_outputs() == []
    assert binding.copy_outputs_to_cpu() == []


def test_nothing_at_an_address() -> None:
    session = ours.InferenceSession(BYTES)
    binding = session.io_binding()
    for name in ("x", "y"):
        binding.bind_input(name, "cpu", 0, 1, [0, 3], 0)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].shape == (0, 3)
