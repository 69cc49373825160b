"""Steps that run side by side: which they are, and that nothing else changes by it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tilewright.arith.expr import Expr, Var
from tilewright.codegen.host.plan import ParallelCalls
from tilewright.core.dtypes import F32
from tilewright.driver.compile import compile
from tilewright.driver.compile_graph import lower
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.options import make_options
from tilewright.driver.program.inter_op import parallel_groups
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder

WIDTH = 64


class _Maker(GraphBuilder):
    def given(self, name: str, rows: int | Expr = 16) -> str:
        return self.input(name, tensor(F32, rows, WIDTH))

    def layer(self, x: str, width: int = 32) -> str:
        """A product, at 16 rows just small enough to be a task."""
        inner = int(str(self.type(x).shape[-1]))
        rng = np.random.default_rng(len(self.nodes))
        weights = rng.standard_normal((inner, width), np.float32) * np.float32(inner**-0.5)
        return self.add("matmul", x, self.constant(weights))


def _heads(count: int, rows: int | Expr = 16, width: int = 32) -> Graph:
    """Layers that have inputs of their own, each followed by another."""
    g = _Maker("f")
    hidden = [g.layer(g.given(f"x{i}", rows), width) for i in range(count)]
    return g.graph(*(g.layer(h) for h in hidden))


def _groups(graph: Graph) -> list[int]:
    """How many steps each group has, in order."""
    build = lower(graph, make_options())
    found = parallel_groups(build.program, build.kernels)
    return [found.count(first) for first in sorted(set(found))]


def test_small_layers_run_side_by_side() -> None:
    assert _groups(_heads(3))[0] == 3


def test_what_follows_is_not_part_of_the_group() -> None:
    g = _Maker("f")
    first = [g.layer(g.given(f"x{i}")) for i in range(3)]
    after = g.layer(first[0])
    graph = g.graph(after, *first[1:])
    assert _groups(graph)[0] == 3


@pytest.mark.parametrize(("count", "rows", "width"), [(1, 16, 32), (3, 64, 256), (2, 1, 8)])
def test_one_large_or_tiny_kernels_run_alone(count: int, rows: int, width: int) -> None:
    assert set(_groups(_heads(count, rows, width))) == {1}


def test_unknown_work_is_not_grouped() -> None:
    assert set(_groups(_heads(3, Var("N")))) == {1}


def _crowd() -> Graph:
    """Groups whose results die in other groups: bytes that are used again and again."""
    g = _Maker("f")
    values = [g.given(f"x{i}") for i in range(4)]
    for _ in range(4):
        values = [g.layer(v, WIDTH // 2) for v in values]
        values = [g.add("tanh", v) for v in (g.layer(v, WIDTH) for v in values)]
    return g.graph(*values)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_are_the_same_on_any_number_of_threads(threads: int) -> None:
    graph = _crowd()
    inputs = random_inputs(graph)
    one = compile(graph, threads=1, cache=False)
    expected = one(**inputs)
    model = check_native(graph, inputs, threads=threads)
    for _ in range(50):
        for a, b in zip(model(**inputs), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    model.close()
    one.close()


def _overlaps(build: ModelBuild) -> bool:
    """Whether two steps of a group may touch the same bytes of the arena, one of them writing."""
    plan, first = build.memory.plan, build.memory.groups
    assert plan is not None
    for buffer in build.memory.live_ranges:
        for other in build.memory.live_ranges:
            apart = buffer.last < other.first or other.last < buffer.first
            if buffer is not other and not apart:
                starts = [int(str(plan.offsets[b.name])) for b in (buffer, other)]
                sizes = [int(str(b.size)) for b in (buffer, other)]
                if starts[0] < starts[1] + sizes[1] and starts[1] < starts[0] + sizes[0]:
                    return True
    # a group's values are alive together, at the number of its first step
    return any(b.first not in first for b in build.memory.live_ranges)


def test_memory_planning_counts_in_groups() -> None:
    build = lower(_crowd(), make_options())
    assert len(set(build.memory.groups)) < len(build.steps)
    assert not _overlaps(build)


def test_the_code_has_a_job_for_each_group() -> None:
    build = lower(_heads(3), make_options())
    jobs = [a for a in build.code.actions if isinstance(a, ParallelCalls)]
    assert [len(job.calls) for job in jobs] == [n for n in _groups(_heads(3)) if n > 1]
    assert len(build.code.calls) == len(build.steps)


def test_profile_and_explain_know_of_them() -> None:
    graph = _heads(3)
    model = compile(graph, threads=2, cache=False)
    profile = model.profile(**random_inputs(graph))
    assert len(profile.rows) == 6
    assert all(row.least > 0 for row in profile.rows)
    assert "side by side" in model.explain()
    model.close()
