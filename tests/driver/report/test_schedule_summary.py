from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tests.models import convnet
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.driver.report.schedule_summary import schedule_data
from tilewright.schedule.builtin.rules import RULES


def test_a_product_with_weights_tells_its_tile() -> None:
    (step,) = lower(KERNELS["dense"](64, 64, 64), make_options(target="x86-64-v3")).steps
    found = schedule_data(step.kernel)
    assert found["rule"] == "register_blocked"
    assert "reduction" in found["why"]
    text = "; ".join(found["decisions"])
    assert "parallel over " in text
    assert "vectors of 8" in text
    assert " in registers" in text


def test_packed_weights_and_copies_are_told() -> None:
    steps = lower(convnet(1), make_options(target="aarch64")).steps
    texts = ["; ".join(schedule_data(s.kernel)["decisions"]) for s in steps]
    assert any("packed in blocks of" in text for text in texts)


def test_the_reason_is_that_of_the_rule() -> None:
    for step in lower(convnet(1), make_options(target="aarch64")).steps:
        assert schedule_data(step.kernel)["why"] == RULES[step.kernel.rule]
