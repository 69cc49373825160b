"""Which attention a GPU computes as one operator: in 16 bits, or in f32 where blocks are many.

Tensor cores need heads of whole vectors, and threads by themselves enough blocks of rows: a few
blocks would leave SMs idle that two products and a softmax keep busy.
"""

from __future__ import annotations

from math import prod

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import BF16, F16, F32
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.simt_loops import MAX_COLUMNS, VECTOR, shared_bytes
from tilewright.ops.attention.tiled_loops import WIDTHS
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The rows of queries that a tile has, at most, where one warpgroup or fewer warps multiply.
TILE_ROWS = 64
# 16-bit elements of a vector.
VECTOR_ELEMENTS = VECTOR_BYTES // 2
# The rows of a tile in f32, and the fewest rows that are worth it. Where all SMs are busy it takes
# three quarters of the time of two products and a softmax, so that as many of them must have a
# block.
SIMT_ROWS, SIMT_LEAST = 128, 64
BUSY = 0.75
# The keys of a step in f32, and the blocks that an SM must have at a time.
SIMT_KEYS, RESIDENT = 64, 2


def is_fused(target: GpuTarget, p: Problem) -> bool:
    """Whether a GPU computes it as one operator."""
    return fits_tensor_cores(target, p) or fits_threads(target, p)


def fits_tensor_cores(target: GpuTarget, p: Problem) -> bool:
    """Whether there is a tile for tensor cores."""
    sizes = as_int(p.q[-1]), as_int(p.v[-1])
    whole = all(n and n % VECTOR_ELEMENTS == 0 and n <= WIDTHS[-1] for n in sizes)
    return whole and p.out.dtype in (BF16, F16) and target.warp_mma(str(p.out.dtype)) is not None


def fits_threads(target: GpuTarget, p: Problem) -> bool:
    """Whether there is a tile in f32, and blocks enough; products in TF32 are faster."""
    sizes = as_int(p.q[-1]), as_int(p.v[-1])
    whole = all(n and n % VECTOR == 0 and n <= MAX_COLUMNS for n in sizes)
    rows = as_int(p.q[-2])
    narrowed = target.warp_mma(str(F32)) or target.warpgroup_mma(str(F32))
    if not whole or p.out.dtype != F32 or narrowed or rows is None or as_int(p.k[-2]) is None:
        return False
    shared = shared_bytes(sizes[0] or 0, sizes[1] or 0, SIMT_ROWS, SIMT_KEYS)
    if target.resident_blocks(shared, SIMT_ROWS) < RESIDENT:
        return False
    blocks = prod(as_int(n) or 1 for n in p.q[:-2]) * -(-rows // SIMT_ROWS)
    return rows >= SIMT_LEAST and blocks >= BUSY * target.sm_count
