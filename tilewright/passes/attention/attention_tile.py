"""The tile of rows and keys in which tensor cores of a GPU compute attention.

    softmax(q k') v   →   fused_attention(q, k, v) {tile=[64, 64]}

What has no tile stays two GEMMs with a softmax between them.
"""

from __future__ import annotations

from tilewright.arith.expr import as_int, product
from tilewright.core.dtypes import BF16, F16
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.tiled_loops import WIDTHS
from tilewright.target.gpu import GpuTarget

# Rows that a block of threads may have, and the keys of a step: more where there are many steps,
# and registers for them.
ROWS = (64, 32)
KEYS, MORE_KEYS = 64, 128
MANY_KEYS = 1024
# Both with warp specialization, which needs full tiles: heads of this size, for which products take
# longer than exponentials, or of half of it where there is one step, which waits for memory.
APART, APART_SIZE = (128, 128), 128
# The rows that instructions of four warps multiply.
GROUPED = 64
# The rows of one warp: of a tile where keys are dealt out to several blocks of threads, which are
# to be so many a multiprocessor, with no fewer steps each, and no more of them for a row.
WARP_ROWS = 16
BLOCKS, LEAST_STEPS, MOST_PARTS = 2, 2, 64
# The same where nobody knows how many keys there will be.
SOME_PARTS = 16
# More keys than this are worth that.
LONG_KEYS = 512
# Elements that are copied at once.
PIECE = 8


def attention_tile(target: GpuTarget, p: Problem) -> tuple[int, ...]:
    """The rows and keys that a block of threads computes together; empty if it cannot."""
    sizes = as_int(p.q[-1]), as_int(p.v[-1])
    known = [n for n in sizes if n is not None and n % PIECE == 0 and n <= WIDTHS[-1]]
    rows = as_int(p.q[-2])
    if p.out.dtype not in (BF16, F16) or len(known) < len(sizes):
        return ()
    if rows is None:
        return ROWS[0], KEYS
    keys = as_int(p.k[-2])
    batches = as_int(product(p.q[:-2])) or 1
    few = batches * -(-rows // ROWS[0]) < target.sm_count
    seen = _seen(p, rows, keys)
    if rows <= ROWS[0] and (seen is None or seen > LONG_KEYS):
        height = next(n for n in (WARP_ROWS, *reversed(ROWS)) if rows <= n)
        parts = _parts(target, batches, seen)
        if parts > 1:
            return height, KEYS, parts
    grouped = any(shape.m == GROUPED for shape in target.mma_shapes)
    if grouped and _is_apart(target, p, batches, rows):
        return APART
    # Instructions of four warps are worth more than a block for each multiprocessor.
    large = grouped and min(known) == APART_SIZE
    if rows <= ROWS[-1] or (few and not large):
        return ROWS[-1], KEYS
    many = keys is not None and keys >= MANY_KEYS
    narrow = max(known) <= KEYS and not any(p.ins[3:])
    return ROWS[0], MORE_KEYS if many and narrow else KEYS


def _is_apart(target: GpuTarget, p: Problem, batches: int, rows: int) -> bool:
    """Whether to specialize warps: tiles are full, and enough for half of the SMs."""
    sizes = {as_int(p.q[-1]), as_int(p.v[-1])}
    keys = as_int(p.k[-2]) or 0
    long = sizes == {APART_SIZE} and p.attrs.left < 0
    short = sizes == {APART_SIZE // 2} and keys == APART[1] and not any(p.ins[3:])
    enough = 2 * batches * -(-rows // APART[0]) > target.sm_count
    whole = keys > 0 and keys % APART[1] == 0
    return (long or short) and whole and enough and rows > ROWS[0]


def _seen(p: Problem, rows: int, keys: int | None) -> int | None:
    """How many keys the last row sees, `None` if nobody knows."""
    attrs = p.attrs
    offset = as_int(attrs.offset)
    if attrs.right < 0 or attrs.from_end or offset is None:
        return keys
    last = rows + offset + attrs.right
    return last if keys is None else min(keys, last)


def _parts(target: GpuTarget, blocks: int, keys: int | None) -> int:
    """How many parts the keys of so many blocks of rows are cut into to give all work."""
    wanted = min(MOST_PARTS, BLOCKS * target.sm_count // blocks)
    if keys is None or wanted < 2:
        return min(wanted, SOME_PARTS)
    steps = -(-keys // KEYS)
    each = max(LEAST_STEPS, -(-steps // wanted))
    return -(-steps // each)
