"""The tile of rows and keys in which tensor cores of a GPU compute attention.

    softmax(q k') v   →   fused_attention(q, k, v) {tile=[64, 64]}

Attention without a tile stays two GEMMs with a softmax between them.
"""

from __future__ import annotations

from tilewright.arith.expr import as_int, product
from tilewright.core.dtypes import BF16, F16
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.tiled_loops import WIDTHS
from tilewright.target.calibration.sm_90a import ATTENTION
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The rows of a thread block, and the keys of an iteration: more keys where there are many
# iterations, and registers for them.
ROWS = (64, 32)
KEYS, MORE_KEYS, FEWER_KEYS = 64, 128, 32
# The widest heads whose accumulators leave registers for that many keys, by single warps and by
# wgmma; it has no instruction for fewer.
WARP_WIDTH, WGMMA_WIDTH = 128, 192
# Rows and keys of a warp-specialized kernel, which needs full tiles.
WARP_SPECIALIZED_TILE = (128, 128)
# The rows of wgmma, and of one warp: those of a tile with split-KV.
WARPGROUP_M = 64
WARP_ROWS = 16
# 16-bit elements of a vector.
VECTOR_ELEMENTS = VECTOR_BYTES // 2


def attention_tile(target: GpuTarget, p: Problem) -> tuple[int, ...]:
    """Rows and keys of a tile, and the split-KV factor if any; empty if there is no tile."""
    sizes = as_int(p.q[-1]), as_int(p.v[-1])
    known = [n for n in sizes if n is not None and n % VECTOR_ELEMENTS == 0 and n <= WIDTHS[-1]]
    rows = as_int(p.q[-2])
    if p.out.dtype not in (BF16, F16) or len(known) < len(sizes):
        return ()
    wide = max(known) > WARP_WIDTH
    few_keys = FEWER_KEYS if wide else KEYS
    if rows is None:
        return ROWS[0], few_keys
    keys = as_int(p.k[-2])
    batches = as_int(product(p.q[:-2])) or 1
    few = batches * -(-rows // ROWS[0]) < target.sm_count
    seen = _seen(p, rows, keys)
    if rows <= ROWS[0] and (seen is None or seen > ATTENTION.long_keys):
        height = next(n for n in (WARP_ROWS, *reversed(ROWS)) if rows <= n)
        parts = _parts(target, batches, seen, few_keys)
        if parts > 1:
            return height, few_keys, parts
    has_wgmma = any(shape.m == WARPGROUP_M for shape in target.mma_shapes)
    if has_wgmma and _prefers_warp_specialization(target, p, batches, rows):
        return WARP_SPECIALIZED_TILE
    # wgmma is worth more than a thread block for each SM.
    large = has_wgmma and min(known) >= ATTENTION.warp_specialized_size
    if rows <= ROWS[-1] or (few and not large):
        return ROWS[-1], few_keys
    if wide:
        return ROWS[0], KEYS if has_wgmma and max(known) <= WGMMA_WIDTH else FEWER_KEYS
    many = keys is not None and keys >= ATTENTION.many_keys
    narrow = max(known) <= KEYS and not any(p.ins[3:])
    return ROWS[0], MORE_KEYS if many and narrow else KEYS


def _prefers_warp_specialization(target: GpuTarget, p: Problem, batches: int, rows: int) -> bool:
    """Whether to specialize warps: tiles are full, and enough for half of the SMs.

    Heads of half the size are worth it where one iteration has all keys: it waits for memory.
    """
    tile_rows, tile_keys = WARP_SPECIALIZED_TILE
    size = ATTENTION.warp_specialized_size
    sizes = {as_int(p.q[-1]), as_int(p.v[-1])}
    keys = as_int(p.k[-2]) or 0
    long = sizes == {size} and p.attrs.window_left < 0
    short = sizes == {size // 2} and keys == tile_keys and not any(p.ins[3:])
    enough = 2 * batches * -(-rows // tile_rows) > target.sm_count
    full = keys > 0 and keys % tile_keys == 0
    return (long or short) and full and enough and rows > ROWS[0]


def _seen(p: Problem, rows: int, keys: int | None) -> int | None:
    """How many keys the last row sees, `None` if it is unknown."""
    attrs = p.attrs
    offset = as_int(attrs.offset)
    if attrs.window_right < 0 or attrs.bottom_right or offset is None:
        return keys
    last = rows + offset + attrs.window_right
    return last if keys is None else min(keys, last)


def _parts(target: GpuTarget, blocks: int, keys: int | None, tile: int) -> int:
    """The split-KV factor that gives all SMs work, for so many blocks of rows."""
    wanted = min(ATTENTION.split_max, ATTENTION.split_blocks * target.sm_count // blocks)
    if keys is None or wanted < 2:
        return min(wanted, ATTENTION.split_unknown)
    tiles = -(-keys // tile)
    each = max(ATTENTION.split_min_tiles, -(-tiles // wanted))
    return -(-tiles // each)
