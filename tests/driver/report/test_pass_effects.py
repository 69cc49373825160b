from __future__ import annotations

from tests.for_each import for_each
from tilewright.driver.pipeline import passes_for
from tilewright.driver.report.pass_effects import IMPORT, PassEffect, pass_effects, roofline_of
from tilewright.ir.graph.parse import parse_graph
from tilewright.ir.types import TYPICAL_SIZE
from tilewright.ops.attrs import make_attrs
from tilewright.passes.context import PassContext
from tilewright.runtime.roofline.roofline import Level, Roofline
from tilewright.target.registry import CPUS, CUDA, resolve_gpu

# 1000 operations and 100 bytes a second.
ROOFLINE = Roofline(1, {"f32": 1000.0}, (Level("memory", float("inf"), 100.0),))
TEXT = """
graph @f(x: f32[5, 5]) {
  %a: f32[5, 5] = identity(%x)
  %b: f32[5, 5] = exp(%a)
  %c: f32[5, 5] = exp(%x)
  %y: f32[5, 5] = add(%b, %c)
  return %y
}
"""


def _effects(text: str, roofline: Roofline | None = ROOFLINE) -> list[PassEffect]:
    context = PassContext(CPUS["x86-64-v3"])
    graph = parse_graph(text, make_attrs)
    return pass_effects(graph, passes_for(context.target), context, roofline)


def test_the_model_after_each_pass_that_changes_it() -> None:
    effects = _effects(TEXT)
    assert [e.name for e in effects] == [IMPORT, "eliminate_noop", "cse", "fuse"]
    assert [e.nodes for e in effects] == [4, 3, 2, 1]
    # Grouped, it is one kernel from the start that reads and writes 25 elements of 4 bytes.
    assert {(e.kernels, e.bytes) for e in effects} == {(1, 200)}
    assert {e.estimated_s for e in effects} == {2.0}


def test_views_are_no_kernels_and_sizes_are_typical() -> None:
    (first, *_) = _effects("""
    graph @f(x: f32[N, 2]) {
      %y: f32[N*2] = reshape(%x) {shape=[N*2]}
      %z: f32[N*2] = exp(%y)
      return %z
    }
    """)
    assert (first.nodes, first.kernels, first.bytes) == (2, 1, 2 * 2 * TYPICAL_SIZE * 4)


def test_no_estimate_without_a_roofline() -> None:
    assert {e.estimated_s for e in _effects(TEXT, None)} == {None}


@for_each("native", [None, ROOFLINE])
def test_a_gpu_has_the_roofs_of_its_data_sheet(native: Roofline | None) -> None:
    gpu = roofline_of(resolve_gpu(CUDA), native)
    assert gpu is not None
    assert gpu.flops_per_second["f16"] > gpu.flops_per_second["f32"]
    assert roofline_of(CPUS["x86-64-v3"], native) is native
