from __future__ import annotations

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.driver.program.steps import StepSequence, StridedView
from tilewright.ir.types import tensor
from tilewright.ops.tensor.subviews import Subview

N = Var("N")


def _program() -> StepSequence:
    """`part` is some columns of `whole`, `flat` is `part` with its unit dimension dropped."""
    types = {"whole": tensor(F32, N, 8), "part": tensor(F32, N, 3), "same": tensor(F32, N, 1, 8)}
    program = StepSequence(types=dict(types))
    program.subviews["part"] = Subview("part", "whole", (N, const(3)), starts=(const(0), const(5)))
    program.subviews["same"] = Subview("same", "whole", (N, const(1), const(8)))
    return program


def test_where_values_lie() -> None:
    program = _program()
    assert {program.base_buffer(v) for v in program.types} == {"whole"}
    assert program.strided_view("whole") == StridedView(const(0))
    assert program.strided_view("part") == StridedView(const(5), (N, const(8)))
    assert program.strided_view("same") == StridedView(const(0))
    whole = {v for v in program.types if program.is_whole_buffer(v)}
    assert whole == {"whole", "same"}


def test_control_flow_keeps_values_alive() -> None:
    program = _program()
    program.use_in_control("whole")
    assert program.last_control_use == {"whole": 0}


def test_without_host_inputs_nothing_is_computed_on_the_host() -> None:
    assert _program().host_predicate("whole") is None
