"""The micro-kernel of a GEMM, an MR x NR register tile, and the problem that it is chosen for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Microkernel:
    """A register tile of `mr` by `nr` elements, `lanes` of them in a vector.

    With `lane_fma`, A is loaded as vectors along K and multiplied lane by lane. Each element has so
    many `accumulators`, between which consecutive steps of K alternate.
    """

    mr: int
    nr: int
    lanes: int
    lane_fma: bool = False
    accumulators: int = 1

    @property
    def vectors(self) -> int:
        """The vectors of its columns."""
        return self.nr // self.lanes


@dataclass(frozen=True)
class MicrokernelProblem:
    """The GEMM that is tiled: its sizes `m`, `n` and `k`, and the bits of an accumulator.

    `reuses_b` says that each loaded vector of B serves all rows (a GEMM); otherwise every
    multiply-add loads its own (depthwise convolution, pooling). `row_period` is the number of rows
    after which the distance between rows of A jumps, 0 if it is constant. `dynamic_m` says that `m`
    is only the most rows that a tile may have. `batch` is how many such problems run in parallel,
    0 for sequential code. `row_bytes` is the distance between rows of A, 0 if it is not known.
    `b_bytes` is the size of a computed operand B that may be read in place, see `pack_b.py`;
    `constant_b` says that B is a constant, which is packed, and no window of an image.
    `has_k_blocks` says that K can be cut such that a block of a panel stays in L1 or L2.
    `work_left` has for tiles of 1, 2, ... rows the part of the steps that read more than padding;
    empty, it stands for all steps.
    """

    m: int
    n: int
    k: int
    bits: int
    reuses_b: bool
    row_period: int = 0
    lane_fma: bool = False
    accumulators: int = 1
    dynamic_m: bool = False
    batch: int = 0
    row_bytes: int = 0
    b_bytes: int = 0
    constant_b: bool = False
    has_k_blocks: bool = True
    work_left: tuple[float, ...] = ()

    @property
    def constant_b_bytes(self) -> int:
        """The size of a constant B, 0 of others."""
        return self.k * self.n * self.bits // 8 if self.constant_b else 0

    def steps_left(self, rows: int) -> float:
        """The part of the steps of K that a tile of so many rows executes."""
        return self.work_left[rows - 1] if self.work_left else 1.0


# Rows, and vectors of columns.
Candidate = tuple[int, int]
