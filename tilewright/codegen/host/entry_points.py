"""The model's native entry points: `tw_main` calls the kernels in order, with no Python between.

    i32  tw_main(ptr inputs, ptr outputs, ptr dims, ptr arena, ptr weights)
    i32  tw_main_profiled(..., ptr ns)          adds each call's nanoseconds to ns[call]
    i64  tw_arena_size(ptr dims)
    void tw_output_shapes(ptr dims, ptr shapes) all output dimensions, one after another

`dims` holds the value of every symbolic size, in the order of `ExecutionPlan.symbols`, and then the
data-dependent sizes, which `tw_main` writes: only then is `tw_output_shapes` right about outputs of
such sizes; `ns` may be null. A status other than 0 is the number of the check that failed. The
arena ends with the words of index checks, which kernels write and `tw_main` reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
from tilewright.codegen.host.arena_layout import emit_placement
from tilewright.codegen.host.carried_loop import Buffers, emit_carried_loop
from tilewright.codegen.host.clock import NOTE_IR
from tilewright.codegen.host.parallel_calls import emit_region
from tilewright.codegen.host.plan import (
    Action,
    BufferRef,
    CheckIndex,
    CheckSizes,
    Conditional,
    CountedLoop,
    ExecutionPlan,
    KernelCall,
    LoopCarried,
    ParallelCalls,
    ReadSize,
)
from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.passes.memory.plan_memory import RuntimePlacement

MAIN_PARAMS = (
    ("%inputs", "ptr"),
    ("%outputs", "ptr"),
    ("%dims", "ptr"),
    ("%arena", "ptr"),
    ("%weights", "ptr"),
)


def emit_model(code: ExecutionPlan) -> str:
    """The LLVM module with the entry points; kernels are declared, not defined."""
    module = ModuleBuilder()
    for call in code.calls:
        params = ", ".join(["ptr"] * len(call.buffers) + ["i64"] * len(call.sizes))
        module.declare(call.kernel, f"void ({params})")
    if code.placement is not None:
        emit_placement(module, code.placement)
    _emit_main(module, code)
    _emit_arena_size(module, code)
    _emit_output_shapes(module, code)
    return module.text()


def _start(
    module: ModuleBuilder, name: str, params: Sequence[tuple[str, str]], symbols: Sequence[str]
) -> ExprEmitter:
    """A function that begins by reading the symbolic sizes."""
    fn = FunctionBuilder(module, name, params)
    values = {}
    for index, symbol in enumerate(symbols):
        slot = fn.let(f"getelementptr inbounds i64, ptr %dims, i64 {index}")
        values[symbol] = fn.let(f"load i64, ptr {slot}, align 8", "dim")
    emitter = ExprEmitter(fn, values, {})
    emitter.ranges = {s: Interval(0, None) for s in symbols}
    return emitter


# One function serves both: a model has hundreds of calls, and LLVM takes its time for each.
_UNPROFILED = """
define i32 @tw_main(ptr %inputs, ptr %outputs, ptr %dims, ptr %arena, ptr %weights) nounwind {
  %status = tail call i32 @tw_main_profiled(
    ptr %inputs, ptr %outputs, ptr %dims, ptr %arena, ptr %weights, ptr null)
  ret i32 %status
}
"""


def _emit_main(module: ModuleBuilder, code: ExecutionPlan) -> None:
    module.declare("tw_now", "i64 ()")
    module.include("tw_main", _UNPROFILED)
    module.include("tw_note", NOTE_IR)
    em = _start(module, "tw_main_profiled", [*MAIN_PARAMS, ("%ns", "ptr")], code.symbols)
    size = str(code.arena_size) if code.placement is None else _place(em, code.placement)
    _Main(em, code, size).emit(code.actions)
    em.fn.finish("nounwind", "i32 0")


class _Main:
    """Emits actions in order; kernel calls are numbered throughout, those of branches included."""

    def __init__(self, em: ExprEmitter, code: ExecutionPlan, arena_size: str) -> None:
        self.em = em
        self.fn = em.fn
        self.size_slots = {
            name: len(code.symbols) + i for i, name in enumerate(code.data_dependent_sizes)
        }
        self.clock = self.fn.entry_alloca("i64, align 8", "clock")
        self.number = 0
        self.carried: dict[int, str] = {}
        self.index_status = _index_status(self.fn, code, arena_size)
        self._note(-1)

    def emit(self, actions: Sequence[Action]) -> None:
        """The actions one after the other."""
        for action in actions:
            if isinstance(action, KernelCall):
                self._call(action)
            elif isinstance(action, ParallelCalls):
                self._parallel(action)
            elif isinstance(action, CheckSizes):
                self._check(self.em.value(action.condition), action.status)
            elif isinstance(action, CheckIndex):
                self._check_index(action)
            elif isinstance(action, ReadSize):
                self._read_size(action)
            elif isinstance(action, CountedLoop):
                self._counted_loop(action)
            else:
                self._conditional(action)

    def _call(self, call: KernelCall) -> None:
        args = ", ".join(f"{kind} {register}" for kind, register in self._arguments(call))
        self.fn.emit(f"call void @{call.kernel}({args})")
        self._note(self.number)
        self.number += 1
        self.fn.end_long_block(self.number)

    def _arguments(self, call: KernelCall) -> list[tuple[str, str]]:
        """What a kernel is given: LLVM types and registers."""
        pointers = [("ptr", self._address(place)) for place in call.buffers]
        return [*pointers, *(("i64", self.em.value(s)) for s in call.sizes)]

    def _parallel(self, action: ParallelCalls) -> None:
        calls = [(call.kernel, self._arguments(call)) for call in action.calls]
        emit_region(self.fn, calls, self.number, self.clock)
        self.number += len(calls)
        self.fn.end_block()

    def _note(self, number: int) -> None:
        self.fn.emit(f"call void @tw_note(ptr %ns, i64 {number}, ptr {self.clock})")

    def _check(self, holds: str, status: int) -> None:
        fine, failed = self.fn.label("fine"), self.fn.label("failed")
        self.fn.emit(f"br i1 {holds}, label %{fine}, label %{failed}")
        self.fn.start(failed)
        self.fn.emit(f"ret i32 {status}")
        self.fn.start(fine)

    def _check_index(self, action: CheckIndex) -> None:
        place = self._address(BufferRef("index_status", const(action.offset)))
        index = self.fn.let(f"load i64, ptr {place}, align 8")
        self._check(self.fn.let(f"icmp eq i64 {index}, 0"), action.status)

    def _read_size(self, action: ReadSize) -> None:
        size = self.fn.let(f"load i64, ptr {self._address(action.place)}, align 8", "late")
        limit = self.em.value(action.limit)
        # a negative number is a large one without its sign
        self._check(self.fn.let(f"icmp ule i64 {size}, {limit}"), action.status)
        self._define_size(action.name, size)

    def _conditional(self, action: Conditional) -> None:
        then, other, after = (self.fn.label(word) for word in ("then", "else", "after"))
        self.fn.emit(f"br i1 {self._truth(action.condition)}, label %{then}, label %{other}")
        ends: list[tuple[str, list[str]]] = []
        branches = (
            (then, action.then, [size for _, size, _ in action.sizes]),
            (other, action.other, [size for _, _, size in action.sizes]),
        )
        for label, actions, wanted in branches:
            self.fn.start(label)
            with self.fn.scope():
                self.emit(actions)
                sizes = [self.em.value(size) for size in wanted]
            ends.append((self.fn.block, sizes))
            self.fn.emit(f"br label %{after}")
        self.fn.start(after)
        merged = [
            self.fn.let(f"phi i64 [ {one}, %{ends[0][0]} ], [ {two}, %{ends[1][0]} ]", "late")
            for one, two in zip(ends[0][1], ends[1][1], strict=True)
        ]  # all phi nodes first: no instruction may precede them in a block
        for (name, _, _), value in zip(action.sizes, merged, strict=True):
            self._define_size(name, value)

    def _counted_loop(self, action: CountedLoop) -> None:
        buffers = [self._buffers(c) for c in action.carried]

        def step(number: str, reads: Sequence[str], writes: Sequence[str]) -> str:
            self.em.values[action.counter] = number
            for c, read, written in zip(action.carried, reads, writes, strict=True):
                self.carried |= {c.read: read, c.written: written}
            self.emit(action.actions)
            return "" if action.going is None else self._truth(action.going)

        begin = "true" if action.begin is None else self._truth(action.begin)
        known = action.begin is None and action.going is None
        count = self.em.value(action.count)
        steps = emit_carried_loop(self.fn, count, begin, known, buffers, step)
        if action.trip_count:
            self._define_size(action.trip_count, steps)

    def _buffers(self, c: LoopCarried) -> Buffers:
        initial, result, spare = (self._address(place) for place in (c.initial, c.result, c.spare))
        return Buffers(initial, result, spare, self.em.value(c.size))

    def _address(self, place: BufferRef) -> str:
        """The register with the address of a buffer."""
        em = self.em
        if place.space in ("arena", "weights"):
            return _advanced(em, f"%{place.space}", place.offset + place.start)
        if place.space == "index_status":
            return _advanced(em, self.index_status, place.offset)
        number = em.value(place.offset)
        if place.space == "carried":
            first = self.carried[int(number)]
        else:
            slot = f"getelementptr inbounds ptr, ptr %{place.space}s, i64 {number}"
            first = em.fn.let(f"load ptr, ptr {em.fn.let(slot)}, align 8", "p")
        return first if place.start is const(0) else _advanced(em, first, place.start)

    def _truth(self, condition: Expr | BufferRef) -> str:
        if isinstance(condition, Expr):
            return self.em.value(condition)
        byte = self.fn.let(f"load i8, ptr {self._address(condition)}, align 1")
        return self.fn.let(f"icmp ne i8 {byte}, 0")

    def _define_size(self, name: str, value: str) -> None:
        self.em.values[name] = value
        slot = f"getelementptr inbounds i64, ptr %dims, i64 {self.size_slots[name]}"
        self.fn.emit(f"store i64 {value}, ptr {self.fn.let(slot)}, align 8")


def _index_status(fn: FunctionBuilder, code: ExecutionPlan, arena_size: str) -> str:
    """The register with the address of the words of index checks, which become zero."""
    if not code.status_bytes:
        return ""
    words = fn.let(f"getelementptr inbounds i8, ptr %arena, i64 {_in_words(fn, arena_size)}", "p")
    fn.module.declare("llvm.memset.p0.i64", "void (ptr, i8, i64, i1)")
    zeros = f"ptr align 8 {words}, i8 0, i64 {code.status_bytes}, i1 false"
    fn.emit(f"call void @llvm.memset.p0.i64({zeros})")
    return words


def _in_words(fn: FunctionBuilder, size: str) -> str:
    """A number of bytes, rounded up to words."""
    return fn.let(f"and i64 {fn.let(f'add i64 {size}, 7')}, -8")


def _place(em: ExprEmitter, placement: RuntimePlacement) -> str:
    """Lay out the arena for this run's sizes; gives the register with its total size."""
    count = len(placement.sizes)
    sizes = em.fn.entry_alloca(f"[{count} x i64], align 8", "sizes")
    offsets = em.fn.entry_alloca(f"[{count} x i64], align 8", "offsets")
    for index, size in enumerate(placement.sizes):
        slot = em.fn.let(f"getelementptr inbounds i64, ptr {sizes}, i64 {index}")
        em.fn.emit(f"store i64 {em.value(size)}, ptr {slot}, align 8")
        em.fn.end_long_block(index + 1)
    total = em.fn.let(f"call i64 @tw_place(ptr {sizes}, ptr {offsets})", "total")
    for index, offset in enumerate(placement.offsets):
        slot = em.fn.let(f"getelementptr inbounds i64, ptr {offsets}, i64 {index}")
        em.values[offset.name] = em.fn.let(f"load i64, ptr {slot}, align 8", "offset")
        em.fn.end_long_block(index + 1)
    return total


