from __future__ import annotations

from tests.models import convnet
from tilewright.driver.compiler import Timings, lower
from tilewright.driver.report import report_data, report_page


def test_data_and_page_speak_of_every_kernel() -> None:
    timings = Timings()
    build = lower(convnet(1), timings=timings)
    data = report_data(build, timings)
    page = report_page("a <b> & c", build, timings)
    assert sum(k["calls"] for k in data["kernels"]) == len(build.steps)
    assert all(k["name"] in page for k in data["kernels"])
    assert "a &lt;b&gt; &amp; c" in page
    assert page.count("<rect") == len(build.buffers)
