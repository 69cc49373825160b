"""`tensorize(block, intrinsic)`: replace the body of a block by a hardware intrinsic.

    block "C.tile" [...] reads A[...], B[...] writes C[...] {      block "C.tile" [...] ... {
      for i, j, k in serial(8, 12, 4) {                              tile mma C[vi.o * 8 : 8, ...]
        block "C" ... { C[vi, vj] += A[vi, vk] * B[vk, vj] }   →       <- A[...], B[...]
      }                                                                using "fma_tile"
    }                                                              }

`blockize` makes such blocks. On a target without the instruction the tile's expansion runs.

An instruction that fills with zeros what lies outside of its source takes the place of loads that
are masked by the bounds of a matrix, too: as a tile `copy.padded`.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, const
from tilewright.arith.walk import substitute
from tilewright.ir.loop.nodes import Block, Buffer, Func, Region, Tile
from tilewright.ir.loop.walk import buffers
from tilewright.ir.types import Shape
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.intrin.intrinsic import Intrinsic
from tilewright.schedule.intrin.match import Match, match_intrinsic, pattern_of
from tilewright.schedule.intrin.padded import drop_bounds
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.schedule.tree import block_spine, replaced, target_block


def tensorize(func: Func, block: str, intrinsic: str) -> Func:
    """Let an intrinsic compute the body of a block."""
    spine = block_spine(func, block)
    old = target_block(spine)
    if intrinsic not in INTRINSICS:
        message = f"no intrinsic named {intrinsic!r}"
        known = ", ".join(INTRINSICS)
        raise refuse(func, "tensorize.intrinsic", message, old, help=f"there is {known}")
    row = INTRINSICS[intrinsic]
    of_several = row.tma_box is not None and len(row.tma_box) > 2
    plain = drop_bounds(old, buffers(func), of_several) if row.zero_fills else old
    found = match_intrinsic(intrinsic, plain)
    if found is None:
        message = f'block "{block}" does not compute what {intrinsic} does'
        wanted = " ".join(row.pattern.split())
        raise refuse(func, "tensorize.match", message, old, help=f"it computes {wanted}")
    regions = [_operand(func, old, found, p, intrinsic) for p in pattern_of(intrinsic).params]
    op = row.tile if plain.body == old.body else f"{row.tile}.padded"
    tile = Tile(op, regions[-1], tuple(regions[:-1]), intrinsic)
    return replaced(func, spine, replace(old, body=tile))


def _operand(func: Func, block: Block, found: Match, param: Buffer, intrinsic: str) -> Region:
    """The region of an operand; its memory layout must be what the intrinsic reads."""
    actual = dict(found.operands)[param.name]
    sizes: dict[str, Expr] = {name: const(size) for name, size in found.sizes}
    wanted = tuple(substitute(d, sizes) for d in param.shape)
    # A block without init also reads what it adds to: the same region twice.
    regions = dict.fromkeys(r for r in (*block.writes, *block.reads) if r.buffer == actual)
    shape = buffers(func)[actual].shape
    for region in regions:
        if _lies_well(region, shape, wanted, INTRINSICS[intrinsic]):
            return region
    sizes_text = ", ".join(map(str, wanted))
    message = f"{actual!r} does not have {sizes_text} as its last dimensions"
    help = "transform_layout makes it so"
    raise refuse(func, "tensorize.layout", message, block, help=help)


def _lies_well(region: Region, shape: Shape, wanted: Shape, row: Intrinsic) -> bool:
    """Whether a region of a buffer of `shape` has the layout of the instruction's operand."""
    if row.strided:
        return _rows_apart(region, shape, wanted)
    tail = tuple(extent for _, extent in region.ranges[-len(wanted) :])
    rest = region.ranges[: -len(wanted)]
    dense = not row.llvm or shape[len(rest) + 1 :] == wanted[1:]
    return tail == wanted and dense and all(extent is const(1) for _, extent in rest)


def _rows_apart(region: Region, shape: Shape, wanted: Shape) -> bool:
    """Whether each row of the operand is contiguous; the row stride is arbitrary."""
    extents = [extent for _, extent in region.ranges]
    long = tuple(n for n in extents if n is not const(1))
    within = len(wanted) - 1
    whole = tuple(extents[len(extents) - within :]) == wanted[1:]
    return long == wanted and whole and shape[len(shape) - within + 1 :] == wanted[2:]
