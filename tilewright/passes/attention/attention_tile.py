"""The tile of rows and keys in which tensor cores of a GPU compute attention.

    softmax(q k') v   →   fused_attention(q, k, v) {tile=[64, 64]}

Attention without a tile stays two GEMMs with a softmax between them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import as_int, product
from tilewright.core.dtypes import BF16, F16
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.tiled_loops import WIDTHS, padded
from tilewright.target.calibration.sm_90a import ATTENTION
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The rows of a thread block, and the keys of an iteration: more keys where there are many
# iterations, and registers for them.
ROWS = (64, 32)
KEYS, MORE_KEYS, FEWER_KEYS, FEWEST_KEYS = 64, 128, 32, 16
# The widest heads whose accumulators leave registers for `KEYS` by wgmma, which has no instruction
# for fewer.
WGMMA_WIDTH = 192
# Registers of a thread besides fragments and what its copies take.
WORKING_REGISTERS = 40
# Rows and keys of a warp-specialized kernel, which needs full tiles.
WARP_SPECIALIZED_TILE = (128, 128)
# The rows of one warp: those of a tile with split-KV.
WARP_ROWS = 16
# 16-bit elements of a vector, and its words.
VECTOR_ELEMENTS, VECTOR_WORDS = VECTOR_BYTES // 2, VECTOR_BYTES // 4


def attention_tile(target: GpuTarget, p: Problem) -> tuple[int, ...]:
    """Rows and keys of a tile, and the split-KV factor if any; empty if there is no tile."""
    sizes = as_int(p.q[-1]), as_int(p.v[-1])
    known = [n for n in sizes if n is not None and n % VECTOR_ELEMENTS == 0 and n <= WIDTHS[-1]]
    rows = as_int(p.q[-2])
    kind = str(p.out.dtype)
    if target.warp_mma(kind) is None or p.out.dtype not in (BF16, F16) or len(known) < len(sizes):
        return ()
    held = _Fragments(target, padded(known[0]), padded(known[1]), _has_rows(p))
    wide = held.keys(ROWS[0]) < KEYS
    if rows is None:
        return ROWS[0], held.keys(ROWS[0])
    keys = as_int(p.k[-2])
    batches = as_int(product(p.q[:-2])) or 1
    few = batches * -(-rows // ROWS[0]) < target.sm_count
    seen = _seen(p, rows, keys)
    if rows <= ROWS[0] and (seen is None or seen > ATTENTION.long_keys):
        height = held.height(rows)
        own = held.keys(height)
        parts = _parts(target, batches, seen, own)
        if parts > 1:
            return height, own, parts
    has_wgmma = target.warpgroup_mma(kind) is not None
    if has_wgmma and _prefers_warp_specialization(target, p, batches, rows):
        return WARP_SPECIALIZED_TILE
    # wgmma is worth more than a thread block for each SM.
    large = has_wgmma and min(known) >= ATTENTION.warp_specialized_size
    if rows <= ROWS[-1] or (few and not large):
        return ROWS[-1], held.keys(ROWS[-1])
    if wide:
        grouped = has_wgmma and max(known) <= WGMMA_WIDTH
        return ROWS[0], KEYS if grouped else held.keys(ROWS[0])
    many = keys is not None and keys >= ATTENTION.many_keys
    narrow = max(known) <= KEYS and not any(p.ins[3:])
    return ROWS[0], MORE_KEYS if many and narrow else KEYS


@dataclass(frozen=True)
class _Fragments:
    """What the threads of a tile hold where warps multiply, by the padded sizes of a head.

    A lane has queries in 16 bits, results and scores in f32 and weights in 16 bits, of a row's
    quarter of half of the rows. Of the vectors that it copies, addresses are offsets of one another
    if rows are as many vectors as lanes divide into; else each has registers of its own, and so has
    each element of keys that do not lie `in_rows`. Without `cp.async` their words pass through it.
    """

    target: GpuTarget
    deep: int
    wide: int
    in_rows: bool

    def keys(self, rows: int) -> int:
        """The keys of an iteration that leave a thread enough registers."""
        return next((n for n in (KEYS, FEWER_KEYS) if self._fits(rows, n)), FEWEST_KEYS)

    def height(self, rows: int) -> int:
        """The fewest rows of a tile whose threads can hold it."""
        heights = [n for n in (WARP_ROWS, *reversed(ROWS)) if rows <= n]
        return next((n for n in heights if self._fits(n, FEWEST_KEYS)), heights[-1])

    def _fits(self, rows: int, keys: int) -> bool:
        threads = rows // WARP_ROWS * self.target.warp_size
        vectors = keys * (self.deep + self.wide) // (VECTOR_ELEMENTS * threads)
        sizes = (self.deep // VECTOR_ELEMENTS, self.wide // VECTOR_ELEMENTS)
        uneven = any(self.target.warp_size % n for n in sizes)
        copies = vectors if uneven else vectors // 4
        copies += 0 if self.in_rows else keys * self.deep // threads
        copies += 0 if self.target.has("cp.async") else vectors * VECTOR_WORDS
        fragments = self.deep // 4 + self.wide // 2 + keys // 2 + keys // 4
        return fragments + copies + WORKING_REGISTERS <= self.target.registers_per_thread


def _has_rows(p: Problem) -> bool:
    """Whether each key lies in memory as a row."""
    perm = p.attrs.k_perm
    return not perm or perm[-1] == len(perm) - 1


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
