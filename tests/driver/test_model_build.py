from __future__ import annotations

from tests.models import transformer
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options


def test_steps_pair_nodes_with_their_kernels() -> None:
    options = make_options("x86-64-v3", "bf16")
    build = lower(transformer(1, 4), options)
    assert [step.node for step in build.steps] == [step.node for step in build.program.steps]
    assert [step.kernel for step in build.steps] == list(build.kernels)
    assert list(build.distinct_kernels) == list(dict.fromkeys(k.name for k in build.kernels))
    assert (build.target, build.precision) == (options.target, "bf16")
    assert any(record.name == "fuse" for record in build.log.records)
