from __future__ import annotations

from tests.ops.test_control import N, branch, conditional
from tilewright.arith.expr import Var, const, maximum
from tilewright.driver.compiler import lower
from tilewright.driver.flatten import Branch, Step, limit
from tilewright.ir.graph.nodes import Check
from tilewright.ops.layout import TransposeAttrs


def test_branches_have_steps_of_their_own_and_share_memory() -> None:
    g = conditional(branch("twice", "exp"), branch("twice", "neg"))
    g.require(N < 100, "few")
    y = g.add("exp", g.add("transpose", "y", attrs=TransposeAttrs((1, 0))))
    build = lower(g.graph(y), target="aarch64")
    check, choice, *rest = build.flat.items
    assert isinstance(check, Check)
    assert isinstance(choice, Branch)
    assert all(isinstance(item, Step) for branch in choice.branches for item in branch)
    assert all(isinstance(item, Step) for item in rest)
    results = {build.flat.root_of(b[-1].node.name) for b in choice.branches}
    assert results == {"y"}
    assert build.errors == {1: "few"}


def test_late_sizes_have_limits() -> None:
    s, t = Var("s"), Var("t")
    late = {"s": (N, N * 2), "t": (s, const(3))}
    assert limit(N * 4, late) is N * 4
    assert limit(s * 4, late) is N * 8
    assert limit(t, late) is maximum(N * 2, 3)
    assert limit(N * 2 - s, late) is N
