"""Whether tensor cores of a GPU can compute attention: heads of whole vectors, in 16 bits."""

from __future__ import annotations

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import BF16, F16
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.tiled_loops import WIDTHS
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The rows of queries that a tile has, at most, where one warpgroup or fewer warps multiply.
TILE_ROWS = 64
# 16-bit elements of a vector.
VECTOR_ELEMENTS = VECTOR_BYTES // 2


def fits_tensor_cores(target: GpuTarget, p: Problem) -> bool:
    """Whether there is a tile for it."""
    sizes = as_int(p.q[-1]), as_int(p.v[-1])
    whole = all(n and n % VECTOR_ELEMENTS == 0 and n <= WIDTHS[-1] for n in sizes)
    return whole and p.out.dtype in (BF16, F16) and target.warp_mma(str(p.out.dtype)) is not None
