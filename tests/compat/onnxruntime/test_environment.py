from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import tilewright.compat.onnxruntime as ours
from tests.compat.onnxruntime.both import assert_alike
from tests.for_each import for_each


@for_each(
    "call",
    [
        lambda engine: engine.get_device(),
        lambda engine: engine.set_seed(3),
        lambda engine: engine.set_seed("a"),
        lambda engine: engine.set_default_logger_severity(3),
        lambda engine: engine.set_default_logger_severity(9),
        lambda engine: engine.set_default_logger_verbosity(0),
        lambda engine: engine.disable_telemetry_events(),
        lambda engine: engine.enable_telemetry_events(),
        lambda engine: engine.has_collective_ops(),
        lambda engine: engine.get_version_string() == engine.__version__,
    ],
)
def test_whole_processes(call: Callable[[ModuleType], Any]) -> None:
    assert_alike(call)


def test_what_is_accepted_without_effect() -> None:
    ours.set_global_thread_pool_sizes(2, 1)
    ours.preload_dlls()
    assert "tilewright" in ours.get_build_info()


def test_the_version_is_one_that_applications_can_compare() -> None:
    numbers = ours.get_version_string().split(".")
    assert [int(n) for n in numbers] >= [1, 20, 0]
