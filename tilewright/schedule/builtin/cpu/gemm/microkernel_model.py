"""An analytical model of the micro-kernel: which MR x NR register tile is fastest.

One step of K on a tile of `rows` by `vectors` vector registers executes rows x vectors FMAs, loads
`vectors` vectors of B and `rows` scalars of A. The tile must fit the register file, cover the
latency of the FMA units, and waste little where it does not divide the problem. Where M is
symbolic, rows are distributed evenly over tiles of at most MR, and the chosen tile is the one that
is good at any M.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, isqrt

from tilewright.schedule.builtin.cpu.gemm.microkernel import (
    Candidate,
    Microkernel,
    MicrokernelProblem,
)
from tilewright.schedule.builtin.cpu.gemm.panel_costs import PanelCosts
from tilewright.schedule.builtin.cpu.parallelize import load_imbalance
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.cpu import TYPICAL_ROWS, CpuCosts
from tilewright.target.cpu import CpuTarget

MAX_ROWS = 16
SPARE_REGISTERS = 2
MAX_VECTORS = 8
# The most rows of a tile where M is symbolic: each number of rows is a copy of the code.
MAX_UNKNOWN = 12


def choose_tile(
    sch: Schedule, name: str, problem: MicrokernelProblem, target: CpuTarget
) -> Microkernel:
    """The register tile of the block `name`: by default the one of least estimated time."""
    lanes = target.lanes(problem.bits)
    most = MAX_UNKNOWN if problem.dynamic_m else MAX_ROWS
    candidates = [
        (height, vectors)
        for vectors in range(1, MAX_VECTORS + 1)
        for height in range(1, min(most, problem.m) + 1)
        if _fits(problem, height, vectors, target)
        and _exact_enough(problem, vectors * lanes, lanes)
    ]
    known = _known(problem, lanes, target)
    cost = _regret(problem, candidates, lanes, target.costs) if problem.dynamic_m else known

    def least(found: list[Candidate]) -> Candidate:
        return min(found, key=lambda c: (cost(c), -c[0] * c[1]))

    height, vectors = least(candidates)
    taken = sch.choose(
        f"{name}.nr_vectors",
        vectors,
        lambda: sorted({v for _, v in candidates}),
        lambda width: min(cost(c) for c in candidates if c[1] == width),
    )
    if taken != vectors:
        candidates = [c for c in candidates if c[1] == taken]
        height, vectors = least(candidates)
    height = sch.choose(
        f"{name}.mr",
        height,
        lambda: [h for h, v in candidates if v == vectors],
        lambda rows: cost((rows, vectors)),
    )
    return Microkernel(height, vectors * lanes, lanes, problem.lane_fma, problem.accumulators)


def _known(
    problem: MicrokernelProblem, lanes: int, target: CpuTarget
) -> Callable[[Candidate], float]:
    """The time of a known M, with the load imbalance of parallel tiles."""
    panels = PanelCosts(problem, lanes, target)

    def cost(c: Candidate) -> float:
        if not problem.b_bytes:
            return _parallel_cycles(problem, c, lanes, target, panels.kept(c))
        if c[0] >= problem.m:
            return _parallel_cycles(problem, c, lanes, target, panels.in_place(c))
        return min(packing_cycles(problem, c, lanes, target))

    return cost


def packing_cycles(
    problem: MicrokernelProblem, c: Candidate, lanes: int, target: CpuTarget
) -> tuple[float, float]:
    """Cycles of a step with a computed B: each thread packs its panels, or all do so before."""
    panels = PanelCosts(problem, lanes, target)
    own = _parallel_cycles(problem, c, lanes, target, panels.packed(c), panels.count(c))
    return own, _parallel_cycles(problem, c, lanes, target, panels.packed_before(c))


def _parallel_cycles(
    problem: MicrokernelProblem,
    c: Candidate,
    lanes: int,
    target: CpuTarget,
    more: float,
    tasks: int = 0,
) -> float:
    """Cycles of a step in all tiles and of `more`, as parallel tasks: by default the tiles."""
    tiles = _tiles(problem, *c, lanes)
    cycles = _cost(problem, *c, lanes, target.costs) + more
    cycles += tiles * _lost(problem, c[0], lanes, target)
    tasks = problem.batch * (tasks or tiles)
    return cycles * (load_imbalance(tasks, target.cores) if tasks else 1.0)


def _lost(problem: MicrokernelProblem, height: int, lanes: int, target: CpuTarget) -> float:
    """Cycles of a step of a tile for scalars of A that were evicted from L1."""
    scalars = height / lanes if problem.lane_fma else height
    crowded = problem.reuses_b and has_set_conflicts(height, problem.row_bytes, target)
    return target.costs.evicted_line_cycles * scalars if crowded else 0.0


def has_set_conflicts(rows: int, stride: int, target: CpuTarget) -> bool:
    """Whether so many rows of A, with that stride, evict each other from L1.

    Addresses that differ by a multiple of a way's size map to the same set; one way of each set is
    left to the panel of B, which streams through all sets.
    """
    way = target.l1 // target.l1_ways
    sets = way // gcd(stride, way)
    return stride > 0 and -(-rows // sets) >= target.l1_ways


def _regret(
    problem: MicrokernelProblem, candidates: list[Candidate], lanes: int, costs: CpuCosts
) -> Callable[[Candidate], float]:
    """How much longer a tile takes than the best one, summed over typical numbers of rows."""
    times = {c: [_dealt(problem, n, c, lanes, costs) for n in TYPICAL_ROWS] for c in candidates}
    best = [min(row) for row in zip(*times.values(), strict=True)]
    return lambda c: sum(t / least for t, least in zip(times[c], best, strict=True))


def _dealt(
    problem: MicrokernelProblem, rows: int, c: Candidate, lanes: int, costs: CpuCosts
) -> float:
    """Cycles for `rows` rows distributed evenly; the first pass is limited by memory bandwidth."""
    height, vectors = c
    tiles = -(-rows // height)
    even = -(-rows // tiles)
    panels = -(-problem.n // (vectors * lanes))
    first, last = (
        panels * _tile_cost(problem, n, vectors, lanes, costs)
        for n in (even, rows - (tiles - 1) * even)
    )
    memory = panels * vectors * lanes * problem.bits / 8 / costs.memory_bytes_per_cycle
    again = max(0, tiles - 2) * first + (last if tiles > 1 else 0)
    reread = costs.panel_reread_cycles * panels * vectors * (tiles - 1)
    return max(first, memory) + again + reread


def largest_divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is not above `most`."""
    return next(d for d in range(min(number, most), 0, -1) if number % d == 0)


