from __future__ import annotations

import pytest

from tests.for_each import for_each
from tests.ops.control.test_conditional import N, branch, conditional
from tests.ops.control.test_loop import recurrent
from tilewright.arith.expr import Var, const, maximum, minimum
from tilewright.arith.simplify import simplify
from tilewright.core.errors import UnsupportedError
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.driver.program.linearize import limit
from tilewright.driver.program.steps import IfStep, KernelStep, WhileStep
from tilewright.ir.graph.nodes import Check
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.passes.regions import with_sizes


def test_branches_have_steps_of_their_own_and_share_memory() -> None:
    g = conditional(branch("twice", "exp"), branch("twice", "neg"))
    g.add_check(N < 100, "few")
    y = g.add("exp", g.add("transpose", "y", attrs=TransposeAttrs((1, 0))))
    build = lower(g.graph(y), make_options(target="aarch64"))
    check, choice, *rest = build.program.items
    assert isinstance(check, Check)
    assert isinstance(choice, IfStep)
    assert all(isinstance(item, KernelStep) for branch in choice.branches for item in branch)
    assert all(isinstance(item, KernelStep) for item in rest)
    results = {build.program.base_buffer(b[-1].node.name) for b in choice.branches}
    assert results == {"y"}
    assert build.host.errors == {1: "few"}


def test_late_sizes_have_limits() -> None:
    s, t = Var("s"), Var("t")
    late = {"s": (N, N * 2), "t": (s, const(3))}
    assert limit(N * 4, late) is N * 4
    assert limit(s * 4, late) is N * 8
    assert limit(t, late) is maximum(N * 2, 3)
    assert limit(N * 2 - s, late) is N


def test_limits_of_sizes_that_do_not_grow_with_what_is_counted() -> None:
    n, late = Var("n"), {"n": (const(0), N)}
    assert limit(n % 4, late) is const(3)
    assert limit(minimum(n, N - n), late) is N
    assert limit(const(8) // n, late) is const(8)
    with pytest.raises(UnsupportedError, match=r"driver\.unlimited"):
        limit(N // (n - N), late)


@for_each(("columns", "aligned"), [(3, False), (4, True)])
def test_rows_of_a_loop_are_as_aligned_as_they_are_long(columns: int, aligned: bool) -> None:
    graph = with_sizes(recurrent(LoopAttrs("i", Var("T"), 1)), {"N": const(columns)})
    program = lower(graph, make_options(target="aarch64")).program
    cycle = next(item for item in program.items if isinstance(item, WhileStep))
    written = cycle.items[-1]
    assert isinstance(written, KernelStep)
    assert written.aligned == aligned


def test_what_a_loop_reads_and_gives_lives_as_long_as_its_steps() -> None:
    build = lower(recurrent(LoopAttrs("i", Var("T"), 1)), make_options(target="aarch64"))
    cycle = next(item for item in build.program.items if isinstance(item, WhileStep))
    (carry,) = cycle.carried
    assert (carry.result, cycle.begin, cycle.going) == ("last", "", "")
    assert {carry.read, carry.written} == set(build.program.carried)
    numbers = [build.program.steps.index(item) for item in cycle.items]
    lives = {b.name: (b.first, b.last) for b in build.memory.live_ranges}
    assert carry.spare in lives
    for name in (carry.spare, build.program.base_buffer(carry.initial)):
        first, last = lives[name]
        assert first <= min(numbers)
        assert last > max(numbers)
    assert build.program.strided_view(cycle.items[-1].node.name).offset is simplify(
        Var("i") * Var("N")
    )
