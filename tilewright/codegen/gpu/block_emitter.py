"""The statements of a block of threads → LLVM for NVIDIA GPUs.

Thread loops become expressions of the thread's index, with a branch where there are more threads
than iterations. Statements outside of thread loops run on the first thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import Expr, Var, const
from tilewright.arith.simplify import simplify
from tilewright.codegen.gpu.allreduce import AllReduce, emit_allreduce
from tilewright.codegen.gpu.barriers import barrier
from tilewright.codegen.gpu.launches import (
    DYNAMIC_ALIGNMENT,
    Launch,
    shared_offsets,
    tensor_map,
    uses_async_proxy,
)
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.codegen.llvm.loads_stores import emit_store
from tilewright.codegen.llvm.statements import StatementEmitter
from tilewright.core.dtypes import DType
from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.storage_scope import ALIGNMENT
from tilewright.ir.loop.nodes import (
    Barrier,
    Buffer,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    MbarrierWait,
    Region,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.thread_mapping import THREAD, WARP_SIZE, ThreadMapping, thread_mappings
from tilewright.schedule.intrin.table import INTRINSICS

# The address space of shared memory.
SHARED_SPACE = 3
CP_ASYNC_COMMIT = "llvm.nvvm.cp.async.commit.group"
CP_ASYNC_WAIT = "llvm.nvvm.cp.async.wait.group"
# Makes stores of this thread to shared memory visible to the async proxy (wgmma, TMA).
ASYNC_PROXY_FENCE = "fence.proxy.async.shared::cta;"
# Spins until the phase of a parity is complete.
MBARRIER_TRY_WAIT = (
    "{\\0A.reg .pred p;\\0AWAIT:\\0A"
    "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1;\\0A"
    "@p bra DONE;\\0Abra WAIT;\\0ADONE:\\0A}"
)


class BlockEmitter(StatementEmitter):
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
        self.shared_offsets = shared_offsets(launch.body)
        self.async_proxy = uses_async_proxy(launch.body)
        # Whether the code at this point is that of each thread by itself.
        self.single_thread = launch.threads == 1
        # The depth of loops around phases.
        self.loop_depth = 0
        # Whether some threads of a warp skip the code at this point.
        self.divergent = False

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case For(kind="thread" | "warp"):
                self._thread_loop(stmt, self.mappings[stmt.name])
            case For(kind="allreduce"):
                self._allreduce(stmt)
            case For() if not self.single_thread:
                self.loop_depth += 1
                super()._statement(stmt)
                self.loop_depth -= 1
            case Barrier():
                barrier(self.expressions)
            case MbarrierWait(mbarrier, parity):
                self._wait_phase(mbarrier, parity)
            case CpAsyncCommit():
                self.fn.module.declare(CP_ASYNC_COMMIT, "void ()")
                self.fn.emit(f"call void @{CP_ASYNC_COMMIT}()")
            case CpAsyncWait(pending):
                self._cp_async_wait(pending)
            case Store() | Tile() if not self.single_thread:
                self._on_some(Var(THREAD).eq(const(0)), stmt)
            case _:
                super()._statement(stmt)

    def allocate(self, buffer: Buffer) -> None:
        """Give a buffer its memory."""
        self.expressions.pointers[buffer.name] = self._stack(buffer)

    def _cp_async_wait(self, pending: int) -> None:
        """Wait for the copies of this thread, but for the last `pending` groups."""
        self.fn.module.declare(CP_ASYNC_WAIT, "void (i32)")
        self.fn.emit(f"call void @{CP_ASYNC_WAIT}(i32 {pending})")
        if self.async_proxy:
            self.fn.emit(f'call void asm sideeffect "{ASYNC_PROXY_FENCE}", "~{{memory}}"()')
        self.expressions.loads.forget()

    def _wait_phase(self, mbarrier: Region, parity: Expr) -> None:
        ex = self.expressions
        ex.begin_statement()
        pointer, bit = next(self._operand(mbarrier, False)), ex.value(parity)
        self.mbarrier_wait(pointer, self.fn.let(f"trunc i64 {bit} to i32", "n"))

    def mbarrier_wait(self, pointer: str, parity: str) -> None:
        """Wait until the phase of a parity of an mbarrier is complete."""
        near = self.fn.let(f"addrspacecast {pointer} to ptr addrspace({SHARED_SPACE})", "n")
        given = f"ptr addrspace({SHARED_SPACE}) {near}, i32 {parity}"
        self.fn.emit(f'call void asm sideeffect "{MBARRIER_TRY_WAIT}", "l,r,~{{memory}}"({given})')
        self.expressions.loads.forget()

    def _instruction(self, tile: Tile) -> None:
        """A TMA copy takes its tensor map and the coordinates of the tile."""
        found = tensor_map(tile, self.params)
        if found is None:
            super()._instruction(tile)
            return
        ex = self.expressions
        self.fn.module.include(tile.intrinsic, INTRINSICS[tile.intrinsic].llvm)
        ex.begin_statement()
        source, mbarrier = tile.srcs
        ((start, row),) = source.ranges
        at = [ex.value(simplify(e)) for e in (start % row, start // row)]
        narrow = [f"i32 {self.fn.let(f'trunc i64 {v} to i32', 'n')}" for v in at]
        to, counted = (next(self._operand(r, False)) for r in (tile.dst, mbarrier))
        matrix = f"ptr %m{self.launch.maps.index(found)}"
        arguments = ", ".join((to, matrix, *narrow, counted))
        self.fn.emit(f"call void @tw.{tile.intrinsic}({arguments})")
        ex.loads.forget()

    def _thread_loop(self, loop: For, mapping: ThreadMapping) -> None:
        ex = self.expressions
        index = mapping.index(Var(THREAD), self.launch.threads)
        with self.fn.scope():
            self.bind(loop, ex.value(index))
            if mapping.is_full:
                outer, self.single_thread = self.single_thread, True
                self.emit(loop.body)
                self.single_thread = outer
            else:
                ex.ranges[loop.name] = Interval(0, mapping.modulus // mapping.stride)
                # Whole warps may still shuffle.
                divergent = self.divergent or mapping.active % WARP_SIZE != 0
                self._on_some(Var(loop.name) < mapping.extent, loop.body, divergent)

    def _allreduce(self, loop: For) -> None:
        """Give every thread of a group the reduction of their values."""
        ex, mapping = self.expressions, self.mappings[loop.name]
        if self.divergent:
            raise CodegenError("gpu.allreduce", f"some threads do not reach loop {loop.name}")
        found = AllReduce(loop, mapping, self.launch.threads, set(ex.loads.own))
        with self.fn.scope():
            self.bind(loop, ex.value(mapping.index(Var(THREAD), self.launch.threads)))
            value = emit_allreduce(ex, found, self._variable)
            ex.begin_statement()
            emit_store(ex, Store(found.store.buffer, found.store.indices, value))
        if self.loop_depth and found.count > WARP_SIZE:
            barrier(ex)  # its shared memory is used again

    def _on_some(self, condition: Expr, stmt: Stmt, divergent: bool = True) -> None:
        """Run a statement on the threads for which a condition holds."""
        self.expressions.begin_statement()
        outer = self.single_thread, self.divergent
        self.single_thread, self.divergent = True, divergent
        self._branch(self.expressions.value(condition), stmt, None)
        self.single_thread, self.divergent = outer

    def _stack(self, buffer: Buffer) -> str:
        return self._shared(buffer) if buffer.scope == "shared" else super()._stack(buffer)

    def _shared(self, buffer: Buffer) -> str:
        """The address of a variable in shared memory."""
        start, size = self.shared_offsets[buffer.name]
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
        """A static variable of so many bytes in shared memory."""
        space = f"addrspace({SHARED_SPACE})"
        name = f"@{self.fn.fresh(f'{self.launch.name}$shared')[1:]}"
        self.fn.module.declarations[name] = (
            f"{name} = internal {space} global [{size} x i8] undef, align {ALIGNMENT}"
        )
        return f"addrspacecast (ptr {space} {name} to ptr)"
