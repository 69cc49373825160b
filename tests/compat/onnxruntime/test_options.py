from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime as theirs
import pytest

import tilewright.compat.onnxruntime as ours
from tests.compat.onnxruntime.both import assert_alike
from tests.for_each import for_each
from tilewright.compat.onnxruntime.status import NotImplemented


@for_each("kind", ["SessionOptions", "RunOptions"])
def test_attributes_and_their_defaults_are_theirs(kind: str) -> None:
    there, here = getattr(theirs, kind)(), getattr(ours, kind)()
    for name in dir(there):
        value = getattr(there, name)
        if not name.startswith("_") and not callable(value):
            # enumerations of two packages never equal each other
            assert str(getattr(here, name)) == str(value), name


@for_each(
    ("name", "value"),
    [
        ("intra_op_num_threads", 2),
        ("intra_op_num_threads", np.int64(2)),
        ("intra_op_num_threads", "a"),
        ("intra_op_num_threads", 1.5),
        ("inter_op_num_threads", -1),
        ("graph_optimization_level", 99),
        ("execution_mode", 1),
        ("log_severity_level", 3),
        ("logid", 5),
        ("logid", "me"),
        ("enable_profiling", 1),
        ("enable_cpu_mem_arena", "x"),
        ("enable_mem_pattern", False),
        ("optimized_model_filepath", "/tmp/x.onnx"),
        ("no_such_option", 3),
    ],
)
def test_setting(name: str, value: Any) -> None:
    def call(engine: ModuleType) -> Any:
        options = engine.SessionOptions()
        setattr(options, name, value)
        return getattr(options, name)

    assert_alike(call)


def test_setting_an_enumeration() -> None:
    options = ours.SessionOptions()
    options.graph_optimization_level = ours.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = ours.ExecutionMode.ORT_PARALLEL
    assert options.graph_optimization_level == 0
    assert options.execution_mode is ours.ExecutionMode.ORT_PARALLEL


@for_each(
    ("kind", "add", "get"),
    [
        ("SessionOptions", "add_session_config_entry", "get_session_config_entry"),
        ("RunOptions", "add_run_config_entry", "get_run_config_entry"),
    ],
)
def test_configuration(kind: str, add: str, get: str) -> None:
    def call(engine: ModuleType, key: Any, value: Any, asked: str) -> Any:
        options = getattr(engine, kind)()
        getattr(options, add)(key, value)
        return getattr(options, get)(asked)

    assert_alike(lambda engine: call(engine, "a", "b", "a"))
    assert_alike(lambda engine: call(engine, "a", "b", "c"))
    assert_alike(lambda engine: call(engine, "a", 1, "a"))


def test_initializers_come_in_pairs() -> None:
    with pytest.raises(RuntimeError, match="equal length"):
        ours.SessionOptions().add_external_initializers(["a"], [])


def test_what_cannot_be_done_says_so() -> None:
    with pytest.raises(NotImplemented, match=r"custom operators.*Tilewright"):
        ours.SessionOptions().register_custom_ops_library("ops.so")
    with pytest.raises(NotImplemented, match="adapters"):
        ours.RunOptions().add_active_adapter(None)


def test_providers_may_be_named_here_too() -> None:
    options = ours.SessionOptions()
    options.add_provider("CPUExecutionProvider", {})
    assert not options.has_providers()
    options.add_free_dimension_override_by_denotation("BATCH", 1)
