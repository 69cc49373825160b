"""All-reduce over the threads of a block: butterfly shuffles, then shared memory.

    for k in allreduce(64) { s += part[k] }     each thread: a = part
                                              a += a of the thread 1, 2, 4, 8, 16 away (shuffles)
                                              shared[warp] = a;  barrier
                                              s = shared[0] + shared[1]

With a butterfly all threads of a warp get the same bits; the results of the warps are reduced in
one order by all threads. Where threads keep what those before them add up to, it is a scan:

    for k in allreduce(64) {                  each thread: a = part
      before[k] = s                           a += a of the thread 1, 2, 4, 8, 16 below (shuffles)
      s += part[k]                            the same for the totals of warps, in shared memory
    }                                         before = s + a of the thread below;  s += the last a
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilewright.arith.expr import Binary, Expr, Load, Var, binary, const, select
from tilewright.arith.walk import free_vars, loads
from tilewright.codegen.gpu.synchronization import barrier
from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.codegen.llvm.types import register_type
from tilewright.core.dtypes import BOOL, DType
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import For, If, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import THREAD, WARP_SIZE, ThreadMapping

# The word of the thread whose lane differs in some bits, is lower by a number, or is a number.
BUTTERFLY, UP, INDEX = (f"llvm.nvvm.shfl.sync.{how}.i32" for how in ("bfly", "up", "idx"))
# Each thread adds the results of so many warps; those of more, the lanes of each warp add.
FEW_WARPS = 8
# Allocates so many bytes of shared memory, for the results of the warps; gives their address.
Allocate = Callable[[int], str]


class AllReduce:
    """The reduction of an allreduce loop: its `op`, the `value` of a thread and the `store`.

    It goes on from `begin`, `None` where that is the neutral element; `kept` are the stores of what
    threads before a thread add up to.
    """

    def __init__(self, loop: For, mapping: ThreadMapping, threads: int, own: set[str]) -> None:
        stores = list(_stores(loop.body))
        step = stores[-1] if stores else None
        value = None if step is None else step.value
        if step is None or not isinstance(value, Binary) or mapping.stride != 1:
            raise CodegenError(
                "gpu.allreduce", f"loop {loop.name} is no reduction over neighbouring threads"
            )
        old = Load(step.buffer, step.indices, value.dtype)
        self.store, self.op = step, value.op
        self.value = value.b if value.a is old else value.a
        self.kept = [s for s in stores[:-1] if s.value is old]
        starts = [s for s in stores[:-1] if s.buffer == step.buffer]
        self.begin = None if starts else old
        self.count, self.threads = mapping.extent, threads
        foreign = {x.buffer for x in loads(self.value)} - own
        if foreign or self.count & (self.count - 1) or loop.name in free_vars(step.indices[0]):
            message = f"loop {loop.name} of {self.count} reads {', '.join(foreign) or 'registers'}"
            raise CodegenError("gpu.allreduce", message)
        if len(self.kept) + len(starts) != len(stores) - 1 or (self.kept and starts):
            raise CodegenError("gpu.allreduce", f"loop {loop.name} has other stores")


def _stores(stmt: Stmt) -> Iterator[Store]:
    """What is stored, in order.

    Guards are conditions on rows: where one does not hold, the threads shuffle values that are
    never read.
    """
    match stmt:
        case Store():
            yield stmt
        case Seq(stmts):
            for s in stmts:
                yield from _stores(s)
        case If(_, then, None):
            yield from _stores(then)


def emit_allreduce(ex: ValueEmitter, found: AllReduce, allocate: Allocate) -> list[Store]:
    """What every thread stores then, as variables."""
    ex.begin_statement()
    if found.kept:
        assert found.begin is not None
        before, total = _scanned(ex, found, found.begin, allocate)
        kept = [Store(s.buffer, s.indices, before) for s in found.kept]
        return [*kept, Store(found.store.buffer, found.store.indices, total)]
    result = _reduced(ex, found.op, found.value, min(found.count, WARP_SIZE), found.threads)
    if found.count > WARP_SIZE:
        result = _across_warps(ex, found, result, allocate)
    if found.begin is not None:
        result = _named(ex, binary(found.op, found.begin, result))
    return [Store(found.store.buffer, found.store.indices, result)]


def _reduced(ex: ValueEmitter, op: str, result: Expr, count: int, threads: int) -> Expr:
    """The reduction over the lanes of a warp, or over equal groups of them."""
    distance = 1
    while distance < count:
        result = _named(ex, result)
        result = binary(op, result, _shuffled(ex, BUTTERFLY, result, distance, threads))
        distance *= 2
    return _named(ex, result)


def _across_warps(ex: ValueEmitter, found: AllReduce, own: Expr, allocate: Allocate) -> Expr:
    """Reduce over the warps of a block, through shared memory."""
    warps = found.count // WARP_SIZE
    start = _exchanged(ex, found, own, allocate, 0)
    if warps > FEW_WARPS:
        one = _read(ex, start, Var(THREAD) % warps, own.dtype)
        return _reduced(ex, found.op, one, warps, found.threads)
    result: Expr | None = None
    for warp in range(warps):
        one = _read(ex, start, const(warp), own.dtype)
        result = one if result is None else binary(found.op, result, one)
    assert result is not None
    return _named(ex, result)


def _exchanged(ex: ValueEmitter, found: AllReduce, own: Expr, allocate: Allocate, lane: int) -> str:
    """What a lane of each warp has, in shared memory, when all warps have written it there."""
    fn, warps, kind = ex.fn, found.count // WARP_SIZE, register_type(own.dtype)
    if found.count != found.threads:
        message = f"{found.count} of {found.threads} threads cannot synchronize by themselves"
        raise CodegenError("gpu.allreduce", message)
    start = allocate(warps * own.dtype.bytes)
    first, done = fn.label("first"), fn.label("met")
    writes = ex.value((Var(THREAD) % WARP_SIZE).eq(lane))
    place = ex.value(Var(THREAD) // WARP_SIZE)
    register = ex.value(own)
    fn.emit(f"br i1 {writes}, label %{first}, label %{done}")
    fn.start(first)
    slot = fn.let(f"getelementptr inbounds {kind}, ptr {start}, i64 {place}", "p")
    fn.emit(f"store {kind} {register}, ptr {slot}, align {own.dtype.alignment}")
    fn.emit(f"br label %{done}")
    fn.start(done)
    barrier(ex)
    return start


def _read(ex: ValueEmitter, start: str, place: Expr, dtype: DType) -> Expr:
    """What a warp has left in shared memory."""
    kind = register_type(dtype)
    slot = ex.fn.let(f"getelementptr inbounds {kind}, ptr {start}, i64 {ex.value(place)}", "p")
    return _variable(ex, ex.fn.let(f"load {kind}, ptr {slot}, align {dtype.alignment}"), dtype)


def _scanned(
    ex: ValueEmitter, found: AllReduce, begin: Expr, allocate: Allocate
) -> tuple[Expr, Expr]:
    """What the threads before a thread add up to, and all threads, going on from `begin`."""
    op, count, threads = found.op, min(found.count, WARP_SIZE), found.threads
    begin, lane = _named(ex, begin), _named(ex, Var(THREAD) % count)
    own = _added_up(ex, op, found.value, lane, count, threads)
    before = _shuffled(ex, UP, own, 1, threads, count)
    if found.count <= WARP_SIZE:
        total = _shuffled(ex, INDEX, own, count - 1, threads, count)
    else:
        warps, warp = found.count // WARP_SIZE, Var(THREAD) // WARP_SIZE
        start = _exchanged(ex, found, own, allocate, WARP_SIZE - 1)
        place = _named(ex, Var(THREAD) % warps)
        several = _added_up(ex, op, _read(ex, start, place, own.dtype), place, warps, threads)
        total = _shuffled(ex, INDEX, several, warps - 1, threads, warps)
        earlier = _shuffled(ex, INDEX, several, _named(ex, warp - 1), threads)
        first = begin
        begin = _named(ex, select(warp.eq(0), first, binary(op, first, earlier)))
        total = _named(ex, binary(op, first, total))
        return _named(ex, select(lane.eq(0), begin, binary(op, begin, before))), total
    before = _named(ex, select(lane.eq(0), begin, binary(op, begin, before)))
    return before, _named(ex, binary(op, begin, total))


def _added_up(
    ex: ValueEmitter, op: str, result: Expr, lane: Expr, count: int, threads: int
) -> Expr:
    """What the lanes up to a lane have, in groups of so many."""
    distance = 1
    result = _named(ex, result)
    while distance < count:
        lower = _shuffled(ex, UP, result, distance, threads, count)
        sum_ = binary(op, lower, result)
        result = _named(ex, select(lane < distance, result, sum_))
        distance *= 2
    return result


def _named(ex: ValueEmitter, e: Expr) -> Expr:
    return _variable(ex, ex.value(e), e.dtype)


def _variable(ex: ValueEmitter, register: str, dtype: DType) -> Expr:
    """A name for a register: it is one value wherever it is mentioned."""
    name = ex.fn.fresh("c")
    ex.values[name] = register
    return Var(name, dtype)


def _shuffled(
    ex: ValueEmitter,
    how: str,
    e: Expr,
    lane: int | Expr,
    threads: int,
    count: int = WARP_SIZE,
) -> Expr:
    """The value of another thread of a warp, or of a group of `count` of its lanes."""
    fn, kind = ex.fn, register_type(e.dtype)
    fn.module.declare(how, "i32 (i32, i32, i32, i32)")
    bits = 1 if e.dtype == BOOL else e.dtype.bits
    if bits > 64:
        raise CodegenError("gpu.allreduce", f"threads cannot exchange {e.dtype}")
    number = str(lane) if isinstance(lane, int) else fn.let(f"trunc i64 {ex.value(lane)} to i32")

    def exchange(word: str) -> str:
        return _exchange(ex, how, word, number, threads, count)

    word = fn.let(f"bitcast {kind} {ex.value(e)} to i{bits}")
    words = 32 * -(-bits // 32)
    wide = word if bits == words else fn.let(f"zext i{bits} {word} to i{words}")
    got = exchange(wide) if words == 32 else ""
    if words == 64:
        pair = fn.let(f"bitcast i64 {wide} to <2 x i32>")
        halves = [fn.let(f"extractelement <2 x i32> {pair}, i32 {n}") for n in (0, 1)]
        low, high = map(exchange, halves)
        one = fn.let(f"insertelement <2 x i32> undef, i32 {low}, i32 0")
        both = fn.let(f"insertelement <2 x i32> {one}, i32 {high}, i32 1")
        got = fn.let(f"bitcast <2 x i32> {both} to i64")
    narrow = got if bits == words else fn.let(f"trunc i{words} {got} to i{bits}")
    return _variable(ex, fn.let(f"bitcast i{bits} {narrow} to {kind}"), e.dtype)


def _exchange(ex: ValueEmitter, how: str, word: str, lane: str, threads: int, count: int) -> str:
    """Shuffle one word; the mask names the threads of the warp that exist.

    The last operand tells the groups of lanes apart, and the last lane that may be asked.
    """
    named = -1 if threads >= WARP_SIZE else (1 << threads) - 1
    groups = (WARP_SIZE - count) << 8
    last = groups if how == UP else groups | (WARP_SIZE - 1)
    return ex.fn.let(f"call i32 @{how}(i32 {named}, i32 {word}, i32 {lane}, i32 {last})")
