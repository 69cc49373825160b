"""Reductions of what each thread of a block has, by shuffles: every thread gets the result.

    for k in allreduce(64) { s += part[k] }     each thread: a = part
                                              a += a of the thread 1, 2, 4, 8, 16 away (shuffles)
                                              shared[warp] = a;  barrier
                                              s = shared[0] + shared[1]

Threads exchange values pairwise, so that all of a warp have the same sum in the end, to the last
bit; the sums of several warps are added in one order by all threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright.arith.expr import Binary, Expr, Load, Var, binary
from tilewright.arith.walk import free_vars, loads
from tilewright.codegen.llvm.types import register_type
from tilewright.core.dtypes import BOOL, DType
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import For, If, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import THREAD, ThreadMapping

if TYPE_CHECKING:
    from tilewright.codegen.llvm.expressions import ExprEmitter

WARP = 32
BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
SHUFFLE = "llvm.nvvm.shfl.sync.bfly.i32"
# Room for the sums of the warps of a block: given its bytes, where it begins.
Room = Callable[[int], str]


class Combination:
    """What the iterations of a combine loop do: `target` = all `values` under `op`."""

    def __init__(self, loop: For, share: ThreadMapping, threads: int, own: set[str]) -> None:
        step = _last_store(loop.body)
        value = None if step is None else step.value
        if step is None or not isinstance(value, Binary) or share.stride != 1:
            raise CodegenError("gpu.combine", f"loop {loop.name} is no reduction of neighbours")
        old = Load(step.buffer, step.indices, value.dtype)
        self.store, self.op = step, value.op
        self.value = value.b if value.a is old else value.a
        self.count, self.threads = share.extent, threads
        foreign = {x.buffer for x in loads(self.value)} - own
        if foreign or self.count & (self.count - 1) or loop.name in free_vars(step.indices[0]):
            message = f"loop {loop.name} of {self.count} reads {', '.join(foreign) or 'registers'}"
            raise CodegenError("gpu.combine", message)


def _last_store(stmt: Stmt) -> Store | None:
    """The step of a reduction.

    What starts it is not needed. Guards are on what numbers rows: where they do not hold, threads
    exchange what nobody reads.
    """
    match stmt:
        case Store():
            return stmt
        case Seq(stmts):
            return _last_store(stmts[-1])
        case If(_, then, None):
            return _last_store(then)
    return None


def emit_combined(ex: ExprEmitter, found: Combination, room: Room) -> Expr:
    """The combined value in every thread, as a variable."""
    ex.begin_statement()
    result: Expr = found.value
    distance = 1
    while distance < min(found.count, WARP):
        result = _named(ex, result)
        other = _variable(ex, _shuffled(ex, result, distance, found.threads), result.dtype)
        result = binary(found.op, result, other)
        distance *= 2
    result = _named(ex, result)
    return result if found.count <= WARP else _across_warps(ex, found, result, room)


def _across_warps(ex: ExprEmitter, found: Combination, own: Expr, room: Room) -> Expr:
    """The sums of all warps of a group, through shared memory."""
    fn, warps, kind = ex.fn, found.count // WARP, register_type(own.dtype)
    if found.count != found.threads:
        message = f"{found.count} of {found.threads} threads cannot meet alone"
        raise CodegenError("gpu.combine", message)
    start = room(warps * own.dtype.bytes)
    first, done = fn.label("first"), fn.label("met")
    lane = ex.value((Var(THREAD) % WARP).eq(0))
    place = ex.value(Var(THREAD) // WARP)
    register = ex.value(own)
    fn.emit(f"br i1 {lane}, label %{first}, label %{done}")
    fn.start(first)
    slot = fn.let(f"getelementptr inbounds {kind}, ptr {start}, i64 {place}", "p")
    fn.emit(f"store {kind} {register}, ptr {slot}, align {own.dtype.alignment}")
    fn.emit(f"br label %{done}")
    fn.start(done)
    return _sum_of(ex, found, start, warps, own.dtype)


def _sum_of(ex: ExprEmitter, found: Combination, start: str, warps: int, dtype: DType) -> Expr:
    """Wait, then add up what the warps have left."""
    fn, kind = ex.fn, register_type(dtype)
    barrier(ex)
    result: Expr | None = None
    for warp in range(warps):
        slot = fn.let(f"getelementptr inbounds {kind}, ptr {start}, i64 {warp}", "p")
        register = fn.let(f"load {kind}, ptr {slot}, align {dtype.alignment}")
        one = _variable(ex, register, dtype)
        result = one if result is None else binary(found.op, result, one)
    assert result is not None
    return _named(ex, result)


def barrier(ex: ExprEmitter) -> None:
    """No thread goes on before all have come here."""
    ex.fn.module.declare(BARRIER, "void (i32)")
    ex.fn.emit(f"call void @{BARRIER}(i32 0)")
    ex.loads.forget()


def _named(ex: ExprEmitter, e: Expr) -> Expr:
    return _variable(ex, ex.value(e), e.dtype)


def _variable(ex: ExprEmitter, register: str, dtype: DType) -> Expr:
    """A name for a register: it is one value wherever it is mentioned."""
    name = ex.fn.fresh("c")
    ex.values[name] = register
    return Var(name, dtype)


def _shuffled(ex: ExprEmitter, e: Expr, distance: int, threads: int) -> str:
    """What the thread has whose number differs in one bit."""
    fn, kind = ex.fn, register_type(e.dtype)
    fn.module.declare(SHUFFLE, "i32 (i32, i32, i32, i32)")
    bits = 1 if e.dtype == BOOL else e.dtype.bits
    if bits > 64:
        raise CodegenError("gpu.combine", f"threads cannot exchange {e.dtype}")
    word = fn.let(f"bitcast {kind} {ex.value(e)} to i{bits}")
    words = 32 * -(-bits // 32)
    wide = word if bits == words else fn.let(f"zext i{bits} {word} to i{words}")
    got = _exchange(ex, wide, distance, threads) if words == 32 else ""
    if words == 64:
        pair = fn.let(f"bitcast i64 {wide} to <2 x i32>")
        halves = [fn.let(f"extractelement <2 x i32> {pair}, i32 {n}") for n in (0, 1)]
        low, high = (_exchange(ex, half, distance, threads) for half in halves)
        one = fn.let(f"insertelement <2 x i32> undef, i32 {low}, i32 0")
        both = fn.let(f"insertelement <2 x i32> {one}, i32 {high}, i32 1")
        got = fn.let(f"bitcast <2 x i32> {both} to i64")
    narrow = got if bits == words else fn.let(f"trunc i{words} {got} to i{bits}")
    return fn.let(f"bitcast i{bits} {narrow} to {kind}")


def _exchange(ex: ExprEmitter, word: str, distance: int, threads: int) -> str:
    """One word, among all threads of a warp: those that there are must be named."""
    named = -1 if threads >= WARP else (1 << threads) - 1
    return ex.fn.let(
        f"call i32 @{SHUFFLE}(i32 {named}, i32 {word}, i32 {distance}, i32 {WARP - 1})"
    )
