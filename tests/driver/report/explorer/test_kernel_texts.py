from __future__ import annotations

from tilewright.driver.report.explorer.document import ExploredModel
from tilewright.driver.report.explorer.kernel_texts import kernel_texts


def test_the_way_of_a_kernel(measured: ExploredModel) -> None:
    step = measured.build.steps[0]
    texts = kernel_texts(step, measured.build.target, "f32")
    assert texts["tensor"][0].startswith("tensor @transpose_conv_add_relu")
    assert texts["lowered"][0].startswith("func @")
    assert len(texts["steps"]) == len(texts["trace"]) == len(step.kernel.scheduled.trace)
    assert texts["steps"][-1] == texts["scheduled"]
    assert texts["steps"][0] != texts["lowered"]
    last = len(texts["finalized"])
    for name in ("llvm", "assembly"):
        assert len(texts[name]) == len(texts[f"{name}_lines"])
        assert 0 < max(texts[f"{name}_lines"]) <= last
