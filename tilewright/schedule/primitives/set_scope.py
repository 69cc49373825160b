"""`set_scope(buffer, scope)`: the memory of an allocation: `global`, `local`, `register` etc.

    alloc T: f32[8, 12]    →    alloc T: f32[8, 12] @local

Buffers keep their full shape until finalization, which shrinks them to what is live at a time.
Whether a buffer fits into registers is therefore checked only there.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.loop.nodes import SCOPES, Alloc, Func
from tilewright.schedule.analysis.dataflow import allocation
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import replaced


def set_scope(func: Func, buffer: str, scope: str) -> Func:
    """Put an allocation into another kind of memory."""
    if scope not in SCOPES:
        message = f"no scope {scope!r}"
        raise refuse(func, "set-scope.scope", message, help=f"one of {', '.join(SCOPES)}")
    spine = allocation(func, buffer, "set-scope")
    alloc = spine[-1]
    assert isinstance(alloc, Alloc)
    return replaced(func, spine, Alloc(replace(alloc.buffer, scope=scope), alloc.body))
