"""The problem that the loops of attention solve, stated on their function, so that they can be
written anew in other blocks.

    func @fused_attention(x0: f16[2, 64, 32], ...) {attention="scale=0.125, window_right=0"} { ... }

The types of operands are those of the parameters: `x0` is the first input, inputs that are left out
have none.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.graph.parse import parse_attributes
from tilewright.ir.loop.annotations import ATTENTION
from tilewright.ir.loop.nodes import Func
from tilewright.ir.types import TensorType
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.attrs import attrs_of

INPUTS = 6


def problem_of(func: Func) -> Problem | None:
    """The problem that a function states, without a tile; `None` if it states none."""
    text = next((value for key, value in func.annotations if key == ATTENTION.key), None)
    if text is None:
        return None
    attrs = attrs_of(FusedAttentionAttrs, parse_attributes(str(text)), "fused_attention")
    assert isinstance(attrs, FusedAttentionAttrs)
    types = {p.name: TensorType(p.dtype, p.shape) for p in func.params}
    given = [types.get(f"x{n}") for n in range(INPUTS)]
    while given and given[-1] is None:
        given.pop()
    return Problem(attrs, tuple(given), types["y0"])


def without_statement(func: Func) -> Func:
    """The function that says nothing of it any more."""
    left = tuple(note for note in func.annotations if note[0] != ATTENTION.key)
    return func if left == func.annotations else replace(func, annotations=left)
