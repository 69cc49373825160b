"""The problem that a `fused_attention` node states: attributes, logical shapes, block sizes.

The scores of one block fit the nearest caches of any machine, and blocks are chosen so that the
last one wastes little work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.arith.expr import Expr, as_int, const
from tilewright.core.dtypes import BF16, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.accumulation import accumulator

# Rows that are computed together; a multiple of whole register tiles.
ROW_BLOCKS = (48, 40, 32, 24, 16, 8)
# The same where their number is symbolic; the last block is then computed in steps of rows.
SYMBOLIC_ROWS, ROW_STEP = 16, 8
# Keys that are computed together, a multiple of all vector lengths; the scores of a block, and the
# values of one panel, then stay in the nearest caches.
KEY_BLOCK = 512
# The same where their number is symbolic, and often small.
SYMBOLIC_KEYS = 64
# Where products are summed in f16: shares of one, few of which are large.
SHORT_KEYS = 192
# Under a band smaller blocks leave out more of what is hidden.
BAND_KEYS = 128
# Fewer rows than this do not pay for a copy of keys and values.
PACK_ROWS = 4
# Blocks that are not full are computed in steps of so many keys.
KEY_STEP = 16
# Rows that are read in place are multiplied in steps of so many elements, the widest vector.
VECTOR_STEP = 16
# The rows, columns and depth of what a matrix unit multiplies at once.
UNIT_TILE = 32


@node
class FusedAttentionAttrs(Attrs):
    """What is done to the products of queries and keys, and how operands are stored.

    - `scale`, `softcap` (0 is none), the bias, the mask and the band are applied to products; with
      `bias_last` the bias is added after the mask is applied.
    - Query `i` sees key `j` if `i + offset - window_left <= j <= i + offset + window_right`; a
      negative side is unbounded, and `bottom_right` gives the offset as in `mask_scores`.
    - `masked_value` replaces scores where a mask of bools is false; `fully_masked` says what a row
      becomes that sees no key, as in `softmax`.
    - Dimension `d` of the operand is dimension `q_perm[d]` as stored; dimension `d` of the result
      as stored is its dimension `y_perm[d]`; none given is the plain order.
    - With `f16_accumulate`, products of f16 are formed, and for one block of keys summed, in f16.
    - With `bf16_operands`, all that is multiplied is rounded to bf16, and blocks are whole tiles of
      a matrix unit.
    """

    scale: float = 1.0
    softcap: float = 0.0
    offset: Expr = const(0)
    window_left: int = -1
    window_right: int = -1
    bottom_right: bool = False
    masked_value: float = float("-inf")
    bias_last: bool = False
    fully_masked: str = "nan"
    q_perm: tuple[int, ...] = ()
    k_perm: tuple[int, ...] = ()
    v_perm: tuple[int, ...] = ()
    y_perm: tuple[int, ...] = ()
    f16_accumulate: bool = False
    bf16_operands: bool = False


def permuted(shape: Shape, perm: Sequence[int]) -> Shape:
    """A shape with its dimensions in another order; none given is the plain one."""
    return tuple(shape[d] for d in perm) if perm else shape


@dataclass(frozen=True)
class Problem:
    """A `fused_attention` node: its attributes and types; the logical shapes of its operands.

    A `tile` of rows and keys is what a block of threads has of the scores, see `tiled_loops.py`; a
    third number says in how many parts the keys are gone through, see `split_kv.py`.
    """

    attrs: FusedAttentionAttrs
    ins: tuple[TensorType | None, ...]
    out: TensorType
    tile: tuple[int, ...] = ()

    @property
    def q(self) -> Shape:
        """Batches, queries, size."""
        return self._shape(0, self.attrs.q_perm)

    @property
    def k(self) -> Shape:
        """Batches, keys, size."""
        return self._shape(1, self.attrs.k_perm)

    @property
    def v(self) -> Shape:
        """Batches, keys, value size."""
        return self._shape(2, self.attrs.v_perm)

    def _shape(self, number: int, perm: Sequence[int]) -> Shape:
        operand = self.ins[number]
        assert operand is not None
        return permuted(operand.shape, perm)

    @property
    def dtype(self) -> DType:
        """The element type to compute in."""
        return accumulator(self.out.dtype)

    @property
    def factor_dtype(self) -> DType:
        """The element type that is multiplied."""
        if self.attrs.bf16_operands:
            return BF16
        return self.out.dtype if self.attrs.f16_accumulate or self.tile else self.dtype

    @property
    def row_block(self) -> int:
        """Rows computed together: few blocks, and little beyond the last row."""
        if self.attrs.bf16_operands:
            return UNIT_TILE
        if self.tile:
            return self.tile[0]
        rows = as_int(self.q[-2])
        if rows is None:
            return SYMBOLIC_ROWS
        if rows < ROW_BLOCKS[-1]:
            return max(1, rows)
        return min(ROW_BLOCKS, key=lambda n: -(-rows // n) * (n + 1))

    @property
    def key_block(self) -> int:
        """Keys computed together: all of them where they are few."""
        if self.tile:
            return self.tile[1]
        keys = as_int(self.k[-2])
        if keys is None:
            return SYMBOLIC_KEYS
        most = SHORT_KEYS if self.attrs.f16_accumulate else KEY_BLOCK
        block = BAND_KEYS if self.attrs.window_right >= 0 and keys > BAND_KEYS else most
        whole = max(1, -(-keys // block))
        step = UNIT_TILE if self.attrs.bf16_operands else KEY_STEP
        return -(-keys // (whole * step)) * step

    @property
    def parts(self) -> int:
        """How many thread blocks the keys of a row are split over."""
        return self.tile[2] if len(self.tile) > 2 else 1

    @property
    def packs(self) -> bool:
        """Whether keys and values are copied, to be read front to back by many rows."""
        rows = as_int(self.q[-2])
        return not self.tile and (rows is None or rows >= PACK_ROWS)

    def stored(self, operand: str, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """An operand's index in the order in which it is stored."""
        perm = getattr(self.attrs, f"{operand}_perm")
        if not perm:
            return tuple(index)
        return tuple(index[perm.index(d)] for d in range(len(perm)))
