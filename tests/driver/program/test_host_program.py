from __future__ import annotations

from tests.models import mlp
from tests.ops.control.test_conditional import N, branch, conditional
from tests.ops.control.test_loop import recurrent
from tilewright.arith.expr import Var
from tilewright.codegen.host.plan import CheckSizes, Conditional, CountedLoop, KernelCall
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.ops.control.loop import LoopAttrs


def test_every_step_is_called_with_its_buffers_and_dimensions() -> None:
    build = lower(mlp("N"), make_options("aarch64"))
    assert build.code.symbols == ("N",)
    assert [call.kernel for call in build.code.calls] == [k.name for k in build.kernels]
    for call, kernel in zip(build.code.calls, build.kernels, strict=True):
        assert len(call.buffers) == len(kernel.finalized.params)
        assert call.sizes == kernel.dim_args


def test_checks_have_messages_and_branches_actions() -> None:
    g = conditional(branch("exp"), branch("neg"))
    g.add_check(N < 100, "few")
    build = lower(g.graph("y"), make_options("aarch64"))
    check, choice = build.code.actions
    assert isinstance(check, CheckSizes)
    assert build.host.errors[check.status] == "few"
    assert isinstance(choice, Conditional)
    assert all(isinstance(call, KernelCall) for call in (*choice.then, *choice.other))


def test_a_loop_carries_values_in_two_buffers() -> None:
    build = lower(recurrent(LoopAttrs("i", Var("T"), 1)), make_options("aarch64"))
    (repeat,) = (a for a in build.code.actions if isinstance(a, CountedLoop))
    (carried,) = repeat.carried
    assert carried.result != carried.spare
    assert carried.read != carried.written
