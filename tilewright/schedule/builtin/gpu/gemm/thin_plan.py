"""How threads share a product of few rows, chosen by an estimate of its time.

A thread waits for memory once a step, an SM gets its share of what memory gives, its L1 hands out
so many bytes a cycle, and each of its schedulers issues an instruction a cycle: the longest of
these is how long the product takes. Loads of short runs of memory take whole sectors all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from tilewright.arith.expr import as_int
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, Buffer
from tilewright.ir.loop.thread_mapping import WARP_SIZE
from tilewright.schedule.analysis.blocks import flat_stride
from tilewright.schedule.analysis.gemm import is_k_major, match_gemm, operand_load
from tilewright.target.calibration.sm_90a import THIN
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The rows of A: one row is a reduction, and more of them fill tiles; those from which on tensor
# cores are as fast where B's rows are aligned. The fewest columns, and the shortest K.
MIN_ROWS, MAX_ROWS, TENSOR_CORE_ROWS, MIN_COLUMNS, MIN_K = 2, 8, 4, 16, 64
# The threads of a block, the columns of one whose lanes go along K, and the vectors of a step.
THREADS, MAX_COLUMNS, VECTORS = (64, 128, 256, 512), 8, (1, 2, 4, 8, 16)
# Into how many parts K is split, and the fewest terms of one.
PARTS, MIN_PART = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32), 128
# Registers of a thread besides sums and operands, and the most that it should have.
WORKING_REGISTERS, MAX_REGISTERS = 40, 168
# The greatest distance of elements that are picked from vectors, which registers cannot be.
MAX_DENSE = 4
# The bytes of a line of the L1 and of its sectors, and those for the sums of a block's groups.
LINE, SECTOR, MAX_SHARED = 128, 32, 16384


@node
class ThinPlan:
    """How threads share a product: `columns` of a thread, and `width` neighbours of a vector.

    `along_k`: lanes go along K, as B does; elsewhere along columns, and groups along K. A step has
    `vectors` of each column, or as many terms. Where K is split, a `part` has so many terms.
    """

    along_k: bool
    columns: int
    width: int
    lanes: int
    groups: int
    vectors: int
    part: int | None = None

    @property
    def step(self) -> int:
        """The terms of a step of a block."""
        return self.vectors * (self.lanes * self.width if self.along_k else self.groups)

    @property
    def across(self) -> int:
        """The columns of a block."""
        return self.groups * self.columns if self.along_k else self.lanes * self.width

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.lanes * self.groups


@node
class ThinProduct:
    """A product of `m` rows with a K-major or N-major B; elements have so many bytes."""

    m: int
    n: int
    k: int
    bytes: int
    k_major: bool


def thin_product(block: Block, buffers: dict[str, Buffer]) -> ThinProduct | None:
    """A block as a product of few rows, `None` if it is none."""
    gemm = match_gemm(block)
    if gemm is None or gemm.batch or any(len(axes) > 1 for axes in (gemm.m, gemm.n, gemm.k)):
        return None
    m, n, k = (as_int(axes[0].extent) for axes in (gemm.m, gemm.n, gemm.k))
    a, b = (operand_load(x) for x in (gemm.a, gemm.b))
    plain = a.mask is None and b.mask is None and a.dtype == b.dtype and a.dtype.is_float
    if not (plain and is_k_major(block, buffers, "a")) or a.buffer == b.buffer:
        return None
    if not (m and n and k):
        return None
    along = [flat_stride(b, buffers[b.buffer], x[0].name) == 1 for x in (gemm.k, gemm.n)]
    if not MIN_ROWS <= m <= MAX_ROWS or n < MIN_COLUMNS or not any(along):
        return None
    return ThinProduct(m, n, k, b.dtype.bytes, along[0])


def plan_thin(product: ThinProduct, target: GpuTarget) -> ThinPlan | None:
    """The fastest plan, `None` for what tensor cores, or a thread for each sum, do as fast."""
    if product.k < MIN_K or _fills_tensor_cores(product):
        return None
    return min(plans(product), key=lambda p: thin_us(p, product, target), default=None)


def _fills_tensor_cores(product: ThinProduct) -> bool:
    """Whether tensor cores have operands of whole vectors, and rows enough."""
    row = (product.k if product.k_major else product.n) * product.bytes
    return product.bytes < 4 and product.m >= TENSOR_CORE_ROWS and row % VECTOR_BYTES == 0


def plans(product: ThinProduct) -> Iterator[ThinPlan]:
    """All plans for a product."""
    for part in _parts(product):
        for columns, width, lanes, groups in _shares(product):
            for vectors in VECTORS:
                plan = ThinPlan(product.k_major, columns, width, lanes, groups, vectors, part)
                if _fits(plan, product):
                    yield plan


def _parts(product: ThinProduct) -> Iterator[int | None]:
    """The terms of a part of K: whole vectors."""
    most = VECTOR_BYTES // product.bytes
    for count in PARTS:
        part = -(-product.k // (count * most)) * most
        if count == 1 or MIN_PART <= part < product.k:
            yield None if count == 1 else part


def _shares(product: ThinProduct) -> Iterator[tuple[int, int, int, int]]:
    """The columns, vectors, lanes and groups of a block."""
    most = VECTOR_BYTES // product.bytes
    columns = [c for c in range(1, MAX_COLUMNS + 1) if product.n % c == 0]
    widest = gcd(product.k if product.k_major else product.n, most)
    for threads in THREADS:
        lanes = threads
        while lanes >= 4:
            groups = threads // lanes
            if product.k_major and (groups == 1 or lanes <= WARP_SIZE):
                yield from ((c, widest, lanes, groups) for c in columns)
            elif not product.k_major and groups > 1:
                yield from ((1, 1 << w, lanes, groups) for w in range(widest.bit_length()))
            lanes //= 2


def _fits(plan: ThinPlan, product: ThinProduct) -> bool:
    """Whether a plan has work for its threads, in their registers and in shared memory."""
    # A thread's copies of A for a vector are `vectors` apart; near ones would be read as a whole.
    apart = plan.along_k or plan.width == 1 or plan.vectors == 1 or plan.vectors > MAX_DENSE
    single = plan.along_k and plan.columns == plan.vectors == 1
    last = (product.k - 1) % (plan.part or product.k) + 1
    several = plan.step < last or (single and plan.part is None)
    points = product.m * plan.across
    whole = plan.lanes * plan.width * product.bytes >= SECTOR
    shared = 0 if plan.along_k else 4 * plan.groups * points
    fits = _registers(plan, product) <= MAX_REGISTERS and shared <= MAX_SHARED
    return several and whole and fits and apart and points <= plan.threads


def _registers(plan: ThinPlan, product: ThinProduct) -> int:
    """The registers of a thread: sums, and what a step reads of both operands."""
    word = max(1, plan.width * product.bytes // 4)
    if plan.along_k:
        own = plan.columns * product.m + (plan.columns + product.m) * plan.vectors * word
    else:
        left = product.m * max(1, plan.vectors * product.bytes // 4)
        own = product.m * plan.width + plan.vectors * word + left
    return own + WORKING_REGISTERS


def thin_us(plan: ThinPlan, product: ThinProduct, target: GpuTarget) -> float:
    """How long a product takes by a plan, in microseconds."""
    part = plan.part or product.k
    parts = -(-product.k // part)
    blocks = parts * -(-product.n // plan.across)
    busy = -(-blocks // target.sm_count)
    registers = target.registers_per_sm // (plan.threads * _registers(plan, product))
    resident = max(1, min(target.resident_blocks(0, plan.threads), registers))
    steps = -(-part // plan.step)
    warps = busy * -(-plan.threads // WARP_SIZE)
    instructions, l1 = _work_of_step(plan, product)
    end = product.m * (plan.columns * 12 if plan.along_k else plan.width * 4) + 100
    alone = (steps * instructions + end) * THIN.issue_cycles * 1e6 / target.clock
    one = THIN.us_latency * (steps + 1) + alone
    cycles = max(warps * (steps * instructions + end) / 4, warps * steps * l1)
    rate = THIN.memory_share * target.memory_rate / target.sm_count
    loaded = busy * part * plan.across * product.bytes
    waves = -(-busy // resident)
    each = (waves * one, cycles * 1e6 / target.clock, loaded * 1e6 / rate)
    us = max(each) + THIN.exposed * (sum(each) - max(each))
    return THIN.us_launch + us + (THIN.us_second_launch if plan.part else 0.0)


def _work_of_step(plan: ThinPlan, product: ThinProduct) -> tuple[float, float]:
    """The instructions of a thread in a step, and the cycles of the L1 for a warp's loads."""
    vector = plan.width * product.bytes
    together = min(plan.lanes, WARP_SIZE)
    runs, run = WARP_SIZE // together, together * vector
    length = product.k if plan.along_k else product.n
    across = 0.0 if length * product.bytes % SECTOR == 0 and run % SECTOR == 0 else 1.0
    sectors = runs * (-(-run // SECTOR) + across)
    lines = runs * (-(-run // LINE) + across * min(1.0, run / LINE))
    each = max(THIN.load_cycles * lines, sectors * SECTOR / THIN.l1_bytes)
    right = plan.columns * plan.vectors
    terms = right * plan.width
    if plan.along_k:
        left = product.m * plan.vectors
        words, l1_left = left * plan.width, max(THIN.load_cycles, run / THIN.l1_bytes)
    else:
        words = product.m * plan.vectors
        left = max(product.m, words * product.bytes // 8)
        l1_left = THIN.load_cycles
    converted = (terms + words) if product.bytes < 4 else 0
    instructions = terms * product.m + converted + left + right + 20
    return instructions, right * each + left * l1_left
