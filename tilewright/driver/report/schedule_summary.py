"""What a kernel's schedule decided, in words, read from the scheduled loops themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from tilewright.arith.expr import as_int, product
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.driver.kernel.kernel import Kernel
from tilewright.ir.loop.nodes import Alloc, Block, For, Func, Layout, Stmt, Tile
from tilewright.ir.loop.thread_mapping import threads_of
from tilewright.ir.loop.walk import buffers, loops, statements, statements_in
from tilewright.schedule.builtin.rules import RULES


def schedule_data(kernel: Kernel) -> dict[str, Any]:
    """The rule that scheduled a kernel, why it was that one, and what it decided."""
    return {
        "rule": kernel.rule,
        "why": "; ".join(filter(None, (RULES[kernel.rule], kernel.scheduled.note))),
        "decisions": [
            *_loops(kernel.scheduled.func),
            *_tiles(kernel.scheduled.func),
            *_memory(kernel),
        ],
    }


def _loops(func: Func) -> Iterator[str]:
    """Loops that run on several threads, or as vectors."""
    kinds: dict[str, list[For]] = {}
    for loop in loops(func.body):
        kinds.setdefault(loop.kind, []).append(loop)
    for loop in kinds.get("parallel", ()):
        yield f"parallel over {loop.name} ({loop.extent})"
    for loop in kinds.get("grid", ()):
        yield f"{loop.extent} blocks of {threads_of(loop)} threads over {loop.name}"
    lanes = dict.fromkeys(str(loop.extent) for loop in kinds.get("vectorize", ()))
    if lanes:
        yield f"vectors of {' and '.join(lanes)}"


def _tiles(func: Func) -> Iterator[str]:
    """What is kept in registers, and instructions that compute a whole tile."""
    scopes = {name: buffer.scope for name, buffer in buffers(func).items()}
    tiles: dict[str, str] = {}
    for path, s in statements(func.body):
        if isinstance(s, Block) and scopes.get(s.writes[0].buffer) == "register":
            tiles.setdefault(s.writes[0].buffer, _register_tile(s, path))
        elif isinstance(s, Tile) and s.intrinsic:
            tiles.setdefault(s.intrinsic, f"instruction {s.intrinsic}")
    yield from filter(None, tiles.values())


def _register_tile(block: Block, path: Sequence[Stmt]) -> str:
    """`5 x 16 in registers`: how far the loops inside a block's tile go in each dimension."""
    inner = {
        s.name: as_int(s.extent) or 1
        for s in path
        if isinstance(s, For) and s.kind in ("unroll", "vectorize")
    }
    sides = [
        prod(inner.get(name, 1) for name in free_vars(it.binding))
        for it in block.iters
        if it.kind == "S"
    ]
    text = " x ".join(str(side) for side in sides if side > 1)
    return f"{text} in registers" if text else ""


def _memory(kernel: Kernel) -> Iterator[str]:
    """What is packed in advance, copied into the arena, or kept on the stack."""
    for name, layout in kernel.scheduled.func.layouts:
        yield f"weights {name} packed {_packing(layout)}"
    for buffer in kernel.workspaces:
        yield f"{buffer.name} in the arena ({simplify(product(buffer.shape))} elements)"
    own = [s.buffer for s in statements_in(kernel.finalized.body) if isinstance(s, Alloc)]
    local = [as_int(product(b.shape)) or 0 for b in own if b.scope in ("local", "volatile")]
    if any(local):
        yield f"{sum(local)} elements on the stack"


def _packing(layout: Layout) -> str:
    """`in blocks of 16 along axis 1`, or that only the order of the axes changed."""
    blocks = dict.fromkeys((axis, block) for axis, block, _ in layout.parts if block)
    if not blocks:
        order = ", ".join(str(axis) for axis, _, _ in layout.parts)
        return f"with its axes in the order {order}"
    return " and ".join(f"in blocks of {block} along axis {axis}" for axis, block in blocks)
