from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.programs import dense
from tilewright.core.dtypes import BF16, BOOL
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.attention.stated_problem import problem_of, without_statement
from tilewright.ops.registry import get_op

Q, K = tensor(BF16, 2, 20, 64), tensor(BF16, 2, 50, 64)
MASK = tensor(BOOL, 20, 50)


@for_each(
    ("attrs", "ins"),
    [
        ({}, (Q, K, K)),
        ({"window_right": 0, "softcap": 2.0}, (Q, K, K)),
        ({"q_perm": (1, 0, 2)}, (tensor(BF16, 20, 2, 64), K, K)),
        ({}, (Q, K, K, MASK)),
    ],
)
def test_a_function_states_what_it_was_made_of(
    attrs: dict[str, object], ins: tuple[TensorType, ...]
) -> None:
    given = FusedAttentionAttrs(scale=0.125, **attrs)  # type: ignore[arg-type]
    loops = get_op("fused_attention").loops
    assert loops is not None
    func = loops(given, ins, (Q,))
    stated = problem_of(func)
    assert stated is not None
    assert (stated.attrs, stated.ins, stated.out) == (given, ins, Q)
    assert problem_of(without_statement(func)) is None


def test_other_functions_state_nothing() -> None:
    func = dense()
    assert problem_of(func) is None
    assert without_statement(func) is func
