"""Statements → LLVM instructions: loops, branches, stores, stack buffers, intrinsic calls.

`codegen/cpu/parallel.py` and `codegen/gpu/block_emitter.py` add what only one kind of target has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import Const, as_int
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.codegen.llvm.loads_stores import emit_store
from tilewright.codegen.llvm.prefetch import emit_prefetches, emit_row_prefetches
from tilewright.codegen.llvm.types import memory_type
from tilewright.core.dtypes import DType
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.annotations import PREFETCH, PREFETCH_ROWS, ROLLED
from tilewright.ir.loop.nodes import (
    Alloc,
    Buffer,
    For,
    If,
    Region,
    Seq,
    Stmt,
    Store,
    Tile,
)
from tilewright.schedule.intrin.table import INTRINSICS

# Stack memory is aligned for the widest vectors of any target.
STACK_ALIGNMENT = 64


class StatementEmitter:
    """Emits statements into one function."""

    def __init__(self, expressions: ExprEmitter, kernel: str, dtypes: Mapping[str, DType]) -> None:
        self.expressions = expressions
        self.fn = expressions.fn
        self.kernel = kernel
        self.dtypes = dtypes

    def emit(self, stmt: Stmt) -> None:
        """Emit one statement."""
        before = self.fn.enter(stmt)
        self._statement(stmt)
        self.fn.location = before

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Seq(stmts):
                for s in stmts:
                    self.emit(s)
            case For():
                self._loop(stmt)
            case If(cond, then, orelse):
                self.expressions.begin_statement()
                self._branch(self.expressions.value(cond), then, orelse)
            case Store(mask=mask) if mask is not None and stmt.indices[0].lanes == 1:
                self.expressions.begin_statement()
                condition = self.expressions.value(mask)
                self._branch(condition, Store(stmt.buffer, stmt.indices, stmt.value), None)
            case Store():
                self.expressions.begin_statement()
                emit_store(self.expressions, stmt)
            case Tile():
                self._instruction(stmt)
            case Alloc(buffer, body):
                self.expressions.place(buffer.name, self._stack(buffer))
                self.emit(body)
            case _:
                raise CodegenError(
                    "codegen.statement", f"cannot emit {type(stmt).__name__}; finalize comes first"
                )

    def _instruction(self, tile: Tile) -> None:
        """Call the text of an intrinsic, which is inlined, on the addresses of its operands."""
        row = INTRINSICS[tile.intrinsic]
        if row.state is not None:
            self.fn.module.include(row.state.name, row.state.llvm)
            self.fn.surround(f"tw.{row.state.name}")
        self.fn.module.include(tile.intrinsic, row.llvm)
        self.expressions.begin_statement()
        args = [a for r in (*tile.srcs, tile.dst) for a in self._operand(r, row.strided)]
        self.fn.emit(f"call void @tw.{tile.intrinsic}({', '.join(args)})")
        self.expressions.loads.forget()

    def _operand(self, region: Region, strided: bool) -> Iterator[str]:
        """The address of an operand, and its row stride in bytes if rows need not be adjacent."""
        ex, dtype = self.expressions, self.dtypes[region.buffer]
        ((start, row),) = region.ranges
        yield f"ptr {ex.element_pointer(region.buffer, dtype, start)}"
        if strided:
            yield f"i64 {ex.value(row * dtype.bytes)}"

    def _stack(self, buffer: Buffer) -> str:
        size = as_int(buffer.shape[0]) if len(buffer.shape) == 1 else None
        if size is None:
            raise CodegenError("codegen.stack", f"local buffer {buffer} must have a constant size")
        if buffer.scope == "volatile":
            self.expressions.volatile.add(buffer.name)
        kind = memory_type(buffer.dtype)
        return self.fn.entry_alloca(f"[{max(size, 1)} x {kind}], align {STACK_ALIGNMENT}", "a")

    def _loop(self, loop: For) -> None:
        if isinstance(loop.extent, Const) and loop.extent.value == 1:
            with self.fn.construct():
                self.bind(loop, "0")
                self.emit(loop.body)
            return
        self.expressions.begin_statement()
        self._count(loop, "0", self.expressions.value(loop.extent))

    def bind(self, loop: For, register: str) -> None:
        """Let a loop be in the iteration whose number a register has."""
        self.expressions.bind(loop.name, register)
        extent = as_int(loop.extent)
        self.expressions.ranges[loop.name] = Interval(0, None if extent is None else extent - 1)

    def _count(self, loop: For, begin: str, end: str) -> None:
        with self.fn.for_range(begin, end, rolled=ROLLED.is_on(loop)) as counter:
            self.bind(loop, counter)
            if PREFETCH.is_on(loop):
                emit_prefetches(self.expressions, loop)
            if PREFETCH_ROWS.is_on(loop):
                emit_row_prefetches(self.expressions, loop)
            self.emit(loop.body)

    def _branch(self, condition: str, then: Stmt, orelse: Stmt | None) -> None:
        fn = self.fn
        yes, no, done = fn.label("then"), fn.label("else"), fn.label("end")
        with fn.construct():
            fn.emit(f"br i1 {condition}, label %{yes}, label %{no if orelse else done}")
            for label, branch in ((yes, then), (no, orelse)):
                if branch is not None:
                    fn.start(label)
                    with fn.branch():
                        self.emit(branch)
                    fn.emit(f"br label %{done}")
        fn.start(done)
