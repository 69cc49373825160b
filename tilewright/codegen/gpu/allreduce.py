"""All-reduce over the threads of a block: butterfly shuffles, then shared memory.

    for k in allreduce(64) { s += part[k] }     each thread: a = part
                                              a += a of the thread 1, 2, 4, 8, 16 away (shuffles)
                                              shared[warp] = a;  barrier
                                              s = shared[0] + shared[1]

With a butterfly all threads of a warp get the same bits; the results of the warps are reduced in
one order by all threads.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.arith.expr import Binary, Expr, Load, Var, binary
from tilewright.arith.walk import free_vars, loads
from tilewright.codegen.gpu.synchronization import barrier
from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.codegen.llvm.types import register_type
from tilewright.core.dtypes import BOOL, DType
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import For, If, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import THREAD, WARP_SIZE, ThreadMapping

SHUFFLE = "llvm.nvvm.shfl.sync.bfly.i32"
# Allocates so many bytes of shared memory, for the results of the warps; gives their address.
Allocate = Callable[[int], str]


class AllReduce:
    """The reduction of an allreduce loop: its `op`, the `value` of a thread and the `store`."""

    def __init__(self, loop: For, mapping: ThreadMapping, threads: int, own: set[str]) -> None:
        step = _last_store(loop.body)
        value = None if step is None else step.value
        if step is None or not isinstance(value, Binary) or mapping.stride != 1:
            raise CodegenError(
                "gpu.allreduce", f"loop {loop.name} is no reduction over neighbouring threads"
            )
        old = Load(step.buffer, step.indices, value.dtype)
        self.store, self.op = step, value.op
        self.value = value.b if value.a is old else value.a
        self.count, self.threads = mapping.extent, threads
        foreign = {x.buffer for x in loads(self.value)} - own
        if foreign or self.count & (self.count - 1) or loop.name in free_vars(step.indices[0]):
            message = f"loop {loop.name} of {self.count} reads {', '.join(foreign) or 'registers'}"
            raise CodegenError("gpu.allreduce", message)


def _last_store(stmt: Stmt) -> Store | None:
    """The update of a reduction; its init is not needed.

    Guards are conditions on rows: where one does not hold, the threads shuffle values that are
    never read.
    """
    match stmt:
        case Store():
            return stmt
        case Seq(stmts):
            return _last_store(stmts[-1])
        case If(_, then, None):
            return _last_store(then)
    return None


def emit_allreduce(ex: ValueEmitter, found: AllReduce, allocate: Allocate) -> Expr:
    """The reduced value, as a variable that every thread has."""
    ex.begin_statement()
    result: Expr = found.value
    distance = 1
    while distance < min(found.count, WARP_SIZE):
        result = _named(ex, result)
        other = _variable(ex, _shuffled(ex, result, distance, found.threads), result.dtype)
        result = binary(found.op, result, other)
        distance *= 2
    result = _named(ex, result)
    return result if found.count <= WARP_SIZE else _across_warps(ex, found, result, allocate)


def _across_warps(ex: ValueEmitter, found: AllReduce, own: Expr, allocate: Allocate) -> Expr:
    """Reduce over the warps of a block, through shared memory."""
    fn, warps, kind = ex.fn, found.count // WARP_SIZE, register_type(own.dtype)
    if found.count != found.threads:
        message = f"{found.count} of {found.threads} threads cannot synchronize by themselves"
        raise CodegenError("gpu.allreduce", message)
    start = allocate(warps * own.dtype.bytes)
    first, done = fn.label("first"), fn.label("met")
    lane = ex.value((Var(THREAD) % WARP_SIZE).eq(0))
    place = ex.value(Var(THREAD) // WARP_SIZE)
    register = ex.value(own)
    fn.emit(f"br i1 {lane}, label %{first}, label %{done}")
    fn.start(first)
    slot = fn.let(f"getelementptr inbounds {kind}, ptr {start}, i64 {place}", "p")
    fn.emit(f"store {kind} {register}, ptr {slot}, align {own.dtype.alignment}")
    fn.emit(f"br label %{done}")
    fn.start(done)
    return _sum_of(ex, found, start, warps, own.dtype)


def _sum_of(ex: ValueEmitter, found: AllReduce, start: str, warps: int, dtype: DType) -> Expr:
    """Wait for all warps, then reduce their results."""
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


def _named(ex: ValueEmitter, e: Expr) -> Expr:
    return _variable(ex, ex.value(e), e.dtype)


def _variable(ex: ValueEmitter, register: str, dtype: DType) -> Expr:
    """A name for a register: it is one value wherever it is mentioned."""
    name = ex.fn.fresh("c")
    ex.values[name] = register
    return Var(name, dtype)


def _shuffled(ex: ValueEmitter, e: Expr, distance: int, threads: int) -> str:
    """The value of the thread whose index differs in one bit: a butterfly shuffle."""
    fn, kind = ex.fn, register_type(e.dtype)
    fn.module.declare(SHUFFLE, "i32 (i32, i32, i32, i32)")
    bits = 1 if e.dtype == BOOL else e.dtype.bits
    if bits > 64:
        raise CodegenError("gpu.allreduce", f"threads cannot exchange {e.dtype}")
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


def _exchange(ex: ValueEmitter, word: str, distance: int, threads: int) -> str:
    """Shuffle one word; the mask names the threads of the warp that exist."""
    named = -1 if threads >= WARP_SIZE else (1 << threads) - 1
    return ex.fn.let(
        f"call i32 @{SHUFFLE}(i32 {named}, i32 {word}, i32 {distance}, i32 {WARP_SIZE - 1})"
    )
