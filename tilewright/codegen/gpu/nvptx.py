"""Plain loops → LLVM functions for NVIDIA GPUs: the emitter of CPUs with other intrinsics.

A launch becomes `ptx_kernel void @name(buffers..., sizes...)`, with the number of the step behind
them where a loop is launched step by step. The number of a block is the grid loop's variable;
thread loops become formulas of the thread's number, and a branch where there are more threads than
iterations. What stands outside of thread loops, the first thread does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import Expr, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.codegen.gpu.allreduce import WARP, Combination, barrier, emit_combined
from tilewright.codegen.gpu.flash_attention import AttentionApart
from tilewright.codegen.gpu.grid_sync import BLOCK, Staying
from tilewright.codegen.gpu.launches import (
    DYNAMIC_ALIGNMENT,
    Launch,
    launches,
    reads_past_threads,
    shared_places,
    tensor_map,
)
from tilewright.codegen.gpu.mainloop import has_one_product
from tilewright.codegen.gpu.pingpong_gemm import ProductApart
from tilewright.codegen.gpu.stream_k_gemm import SharedProduct
from tilewright.codegen.gpu.warp_specialized import Apart
from tilewright.codegen.llvm.builder import FunctionText, ModuleText
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.codegen.llvm.loads_stores import emit_store
from tilewright.codegen.llvm.statements import StatementEmitter
from tilewright.core.dtypes import DType
from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.storage_scope import ALIGNMENT
from tilewright.ir.loop.annotations import ALIGNED
from tilewright.ir.loop.nodes import (
    Alloc,
    Barrier,
    Buffer,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    Func,
    MbarrierWait,
    Region,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.thread_mapping import PRIVATE, THREAD, ThreadMapping, thread_mappings
from tilewright.ir.loop.walk import buffers, statements
from tilewright.schedule.intrin.table import INTRINSICS

# What the emitter needs of the machine, by its name in LLVM.
THREAD_NUMBER = "llvm.nvvm.read.ptx.sreg.tid.x"
BLOCK_NUMBER = "llvm.nvvm.read.ptx.sreg.ctaid.x"
# The memory that the threads of a block share.
SHARED_SPACE = 3
COMMIT = "llvm.nvvm.cp.async.commit.group"
AWAIT = "llvm.nvvm.cp.async.wait.group"
# What a thread has written to shared memory may be read past the threads from here on.
PROXY = "fence.proxy.async.shared::cta;"
# A thread stays here until what a place counts in a turn, even or odd, is there.
ARRIVED = (
    "{\\0A.reg .pred p;\\0AWAIT:\\0A"
    "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1;\\0A"
    "@p bra DONE;\\0Abra WAIT;\\0ADONE:\\0A}"
)
# What earlier launches have written is there from here on; the next one may begin.
EARLY = "griddepcontrol.wait;\\0Agriddepcontrol.launch_dependents;"
# What a kernel is given of a matrix whose tiles are copied.
TENSOR_MAP = 'ptr byval([128 x i8]) align 64 "nvvm.grid_constant"'
# Blocks are numbered by 31 bits.
MOST_BLOCKS = 2**31 - 1


def emit_launches(
    module: ModuleText, func: Func, sizes: Sequence[str], early: bool = False
) -> None:
    """Emit every launch of a finalized function; each takes its buffers, then `sizes`.

    Where they may begin `early`, each waits by itself for those before it, but for those whose
    blocks stay.
    """
    dtypes = {name: b.dtype for name, b in buffers(func).items()}
    for launch in launches(func):
        _emit_launch(module, func, launch, sizes, dtypes, early)


def _emit_launch(
    module: ModuleText,
    func: Func,
    launch: Launch,
    sizes: Sequence[str],
    dtypes: Mapping[str, DType],
    early: bool,
) -> None:
    alignment = ALIGNED.of(func)
    pointer = f"ptr align {alignment}" if alignment else "ptr"
    params = [(f"%b{i}", pointer) for i in range(len(func.params))]
    values = {name: f"%s{i}" for i, name in enumerate((*sizes, *filter(None, (launch.loop,))))}
    numbers = [(register, "i64") for register in values.values()]
    maps = [(f"%m{i}", TENSOR_MAP) for i in range(len(launch.maps))]
    params += [*numbers[: len(sizes)], *maps, *numbers[len(sizes) :]]
    fn = FunctionText(module, launch.name, params)
    emitter = ExprEmitter(
        fn,
        values,
        {p.name: f"%b{i}" for i, p in enumerate(func.params)},
        _own_buffers(launch.body),
    )
    emitter.ranges = {name: Interval(0, None) for name in values}
    emitter.alignments = {p.name: alignment for p in func.params} if alignment else {}
    _number(emitter, THREAD, THREAD_NUMBER, launch.all_threads)
    number = BLOCK if launch.together else launch.number
    if number and not launch.apart:
        extent = as_int(launch.grid)
        _number(emitter, number, BLOCK_NUMBER, MOST_BLOCKS if extent is None else extent)
    if early and not launch.together:
        fn.emit(f'call void asm sideeffect "{EARLY}", "~{{memory}}"()')
    statements_of = LaunchEmitter(emitter, launch, dtypes, func.params)
    if launch.apart:
        _apart(launch)(statements_of).emit()
    else:
        statements_of.emit(launch.body)
    limits = f'nounwind "nvvm.reqntid"="{launch.all_threads}"'
    limits += f' "nvvm.minctasm"="{launch.resident}"' if launch.resident else ""
    fn.finish(limits, convention="ptx_kernel ")


def _apart(launch: Launch) -> Callable[[LaunchEmitter], Apart]:
    """What emits a launch some of whose threads only copy."""
    if launch.shares is not None:
        return SharedProduct
    return ProductApart if has_one_product(launch.body) else AttentionApart


def _own_buffers(body: Stmt) -> set[str]:
    """The buffers that only the running thread sees."""
    allocs = (s.buffer for _, s in statements(body) if isinstance(s, Alloc))
    return {b.name for b in allocs if b.scope in PRIVATE}


def _number(emitter: ExprEmitter, name: str, intrinsic: str, count: int) -> None:
    """Let a variable be a number that the machine gives, less than `count`."""
    fn = emitter.fn
    fn.module.declare(intrinsic, "i32 ()")
    bounds = f"range(i32 0, {min(max(count, 1), MOST_BLOCKS)}) "
    register = fn.let(f"call {bounds}i32 @{intrinsic}()", "n")
    emitter.values[name] = fn.let(f"zext i32 {register} to i64", "n")
    emitter.ranges[name] = Interval(0, max(count, 1) - 1)


class LaunchEmitter(StatementEmitter):
    """Emits the statements of a block of threads."""

    def __init__(
        self,
        expressions: ExprEmitter,
        launch: Launch,
        dtypes: Mapping[str, DType],
        params: Sequence[Buffer],
    ) -> None:
        super().__init__(expressions, launch.name, dtypes)
        self.params = params
        self.launch = launch
        self.mappings = thread_mappings(launch.body, launch.threads)
        self.places = shared_places(launch.body)
        self.proxy = reads_past_threads(launch.body)
        self.in_thread = launch.threads == 1
        # How many loops around phases there are.
        self.loops = 0
        # Whether only some of the threads are running.
        self.apart = False
        self.staying = Staying(self, launch.body) if launch.together else None

    def emit(self, stmt: Stmt) -> None:
        """Emit one statement."""
        if self.staying is not None and self.staying.emits(stmt):
            return
        match stmt:
            case For(kind="thread" | "warp"):
                self._thread_loop(stmt, self.mappings[stmt.name])
            case For(kind="allreduce"):
                self._combine(stmt)
            case For() if not self.in_thread:
                self.loops += 1
                super().emit(stmt)
                self.loops -= 1
            case Barrier():
                barrier(self.expressions)
            case MbarrierWait(place, turn):
                self._arrived(place, turn)
            case CpAsyncCommit():
                self.fn.module.declare(COMMIT, "void ()")
                self.fn.emit(f"call void @{COMMIT}()")
            case CpAsyncWait(groups):
                self._await(groups)
            case Store() | Tile() if not self.in_thread:
                self._in_thread(Var(THREAD).eq(const(0)), stmt)
            case _:
                super().emit(stmt)

    def allocate(self, buffer: Buffer) -> None:
        """Give a buffer its memory."""
        self.expressions.pointers[buffer.name] = self._stack(buffer)

    def _await(self, groups: int) -> None:
        """Wait for the copies of this thread, but for some groups."""
        self.fn.module.declare(AWAIT, "void (i32)")
        self.fn.emit(f"call void @{AWAIT}(i32 {groups})")
        if self.proxy:
            self.fn.emit(f'call void asm sideeffect "{PROXY}", "~{{memory}}"()')
        self.expressions.loads.forget()

    def _arrived(self, place: Region, turn: Expr) -> None:
        """Wait for the copies that a place counts."""
        ex = self.expressions
        ex.begin_statement()
        pointer, parity = next(self._operand(place, False)), ex.value(turn)
        self.wait_at(pointer, self.fn.let(f"trunc i64 {parity} to i32", "n"))

    def wait_at(self, pointer: str, odd: str) -> None:
        """Wait for a turn, even or odd, of what a place counts."""
        near = self.fn.let(f"addrspacecast {pointer} to ptr addrspace({SHARED_SPACE})", "n")
        given = f"ptr addrspace({SHARED_SPACE}) {near}, i32 {odd}"
        self.fn.emit(f'call void asm sideeffect "{ARRIVED}", "l,r,~{{memory}}"({given})')
        self.expressions.loads.forget()

    def _instruction(self, tile: Tile) -> None:
        """A copy by the engine is called with its matrix and where in it the tile begins."""
        found = tensor_map(tile, self.params)
        if found is None:
            super()._instruction(tile)
            return
        ex = self.expressions
        self.fn.module.include(tile.intrinsic, INTRINSICS[tile.intrinsic].llvm)
        ex.begin_statement()
        source, counter = tile.srcs
        ((start, row),) = source.ranges
        at = [ex.value(simplify(e)) for e in (start % row, start // row)]
        narrow = [f"i32 {self.fn.let(f'trunc i64 {v} to i32', 'n')}" for v in at]
        to, count = (next(self._operand(r, False)) for r in (tile.dst, counter))
        matrix = f"ptr %m{self.launch.maps.index(found)}"
        arguments = ", ".join((to, matrix, *narrow, count))
        self.fn.emit(f"call void @tw.{tile.intrinsic}({arguments})")
        ex.loads.forget()

    def _thread_loop(self, loop: For, share: ThreadMapping) -> None:
        ex = self.expressions
        index = share.index(Var(THREAD), self.launch.threads)
        with self.fn.scope():
            self.bind(loop, ex.value(index))
            if share.is_full:
                outer, self.in_thread = self.in_thread, True
                self.emit(loop.body)
                self.in_thread = outer
            else:
                ex.ranges[loop.name] = Interval(0, share.modulus // share.stride)
                # Whole warps have all that they need to exchange something.
                apart = self.apart or share.active % WARP != 0
                self._in_thread(Var(loop.name) < share.extent, loop.body, apart)

    def _combine(self, loop: For) -> None:
        """Let all threads of a group have the sum of what each has."""
        ex, share = self.expressions, self.mappings[loop.name]
        if self.apart:
            raise CodegenError("gpu.combine", f"some threads do not come to loop {loop.name}")
        found = Combination(loop, share, self.launch.threads, set(ex.loads.own))
        with self.fn.scope():
            self.bind(loop, ex.value(share.index(Var(THREAD), self.launch.threads)))
            value = emit_combined(ex, found, self._variable)
            ex.begin_statement()
            emit_store(ex, Store(found.store.buffer, found.store.indices, value))
        if self.loops and found.count > WARP:
            barrier(ex)  # the room for sums of warps is used again

    def _in_thread(self, condition: Expr, stmt: Stmt, apart: bool = True) -> None:
        """Let those threads run a statement for which a condition holds."""
        self.expressions.begin_statement()
        outer, self.in_thread, self.apart = (self.in_thread, self.apart), True, apart
        self._branch(self.expressions.value(condition), stmt, None)
        self.in_thread, self.apart = outer

    def _stack(self, buffer: Buffer) -> str:
        return self._shared(buffer) if buffer.scope == "shared" else super()._stack(buffer)

    def _shared(self, buffer: Buffer) -> str:
        """The address of a variable in the memory that the threads of the block share."""
        start, size = self.places[buffer.name]
        self.expressions.alignments[buffer.name] = ALIGNMENT
        if not self.launch.shared:
            return self._variable(size)
        space, name = f"addrspace({SHARED_SPACE})", f"@{self.launch.name}$shared"
        self.fn.module.declarations[name] = (
            f"{name} = external {space} global [0 x i8], align {DYNAMIC_ALIGNMENT}"
        )
        place = f"getelementptr (i8, ptr {space} {name}, i64 {start})"
        return f"addrspacecast (ptr {space} {place} to ptr)"

    def _variable(self, size: int) -> str:
        """So many bytes of that memory, apart from what is laid out in it."""
        space = f"addrspace({SHARED_SPACE})"
        name = f"@{self.fn.fresh(f'{self.launch.name}$shared')[1:]}"
        self.fn.module.declarations[name] = (
            f"{name} = internal {space} global [{size} x i8] undef, align {ALIGNMENT}"
        )
        return f"addrspacecast (ptr {space} {name} to ptr)"
