"""Which blocks are inlined into their consumers, on any target."""

from __future__ import annotations

from tilewright.arith.expr import Call
from tilewright.arith.walk import subexpressions
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import BlockGraph, is_copy, reductions, value_of
from tilewright.schedule.builtin.cpu.small_transforms import reads_staged
from tilewright.schedule.schedule import Schedule


def inline_into_last(sch: Schedule, graph: BlockGraph) -> None:
    """Inline every block but the last and the outputs."""
    for b in graph.blocks[:-1]:
        if b.writes[0].buffer not in graph.outputs:
            sch.inline(b.name)


def inline_copies(sch: Schedule, graph: BlockGraph, staged: frozenset[str]) -> None:
    """Inline copies, and cheap elementwise blocks with one consumer."""
    for b in graph.blocks:
        if reductions(b) or b.writes[0].buffer in graph.outputs or b.name in staged:
            continue
        readers = graph.consumers(b.writes[0].buffer)
        if reads_staged(b, graph, staged) and any(map(reductions, readers)):
            continue
        cheap = len(readers) == 1 and not _calls(b) and not reductions(readers[0])
        if sch.choose(f"{b.name}.inline", is_copy(b) or cheap, lambda: (False, True)):
            sch.inline(b.name)


def _calls(block: Block) -> bool:
    return any(isinstance(e, Call) for e in subexpressions(value_of(block)))
