"""`SessionOptions` and `RunOptions`: every attribute is checked and kept; a few have an effect.

What has one: `intra_op_num_threads`, the overrides of free dimensions, added initializers,
`optimized_model_filepath`, `enable_profiling`, and `terminate` of a run.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.compat.onnxruntime.enums import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
)
from tilewright.compat.onnxruntime.status import NotImplemented, error

if TYPE_CHECKING:
    from tilewright.compat.onnxruntime.values import OrtValue


class _Attribute:
    """An attribute of one type; a value of another is refused as a binding to C++ refuses it."""

    def __init__(self, kind: type, default: Any) -> None:
        self.kind = kind
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance._values.get(self.name, self.default)

    def __set__(self, instance: Any, value: Any) -> None:
        instance._values[self.name] = _converted(value, self.kind, self.name)


def _converted(value: Any, kind: type, where: str) -> Any:
    if isinstance(value, kind):
        return value
    if kind is bool and (value is None or hasattr(value, "__bool__")):
        return bool(value)
    if kind is int and not isinstance(value, float) and hasattr(value, "__index__"):
        return operator.index(value)
    raise TypeError(
        f"{where}: incompatible function arguments. The following argument types are supported:\n"
        f"    1. {kind.__name__}\n\nInvoked with: {value!r}"
    )


class SessionOptions:
    """How a session is to be made."""

    __slots__ = ("__weakref__", "_config", "_initializers", "_sizes", "_values")

    enable_cpu_mem_arena = _Attribute(bool, True)
    enable_mem_pattern = _Attribute(bool, True)
    enable_mem_reuse = _Attribute(bool, True)
    enable_profiling = _Attribute(bool, False)
    execution_mode = _Attribute(ExecutionMode, ExecutionMode.ORT_SEQUENTIAL)
    execution_order = _Attribute(ExecutionOrder, ExecutionOrder.DEFAULT)
    graph_optimization_level = _Attribute(
        GraphOptimizationLevel, GraphOptimizationLevel.ORT_ENABLE_ALL
    )
    inter_op_num_threads = _Attribute(int, 0)
    intra_op_num_threads = _Attribute(int, 0)
    log_severity_level = _Attribute(int, -1)
    log_verbosity_level = _Attribute(int, 0)
    logid = _Attribute(str, "")
    optimized_model_filepath = _Attribute(str, "")
    profile_file_prefix = _Attribute(str, "onnxruntime_profile_")
    use_deterministic_compute = _Attribute(bool, False)
    use_per_session_threads = _Attribute(bool, True)

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._config: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry of the configuration."""
        name = "add_session_config_entry()"
        self._config[_converted(key, str, name)] = _converted(value, str, name)

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added."""
        if key not in self._config:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Give a symbolic size of the model a value."""
        where = "add_free_dimension_override_by_name()"
        self._sizes[_converted(name, str, where)] = _converted(size, int, where)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Models of today have no denotations; there is nothing that this could change."""
        where = "add_free_dimension_override_by_denotation()"
        _converted(denotation, str, where), _converted(size, int, where)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replace an initializer of the model."""
        self._initializers[name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Replace initializers of the model."""
        if len(names) != len(values):
            raise RuntimeError("Expecting names and ort_values lists to have equal length")
        self._initializers.update(zip(names, values, strict=True))

    def register_custom_ops_library(self, path: str) -> None:
        """Refused: operators compiled for ONNX Runtime cannot run in another engine."""
        raise error(
            NotImplemented,
            f"{path}: libraries of custom operators are made for ONNX Runtime's own memory layout "
            "and cannot be loaded by Tilewright",
        )

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Accepted: there is one provider, and it is always used."""

    def has_providers(self) -> bool:
        """Whether providers were chosen here."""
        return False


class RunOptions:
    """How one run is to be made."""

    __slots__ = ("__weakref__", "_config", "_values")

    log_severity_level = _Attribute(int, -1)
    log_verbosity_level = _Attribute(int, 0)
    logid = _Attribute(str, "")
    only_execute_path_to_fetches = _Attribute(bool, False)
    terminate = _Attribute(bool, False)

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._config: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry of the configuration."""
        name = "add_run_config_entry()"
        self._config[_converted(key, str, name)] = _converted(value, str, name)

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added."""
        if key not in self._config:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_active_adapter(self, adapter: object) -> None:
        """Refused: there are no adapters here."""
        raise error(NotImplemented, "LoRA adapters are not supported by Tilewright")
