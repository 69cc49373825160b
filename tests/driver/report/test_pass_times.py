from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.cases import build_model
from tilewright.driver.options import CompileOptions, make_options
from tilewright.driver.report import pass_times as module
from tilewright.driver.report.pass_times import pass_times


def test_a_model_with_and_without_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.0)
    seen: list[tuple[str, ...]] = []
    compile_model = module.compile_model

    def noted(source: Any, options: CompileOptions) -> Any:
        seen.append(options.disable_passes)
        return compile_model(source, options)

    monkeypatch.setattr(module, "compile_model", noted)
    options = make_options(disable_passes=("cse",), cache=False, threads=1)
    model = build_model("global_pool")
    (port,) = model.graph.input
    shape = [d.dim_value for d in port.type.tensor_type.shape.dim]
    inputs = {port.name: np.ones(shape, np.float32)}
    (found,) = pass_times(model, ["sink_reshapes"], inputs, options)
    assert found.name == "sink_reshapes"
    assert found.enabled_s > 0
    assert found.disabled_s > 0
    assert seen == [("cse",), ("cse", "sink_reshapes")]