def divisors(number: int) -> list[int]:
    """All divisors of `number` in order."""
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` whose ratio to `wanted` is nearest to one."""
    return min(divisors(number), key=lambda d: max(d / wanted, wanted / d))


def _fits(problem: MicrokernelProblem, height: int, vectors: int, target: CpuTarget) -> bool:
    """Whether accumulators, loaded vectors and scalars fit the registers; LLVM spills early."""
    # Alternating accumulators use a vector each: LLVM loads those of one column in pairs.
    loaded = max(vectors, problem.accumulators) if problem.reuses_b else 2
    # Rows with a constant stride need no registers for their addresses.
    spare = 2 if problem.row_period else 1
    # FMAs by lane of 16-bit elements reach only half of the registers.
    single = SPARE_REGISTERS + (target.has_lane_fma and problem.bits == 16)
    scalars = height + spare if problem.lane_fma else single
    return height * vectors * problem.accumulators + loaded + scalars <= target.vector_registers


def _exact_enough(problem: MicrokernelProblem, columns: int, lanes: int) -> bool:
    """Whether N need not be padded, or can be: only a packed B is padded at no cost."""
    return problem.reuses_b or problem.n % lanes != 0 or problem.n % columns == 0


def _tiles(problem: MicrokernelProblem, height: int, vectors: int, lanes: int) -> int:
    return -(-problem.m // height) * -(-problem.n // (vectors * lanes))


def _cost(
    problem: MicrokernelProblem, height: int, vectors: int, lanes: int, costs: CpuCosts
) -> float:
    """Cycles for the whole problem per reduction step."""
    tiles = _tiles(problem, height, vectors, lanes) * problem.steps_left(height)
    return tiles * _tile_cost(problem, height, vectors, lanes, costs)


def _tile_cost(
    problem: MicrokernelProblem, height: int, vectors: int, lanes: int, costs: CpuCosts
) -> float:
    """Cycles for one tile per reduction step."""
    multiply = max(height * vectors, costs.fma_chains / problem.accumulators) / costs.fma_units
    scalars = height / lanes if problem.lane_fma else height
    loads = (scalars + vectors if problem.reuses_b else height * vectors + vectors) / 2
    jumps = problem.row_period % height != 0 if problem.row_period else False
    addresses = costs.address_cycles * height if jumps else 0
    # Loads overlap with the arithmetic; a small contention is left.
    return max(multiply, loads) + 0.15 * loads + 1.0 + addresses / max(1, problem.k)
