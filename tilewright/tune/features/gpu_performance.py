"""What a launch does and how long it takes at least, by the target's data: a GPU roofline.

A launch is a nest of a scheduled function. Its blocks are distributed over all SMs, of which some
may have fewer; how many run at once on each follows from their shared memory, registers and
threads. It computes at the rates of FMA units or tensor cores, moves what each block reads through
the L2 cache, and what is different from memory. The longest of these is its time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir.loop.annotations import MIN_BLOCKS_PER_SM, PIPELINE_STAGES
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, Seq, Stmt
from tilewright.ir.loop.thread_mapping import FRAGMENT, WARP_SIZE
from tilewright.ir.loop.walk import loops
from tilewright.target.gpu import GpuTarget
from tilewright.tune.features.accesses import Statement, StatementAccess, statements_of

# The loops whose iterations are threads of a block.
_THREADS = ("thread", "allreduce")
# An L2 cache delivers about so many times what memory does.
L2_SPEEDUP = 2.0
# Seconds from one launch to the next.
LAUNCH = 1e-6
# Registers of a thread beside those of its buffers.
WORKING_REGISTERS = 32
# Warps of an SM that keep its units busy.
BUSY_WARPS = 8
_SECTOR, _REGISTER = 32, 4
_MAX_BLOCKS = 32


@dataclass(frozen=True)
class LaunchWork:
    """One launch: its shape, what a block takes, and what all blocks do."""

    blocks: float
    threads: float
    shared: float
    registers: float
    stages: int
    least_blocks: int
    fma_flops: float
    mma_flops: float
    calls: float
    memory_bytes: float
    l2_bytes: float
    wasted: float
    vector: float
    copies: float
    steps: float

    def resident(self, target: GpuTarget) -> int:
        """Blocks that an SM runs at once."""
        registers = self.registers * self.threads
        fitting = (
            target.shared_per_sm / max(1.0, self.shared),
            target.registers_per_sm / max(1.0, registers),
            target.warps_per_sm * target.warp_size / max(1.0, self.threads),
            _MAX_BLOCKS,
        )
        return max(1, int(min(fitting)))

    def waves(self, target: GpuTarget) -> float:
        """How often all SMs are filled; the last time perhaps in part."""
        return self.blocks / (target.sm_count * self.resident(target))

    def busy(self, target: GpuTarget) -> float:
        """The part of the SMs, and of their units, that has work on average."""
        most = math.ceil(self.blocks / target.sm_count)  # blocks of the SM that has most
        filled = self.blocks / max(1, most * target.sm_count)
        warps = min(most, self.resident(target)) * self.threads / target.warp_size
        return filled * min(1.0, warps / BUSY_WARPS)

    def parts(self, target: GpuTarget) -> tuple[float, float, float]:
        """Seconds of arithmetic, of L2 traffic, and of memory traffic."""
        busy = max(1e-6, self.busy(target))
        arithmetic = self.fma_flops / target.f32_rate + self.mma_flops / target.mma_rate
        l2 = self.l2_bytes * self.wasted / (L2_SPEEDUP * target.memory_rate)
        return arithmetic / busy, l2 / min(1.0, 2 * busy), self.memory_bytes / target.memory_rate

    def seconds(self, target: GpuTarget) -> float:
        """How long it takes at least."""
        return max(self.parts(target)) + LAUNCH


def launches_of(func: Func, known: dict[str, Buffer]) -> list[LaunchWork]:
    """The launches of a scheduled function."""
    found = []
    for nest in _nests(func.body):
        statements = statements_of(Func(func.name, func.params, func.outputs, nest), known)
        if statements:
            found.append(_work(nest, statements))
    return found


def _nests(stmt: Stmt) -> Sequence[Stmt]:
    while isinstance(stmt, Alloc):
        stmt = stmt.body
    return stmt.stmts if isinstance(stmt, Seq) else (stmt,)


def _work(nest: Stmt, statements: Sequence[Statement]) -> LaunchWork:
    threads = max(_threads(s) for s in statements)
    around = list(loops(nest))
    memory, l2, wasted = _traffic(statements)
    mma = sum(s.flops * s.runs for s in statements if _uses_fragments(s))
    calls = sum((s.operations["math"] + s.operations["root"]) * s.runs for s in statements)
    fma = sum(s.flops * s.runs for s in statements if not _uses_fragments(s))
    heaviest = max(statements, key=lambda s: s.runs)
    return LaunchWork(
        blocks=float(max(_extent(s, ("grid",)) for s in statements)),
        threads=threads,
        shared=_shared(statements) * max((PIPELINE_STAGES.of(f) for f in around), default=1),
        registers=_registers(statements, threads),
        stages=max((PIPELINE_STAGES.of(f) for f in around), default=0),
        least_blocks=max((MIN_BLOCKS_PER_SM.of(f) for f in around), default=0),
        fma_flops=float(fma),
        mma_flops=float(mma),
        calls=float(calls),
        memory_bytes=memory,
        l2_bytes=l2,
        wasted=wasted,
        vector=float(max(_extent(s, ("vectorize",)) for s in statements)),
        copies=float(max(_extent(s, ("unroll",)) for s in statements)),
        steps=float(_extent(heaviest, ("serial",))),
    )


def _extent(s: Statement, kinds: Sequence[str]) -> int:
    return math.prod(e for e, kind in zip(s.extents, s.kinds, strict=True) if kind in kinds)


def _threads(s: Statement) -> float:
    warps = _extent(s, ("warp",))
    whole = WARP_SIZE if "warp" in s.kinds or _uses_fragments(s) else 1
    return float(_extent(s, _THREADS) * warps * whole)


def _uses_fragments(s: Statement) -> bool:
    return s.intrinsic and any(a.scope == FRAGMENT and a.accumulates for a in s.accesses)


def _inside(s: Statement, kinds: Sequence[str]) -> int:
    """The level behind the last loop of some kinds."""
    return max((n + 1 for n, kind in enumerate(s.kinds) if kind in kinds), default=0)


def _shared(statements: Sequence[Statement]) -> float:
    """Bytes of shared memory of a block, without further stages."""
    sizes: dict[str, float] = {}
    for s in statements:
        for a in s.accesses:
            if a.scope == "shared":
                held = a.elements[_inside(s, ("grid",))] * a.item
                sizes[a.buffer] = max(sizes.get(a.buffer, 0.0), held)
    return sum(sizes.values())


def _registers(statements: Sequence[Statement], threads: float) -> float:
    """Registers of a thread: its part of a block's buffers that are registers."""
    words: dict[str, float] = {}
    for s in statements:
        for a in s.accesses:
            if a.scope in ("register", FRAGMENT):
                held = a.elements[_inside(s, ("grid",))] * a.item / _REGISTER
                words[a.buffer] = max(words.get(a.buffer, 0.0), held / threads)
    return WORKING_REGISTERS + sum(words.values())


def _traffic(statements: Sequence[Statement]) -> tuple[float, float, float]:
    """Bytes from memory and through the L2 cache, and by how much sectors exceed what is used."""
    memory: dict[str, float] = {}
    through, sectors = 0.0, 0.0
    for s in statements:
        for a in s.accesses:
            if a.scope != "global":
                continue
            level = _inside(s, ("grid",))
            moved = float(a.elements[level] * a.item * _extent(s, ("grid",)))
            memory[a.buffer] = max(memory.get(a.buffer, 0.0), float(a.elements[0] * a.item))
            through += moved
            sectors += moved * _waste(s, a)
    return sum(memory.values()), through, sectors / max(1.0, through)


def _waste(s: Statement, a: StatementAccess) -> float:
    """Bytes of the sectors that neighbouring threads read, for each byte that they use."""
    threads = [n for n, kind in enumerate(s.kinds) if kind in _THREADS]
    if not threads or not a.steps:
        return 1.0
    own = max(1, _extent(s, ("vectorize",))) * a.item if a.steps[-1] == 1 else a.item
    apart = abs(a.steps[threads[-1]]) * a.item
    return 1.0 if apart <= own else min(apart, _SECTOR) / min(own, _SECTOR)
