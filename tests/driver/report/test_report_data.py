from __future__ import annotations

from tests.models import convnet
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.driver.report.report_data import report_data
from tilewright.driver.report.step_rows import step_rows
from tilewright.runtime.roofline.roofline import Level, Roofline


def test_data_speak_of_every_kernel() -> None:
    build = lower(convnet(1), make_options())
    roofline = Roofline(1, {"f32": 1e9}, (Level("memory", float("inf"), 1e9),))
    data = report_data(build, step_rows(build), roofline)
    assert sum(k["calls"] for k in data["kernels"]) == len(build.steps)
    assert all(k["least_ms"] > 0 and k["bound"] for k in data["kernels"])
    assert all(len(k["places"]) == k["calls"] for k in data["kernels"])
