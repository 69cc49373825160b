from __future__ import annotations

from tests.models import mlp
from tilewright.driver.artifact.entry_point import (
    ENTRY,
    emit_entry,
    emit_modules,
    emit_support,
    frame_data,
)
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options


def test_native_code_around_kernels_on_a_cpu() -> None:
    build = lower(mlp(2), make_options())
    assert set(emit_entry(build)) == {ENTRY}
    around = set(emit_entry(build)) | set(emit_support(build.target))
    assert set(emit_modules(build)) == around | {step.kernel.name for step in build.steps}
    assert frame_data(build) == {}


def test_data_around_kernels_on_a_gpu() -> None:
    build = lower(mlp(2), make_options(target="cuda"))
    assert emit_entry(build) == emit_support(build.target) == {}
    assert set(emit_modules(build)) == {step.kernel.name for step in build.steps}
    assert set(frame_data(build)) == {"program"}
