"""`annotate(name, key, value)`: annotate a loop or block for finalization and code generation.

    for i in parallel(M) { ... }    →    for i in parallel(M) {versioned=1} { ... }

An annotation with the same key is replaced.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.loop.nodes import Block, For, Func
from tilewright.ir.loop.walk import find_block
from tilewright.schedule.tree import replaced, spine_to


def annotate(func: Func, name: str, key: str, value: int | str) -> Func:
    """Attach `key=value` to the loop or block called `name`."""
    spine = spine_to(func, lambda s: isinstance(s, For | Block) and s.name == name)
    if spine is None:
        find_block(func, name)
    assert spine is not None
    target = spine[-1]
    assert isinstance(target, For | Block)
    notes = (*((k, v) for k, v in target.annotations if k != key), (key, value))
    return replaced(func, spine, replace(target, annotations=notes))
