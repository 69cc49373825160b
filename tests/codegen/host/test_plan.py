from __future__ import annotations

from tilewright.arith.expr import Var, const
from tilewright.codegen.host.plan import (
    Conditional,
    CountedLoop,
    ExecutionPlan,
    KernelCall,
    ParallelCalls,
    place,
)


def test_the_calls_of_a_plan_are_those_of_all_branches_and_loops_in_order() -> None:
    a, b, c, d = (KernelCall(name, (), ()) for name in "abcd")
    branch = Conditional(Var("N") < 3, (b,), (ParallelCalls((c, d)),))
    plan = ExecutionPlan(("N",), (a, CountedLoop("i", const(4), (branch,)), a), ())
    assert [call.kernel for call in plan.calls] == ["a", "b", "c", "d", "a"]


def test_the_offset_of_a_buffer_is_an_expression() -> None:
    assert place("arena", 64).offset is const(64)
    assert place("arena", Var("N")).offset is Var("N")
