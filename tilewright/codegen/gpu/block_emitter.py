"""The statements of a block of threads → LLVM for NVIDIA GPUs.

Thread loops become expressions of the thread's index, with a branch where there are more threads
than iterations. Statements outside of thread loops run on the first thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tilewright.arith.bounds import Interval, bound
from tilewright.arith.expr import Expr, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.codegen.gpu.allreduce import AllReduce, emit_allreduce
from tilewright.codegen.gpu.launches import (
    DYNAMIC_ALIGNMENT,
    Launch,
    shared_offsets,
    tensor_map,
    tma_coordinates,
    uses_async_proxy,
)
from tilewright.codegen.gpu.synchronization import (
    SHARED_SPACE,
    await_flag,
    barrier,
    mbarrier_arrive,
    mbarrier_init,
    mbarrier_wait,
    set_max_registers,
    signal_flag,
)
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.codegen.llvm.loads_stores import emit_store
from tilewright.codegen.llvm.statements import StatementEmitter
from tilewright.core.dtypes import DType
from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.storage_scope import ALIGNMENT
from tilewright.ir.loop.nodes import (
    Alloc,
    Await,
    Barrier,
    Buffer,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    If,
    Let,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Region,
    Role,
    Roles,
    Seq,
    Signal,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.thread_mapping import (
    THREAD,
    WARP_SIZE,
    ThreadMapping,
    private_buffers,
    thread_mappings,
)
from tilewright.ir.loop.walk import touched_buffers
from tilewright.schedule.intrin.table import INTRINSICS

CP_ASYNC_COMMIT = "llvm.nvvm.cp.async.commit.group"
CP_ASYNC_WAIT = "llvm.nvvm.cp.async.wait.group"
# Makes stores of this thread to shared memory visible to the async proxy (wgmma, TMA).
ASYNC_PROXY_FENCE = "fence.proxy.async.shared::cta;"
# Programmatic dependent launch: wait for the launches before, then let the next one start.
PDL_WAIT = "griddepcontrol.wait;\\0Agriddepcontrol.launch_dependents;"


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
        # How many threads run the code at this point, and the number of each, from 0.
        self.threads, self.thread = launch.threads, Var(THREAD)
        # Each thread has its own: statements outside of thread loops write all of them.
        self.private = private_buffers(launch.body)
        self.shared_offsets = shared_offsets(launch.body)
        self.async_proxy = uses_async_proxy(launch.body)
        # Whether the code at this point is that of each thread by itself.
        self.single_thread = launch.threads == 1
        # The depth of loops around phases.
        self.loop_depth = 0
        # Whether some threads of a warp skip the code at this point.
        self.divergent = False
        # Whether the launches before are to be waited for, once memory is touched.
        self.waits_for_launches = False

    def emit(self, stmt: Stmt) -> None:
        """Emit one statement; before the first that touches global memory, wait for launches."""
        if self.waits_for_launches and not isinstance(stmt, Alloc | Seq) and self._is_global(stmt):
            self.fn.emit(f'call void asm sideeffect "{PDL_WAIT}", "~{{memory}}"()')
            self.waits_for_launches = False
        super().emit(stmt)

    def _is_global(self, stmt: Stmt) -> bool:
        """Whether a statement touches global memory: parameters."""
        return not set[str].union(*touched_buffers(stmt)).isdisjoint(p.name for p in self.params)

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                self._any_loop(stmt)
            case Roles(roles):
                self._roles(roles)
            case Let(name, value, body):
                self._let(name, value)
                self.emit(body)
            case Store(buffer) if buffer in self.private:
                super()._statement(stmt)
            case Store() | Tile() | MbarrierInit() if not self.single_thread:
                self._on_some(self.thread.eq(const(0)), stmt)
            case Store() | Tile() | If() | Seq() | Alloc():
                super()._statement(stmt)
            case _:
                self._synchronize(stmt)

    def _any_loop(self, loop: For) -> None:
        match loop.kind:
            case "thread" | "warp":
                self._thread_loop(loop, self.mappings[loop.name])
            case "allreduce":
                self._allreduce(loop)
            case "group":
                self._groups(loop)
            case _:
                nested = not self.single_thread
                self.loop_depth += nested
                super()._statement(loop)
                self.loop_depth -= nested

    def allocate(self, buffer: Buffer) -> None:
        """Give a buffer its memory."""
        self.expressions.place(buffer.name, self._stack(buffer))

    def _cp_async_wait(self, pending: int) -> None:
        """Wait for the copies of this thread, but for the last `pending` groups."""
        self.fn.module.declare(CP_ASYNC_WAIT, "void (i32)")
        self.fn.emit(f"call void @{CP_ASYNC_WAIT}(i32 {pending})")
        if self.async_proxy:
            self.fn.emit(f'call void asm sideeffect "{ASYNC_PROXY_FENCE}", "~{{memory}}"()')
        self.expressions.loads.forget()

    def _synchronize(self, stmt: Stmt) -> None:
        ex = self.expressions
        ex.begin_statement()
        thread = ex.value(self.thread)
        match stmt:
            case Barrier():
                barrier(ex)
            case CpAsyncCommit():
                self.fn.module.declare(CP_ASYNC_COMMIT, "void ()")
                self.fn.emit(f"call void @{CP_ASYNC_COMMIT}()")
            case CpAsyncWait(pending):
                self._cp_async_wait(pending)
            case MbarrierInit(mbarriers, count):
                ((_, extent),) = mbarriers.ranges
                mbarrier_init(ex, self._address(mbarriers), as_int(extent) or 0, count)
            case MbarrierArrive(mbarrier, mask):
                where = "true" if mask is None else ex.value(mask)
                mbarrier_arrive(ex, self._address(mbarrier), thread, where)
            case MbarrierWait(mbarrier, parity):
                mbarrier_wait(ex, self._address(mbarrier), self._narrow(parity))
            case Signal(flag):
                signal_flag(ex, self._address(flag), thread)
            case Await(flag, count):
                await_flag(ex, self._address(flag), self._narrow(count))
            case _:
                raise CodegenError("codegen.statement", f"cannot emit {type(stmt).__name__}")

    def _address(self, region: Region) -> str:
        return next(self._operand(region, False)).removeprefix("ptr ")

    def _narrow(self, e: Expr) -> str:
        return self.fn.let(f"trunc i64 {self.expressions.value(e)} to i32", "n")

    def _let(self, name: str, value: Expr) -> None:
        ex = self.expressions
        ex.begin_statement()
        ex.bind(name, ex.value(value))
        ex.ranges[name] = bound(value, ex.ranges)

    def _roles(self, roles: Sequence[Role]) -> None:
        """A branch for each role; registers move from those that have less than their share."""
        fn, ex = self.fn, self.expressions
        threads = [role.warps * WARP_SIZE for role in roles]
        share = sum(role.registers * n for role, n in zip(roles, threads, strict=True))
        done = fn.label("end")
        number, first = ex.value(self.thread), 0
        for role, count in zip(roles, threads, strict=True):
            mine, others = fn.label(role.name), fn.label("others")
            if role is roles[-1]:
                fn.emit(f"br label %{mine}")
            else:
                member = fn.let(f"icmp ult i64 {number}, {first + count}")
                fn.emit(f"br i1 {member}, label %{mine}, label %{others}")
            fn.start(mine)
            if role.registers:
                grow = role.registers * sum(threads) > share
                set_max_registers(ex, role.registers, grow)
            with self._as_block(role.name, self.thread - first, count):
                self.emit(role.body)
            fn.emit(f"br label %{done}")
            if role is not roles[-1]:
                fn.start(others)
            first += count
        fn.start(done)

    def _groups(self, loop: For) -> None:
        """Each group of threads runs one iteration."""
        count = as_int(loop.extent) or 1
        threads = self.threads // count
        self.expressions.begin_statement()
        extents = {self.thread.name: const(self.threads)}
        self.bind(loop, self.expressions.value(simplify(self.thread // threads, extents)))
        with self._as_block(loop.name, self.thread % threads, threads):
            self.emit(loop.body)

    @contextmanager
    def _as_block(self, name: str, number: Expr, threads: int) -> Iterator[None]:
        """Let some threads count from 0, by a variable of their own."""
        before = self.threads, self.thread
        with self.fn.scope():
            own = Var(f"{self.thread.name}.{name}")
            self._let(own.name, simplify(number, {self.thread.name: const(self.threads)}))
            self.expressions.ranges[own.name] = Interval(0, threads - 1)
            self.threads, self.thread = threads, own
            yield
        self.threads, self.thread = before

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
        at = [ex.value(simplify(e)) for e in tma_coordinates(source)]
        narrow = [f"i32 {self.fn.let(f'trunc i64 {v} to i32', 'n')}" for v in at]
        to, counted = (next(self._operand(r, False)) for r in (tile.dst, mbarrier))
        matrix = f"ptr %m{self.launch.maps.index(found)}"
        arguments = ", ".join((to, matrix, *narrow, counted))
        self.fn.emit(f"call void @tw.{tile.intrinsic}({arguments})")
        ex.loads.forget()

    def _thread_loop(self, loop: For, mapping: ThreadMapping) -> None:
        ex = self.expressions
        index = mapping.index(self.thread, self.threads)
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
            self.bind(loop, ex.value(mapping.index(self.thread, self.threads)))
            for store in emit_allreduce(ex, found, self._variable):
                ex.begin_statement()
                emit_store(ex, store)
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
