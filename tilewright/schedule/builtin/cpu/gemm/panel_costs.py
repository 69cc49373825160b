"""What reading the operand B costs: panels that are packed, read in place, or too large for L2."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from tilewright.schedule.builtin.cpu.gemm.microkernel import Candidate, MicrokernelProblem
from tilewright.target.cpu import LINE_BYTES, PAGE_BYTES, UNASKED_STACK_BYTES, CpuTarget

# Shorter blocks of K spend more on loading and storing the accumulators than they save.
MIN_KC = 384


@dataclass(frozen=True)
class PanelCosts:
    """Cycles of one step of K for the rows of B, in panels of a tile's columns.

    A tile is so many rows and so many vectors of columns.
    """

    problem: MicrokernelProblem
    lanes: int
    target: CpuTarget

    def count(self, c: Candidate) -> int:
        """The number of panels."""
        return -(-self.problem.n // (c[1] * self.lanes))

    def in_place(self, c: Candidate) -> float:
        """A computed B, read where it is by one tile of rows."""
        fill, _ = self._fill()
        # The loads of A that wait for the same FMAs leave room for few of B.
        in_flight = self.target.costs.loads_in_flight * c[1] / (c[0] + c[1])
        line = max(fill, self.target.costs.l3_latency / in_flight)
        return self._streams(c) + self._lines() * line

    def packed(self, c: Candidate) -> float:
        """A computed B of which each thread packs the panels that it uses.

        A panel on the stack of a thread is written to where the one before was, in its L2.
        """
        if self._bytes(c) > UNASKED_STACK_BYTES:
            return inf
        near, _ = self.target.costs.line_fill[0]
        fill, _ = self._fill()
        return self._streams(c) + self._lines() * (fill + 2 * near) + self._from_l2(c)

    def packed_before(self, c: Candidate) -> float:
        """A computed B that all threads pack before they multiply."""
        fill, _ = self._fill()
        costs, far = self.target.costs, self.problem.b_bytes > self.target.l2
        moves = costs.far_packed_line_moves if far else costs.packed_line_moves
        return moves * self._lines() * fill + self._from_l2(c)

    def from_l3(self, c: Candidate) -> float:
        """A constant B whose panels leave no room in L2 for rows of A, and cannot be cut."""
        if self.problem.has_k_blocks or self._bytes(c) <= self.target.l2 // 4:
            return 0.0
        _, (line, _), _ = self.target.costs.line_fill
        return self._reread(c, line)

    def kept(self, c: Candidate) -> float:
        """A B that is not packed now: from the nearest cache that holds a block of its panels.

        Windows share most of what they read. Blocks for alternating accumulators have a length of
        their own, and no measured cost.
        """
        if not self.problem.constant_b or self.problem.accumulators > 1:
            return self.from_l3(c)
        near, _ = self.target.costs.line_fill[0]
        block = self._bytes(c) * min(self.problem.k, MIN_KC) // max(1, self.problem.k)
        from_l2 = self._reread(c, near) if block > self.target.l1 // 2 else 0.0
        return max(from_l2, self.from_l3(c)) + self._first(c)

    def _first(self, c: Candidate) -> float:
        """What arithmetic does not hide where the first tile of a panel reads it beyond L2."""
        size = self.problem.constant_b_bytes
        if size <= self.target.l2:
            return 0.0
        line, _ = self.target.costs.line_fill_beyond_l2(size <= self.target.l3 // 2)
        return self.count(c) * self._waits(c, line)

    def _from_l2(self, c: Candidate) -> float:
        """Panels that leave no room in L1 for rows of A."""
        near, _ = self.target.costs.line_fill[0]
        return self._reread(c, near) if self._bytes(c) > self.target.l1 // 2 else 0.0

    def _reread(self, c: Candidate, line: float) -> float:
        """What arithmetic does not hide where every tile waits so many cycles for a line."""
        rows, _ = c
        if rows >= self.problem.m or not self.problem.reuses_b:
            return 0.0
        tiles = -(-self.problem.m // rows) * self.count(c)
        return tiles * self._waits(c, line)

    def _waits(self, c: Candidate, line: float) -> float:
        """What the FMAs of a tile do not hide of reading a row of its panel."""
        rows, vectors = c
        arithmetic = rows * vectors / self.target.costs.fma_units
        return max(0.0, vectors * line - arithmetic)

    def _streams(self, c: Candidate) -> float:
        """Waiting for the rows of panels, which the prefetcher follows within a page."""
        _, wait = self._fill()
        share = min(1.0, self._lines() * LINE_BYTES / PAGE_BYTES)
        return self.count(c) * share * wait / self.target.costs.streams_in_flight

    def _fill(self) -> tuple[float, float]:
        """Cycles of a cache line, and of a new stream."""
        near = self.problem.b_bytes <= self.target.l3 // 2
        return self.target.costs.line_fill_beyond_l2(near)

    def _lines(self) -> float:
        """The cache lines of a row of B."""
        return self.problem.n * self.problem.bits / 8 / LINE_BYTES

    def _bytes(self, c: Candidate) -> int:
        """The size of a panel."""
        return self.problem.k * c[1] * self.lanes * self.problem.bits // 8
