"""`IOBinding`: inputs and outputs bound to memory, for runs that copy nothing in between."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from onnx import helper

from tilewright.compat.onnxruntime.devices import require_cpu
from tilewright.compat.onnxruntime.types import element_of, tensor_name
from tilewright.compat.onnxruntime.values import OrtValue, result_type


class BoundSession(Protocol):
    """What a binding asks of its session."""

    _model: Any

    @property
    def _known(self) -> Mapping[str, Any]: ...

    def _values(self, output_names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[Any]: ...


class IOBinding:
    """The inputs and outputs of runs of one session."""

    def __init__(self, session: BoundSession) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._targets: dict[str, OrtValue | None] = {}
        self._results: dict[str, OrtValue] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Bind an input to an array, which must not be changed before the run."""
        self._check_input(name)
        if not isinstance(arr_on_cpu, np.ndarray):
            raise RuntimeError("Unable to create OrtValue from the given python object")
        self._inputs[name] = _wrapped(arr_on_cpu)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:  # fmt: skip
        """Bind an input to memory that the caller keeps alive."""
        require_cpu(device_type, device_id)
        self._check_input(name)
        self._inputs[name] = _wrapped(_array_at(buffer_ptr, element_type, shape))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an input to a value."""
        self._check_input(name)
        self._inputs[name] = ortvalue._get_c_value()

    def bind_output(
        self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
        shape: Sequence[int] | None = None, buffer_ptr: int | None = None,
    ) -> None:  # fmt: skip
        """Ask for an output, in memory of the caller's where that is given."""
        require_cpu(device_type, device_id)
        if buffer_ptr is None:
            self._targets[name] = None
            return
        if element_type is None or shape is None:
            raise ValueError(
                "`element_type` and `shape` are to be provided if pre-allocated memory is provided"
            )
        self._targets[name] = _wrapped(_array_at(buffer_ptr, element_type, shape))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Ask for an output in the memory of a value."""
        self._targets[name] = ortvalue._get_c_value()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: everything lies in the processor's memory."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: everything lies in the processor's memory."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return [self._results[name] for name in self._targets if name in self._results]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run as arrays, lists and dictionaries."""
        return [output.value for output in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self._targets.clear()
        self._results.clear()

    def run(self) -> None:
        """Run the session on what is bound; called by the session."""
        if not self._targets:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        names = list(self._targets)
        found = self._session._values(names, self._inputs)
        declared = {d.name: d.type for d in self._session._model.outputs}
        for name, value in zip(names, found, strict=True):
            target = self._targets[name]
            if target is None:
                kind = result_type(value, declared[name])
                self._results[name] = OrtValue.of_result(value, kind)
            else:
                self._results[name] = _filled(name, target, value)

    def _check_input(self, name: str) -> None:
        if name not in self._session._known:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")


def _filled(name: str, target: OrtValue, value: Any) -> OrtValue:
    """The target with a result in it, if it has the type and shape for that."""
    array = target.value
    if array.dtype != value.dtype:
        raise RuntimeError(
            f"Error in execution: Unexpected output data type. Actual: ({target.data_type()}) , "
            f"expected: ({result_type(value, None)})"
        )
    if array.shape != value.shape:
        raise RuntimeError(
            f"Error in execution: The output OrtValue provided for output '{name}' has shape "
            f"{_braced(array.shape)} but the computed output shape for this run is "
            f"{_braced(value.shape)}."
        )
    np.copyto(array, value)
    return target


def _braced(shape: Sequence[int]) -> str:
    return f"{{{','.join(map(str, shape))}}}"


def _wrapped(array: np.ndarray) -> OrtValue:
    """A value over an array of any kind; the run says if it does not fit."""
    element = element_of(array.dtype)
    return OrtValue.of_result(array, "" if element is None else tensor_name(element))


def _array_at(pointer: int, element_type: Any, shape: Sequence[int]) -> np.ndarray:
    """The array of this type and shape that lies at an address."""
    number = isinstance(element_type, int)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(element_type) if number else element_type)
    count = dtype.itemsize
    for size in shape:
        count *= size
    if count == 0:
        return np.empty(tuple(shape), dtype)
    memory: Any = (ctypes.c_char * count).from_address(pointer)
    return np.frombuffer(memory, dtype).reshape(tuple(shape))
