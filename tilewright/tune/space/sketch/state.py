"""A sketch being derived: the schedule so far, and the blocks that are not laid out yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.core.errors import ScheduleError
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    is_simple,
    reads_of,
    reductions,
    spatial,
    uses,
    value_of,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.target import Target
from tilewright.tune.space.sketch.tiling_structure import TilingStructure


@dataclass
class Sketch:
    """What rules work on.

    `pending` are blocks to be placed and put in vectors in the end, and how: `plain`, with partial
    results (`rfactor`), or where they are (`inside` loops that they share); on a GPU, by which rule
    they are laid out. A tile that takes such a block over takes it off the list.
    """

    sch: Schedule
    constants: frozenset[str]
    target: Target
    structure: TilingStructure
    pending: dict[str, str] = field(default_factory=dict)

    @property
    def graph(self) -> BlockGraph:
        """The blocks and buffers as they are now."""
        return block_graph(self.sch.func)

    def block(self, name: str) -> Block:
        """A block as it is now."""
        return self.graph.block(name)

    def has(self, name: str) -> bool:
        """Whether a block is still there."""
        return any(b.name == name for b in self.graph.blocks)

    def lanes(self, block: Block) -> int:
        """Elements of what a block computes in a vector."""
        return self.target.lanes(value_of(block).dtype.bits)

    def is_output(self, block: Block) -> bool:
        """Whether others see what a block writes."""
        return any(r.buffer in self.graph.outputs for r in block.writes)

    def readers(self, block: Block) -> tuple[Block, ...]:
        """The blocks that read what a block writes, but for itself."""
        found = self.graph.consumers(block.writes[0].buffer)
        return tuple(b for b in found if b.name != block.name)

    def require(self, holds: bool, name: str) -> None:
        """Give a sketch up whose decisions ask for more than the target has."""
        if not holds:
            raise ScheduleError("sketch.limits", f"{name} asks for more than the target has")

    def loops(self, name: str) -> list[str]:
        """The loops around a block, outermost first."""
        return [loop.name for loop in loops_above(self.sch.func, name)]


def reuses(block: Block) -> bool:
    """Whether elements are read for several results: a reduction, not all of whose reads move."""
    if not (is_simple(block) and reductions(block) and spatial(block)):
        return False
    reads = reads_of(block)
    return any(not uses(r, it.name) for r in reads for it in spatial(block)) or _slides(block)


def _slides(block: Block) -> bool:
    """Whether windows overlap: an index has an axis of the result and one of the sum."""
    rows, sums = ({it.name for it in group} for group in (spatial(block), reductions(block)))
    return any(
        any(n in str(i) for n in rows) and any(n in str(i) for n in sums)
        for r in reads_of(block)
        for i in r.indices
    )