def _advanced(em: ExprEmitter, pointer: str, by: Expr) -> str:
    bytes_ = em.value(simplify(by))
    return em.fn.let(f"getelementptr inbounds i8, ptr {pointer}, i64 {bytes_}", "p")


def _emit_arena_size(module: ModuleBuilder, code: ExecutionPlan) -> None:
    em = _start(module, "tw_arena_size", [("%dims", "ptr")], code.symbols)
    size = str(code.arena_size) if code.placement is None else _place(em, code.placement)
    if code.status_bytes:
        size = em.fn.let(f"add i64 {_in_words(em.fn, size)}, {code.status_bytes}")
    em.fn.finish("nounwind", f"i64 {size}")


def _emit_output_shapes(module: ModuleBuilder, code: ExecutionPlan) -> None:
    params = [("%dims", "ptr"), ("%shapes", "ptr")]
    em = _start(module, "tw_output_shapes", params, (*code.symbols, *code.data_dependent_sizes))
    dims = [d for shape in code.output_shapes for d in shape]
    for index, dim in enumerate(dims):
        slot = em.fn.let(f"getelementptr inbounds i64, ptr %shapes, i64 {index}")
        em.fn.emit(f"store i64 {em.value(dim)}, ptr {slot}, align 8")
        em.fn.end_long_block(index + 1)
    em.fn.finish("nounwind")
