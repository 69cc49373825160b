from __future__ import annotations

from tilewright.arith.expr import Load, Select, Var, const
from tilewright.arith.walk import loads
from tilewright.core.dtypes import BOOL, F32
from tilewright.ir.types import tensor
from tilewright.ops.attention.flash_loops import FlashLoops
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.attention.score_mods import ROW, J

S = Var("s", F32)


def _body(keys: int = 32, mask: object = None, **attrs: object) -> FlashLoops:
    ins = (tensor(F32, 2, 32, 4), tensor(F32, 2, keys, 4), tensor(F32, 2, keys, 4), mask)
    return FlashLoops(Problem(FusedAttentionAttrs(**attrs), ins, tensor(F32, 2, 32, 4)))


def test_nothing_is_done_to_plain_products() -> None:
    assert _body()._score(S) is S
    assert _body(scale=0.5)._score(S) is S * const(0.5, F32)


def test_what_is_not_seen_is_hidden() -> None:
    score = _body(window_right=0)._score(S)
    assert isinstance(score, Select)
    assert score.cond is (J <= ROW + 0 + 0)
    assert _body(window_right=0)._score(S, hides=False) is S
    # Past the last key there is nothing to see.
    assert isinstance(_body(keys=30)._score(S), Select)


def test_masks_are_read_at_their_place() -> None:
    for mask in (tensor(F32, 32, 32), tensor(BOOL, 2, 1, 32)):
        (found,) = (x for x in loads(_body(mask=mask)._score(S)) if isinstance(x, Load))
        assert found.buffer == "x3"
        assert found.indices[-1] is J
