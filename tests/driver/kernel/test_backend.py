from __future__ import annotations

from tests.models import mlp
from tilewright.driver.compile_graph import lower
from tilewright.driver.kernel.backend import BACKENDS, backend_of
from tilewright.driver.options import make_options
from tilewright.target.host import host
from tilewright.target.registry import resolve_gpu


def test_one_for_each_kind_of_machine() -> None:
    assert backend_of(host()) is BACKENDS["cpu"]
    assert backend_of(resolve_gpu("cuda")) is BACKENDS["gpu"]


def test_text_of_a_kernel() -> None:
    for target, word in (("native", "define void"), ("cuda", "define ptx_kernel void")):
        build = lower(mlp(2), make_options(target=target))
        kernel = build.steps[0].kernel
        made = backend_of(build.target)
        assert word in made.emit(kernel.finalized, kernel.dim_params, build.target, "f32")
