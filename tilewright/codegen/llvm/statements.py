"""Plain loops → LLVM functions.

A kernel becomes `void @name(buffers..., sizes...)`. A parallel loop becomes a function of its own,
`void @name.pN(ptr context, i64 begin, i64 end)`, which the thread pool calls with a share of the
iterations; everything it mentions travels in the context, an array of 8-byte slots on the caller's
stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import Const, as_int
from tilewright.arith.walk import free_vars
from tilewright.codegen.cpu.parallel_cost import loop_work
from tilewright.codegen.llvm.builder import FunctionText, ModuleText
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.codegen.llvm.loads_stores import emit_store
from tilewright.codegen.llvm.types import memory_type
from tilewright.core.dtypes import DType
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import (
    Alloc,
    Buffer,
    For,
    Func,
    If,
    Region,
    Seq,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.walk import buffers, expressions, loops, statements, touched_buffers
from tilewright.schedule.intrin.table import INTRINSICS

# Stack memory is aligned for the widest vectors of any target.
STACK_ALIGNMENT = 64


def emit_func(module: ModuleText, func: Func, sizes: Sequence[str]) -> None:
    """Emit a finalized function into `module`; it takes its buffers, then `sizes`.

    Pointers are not marked as distinct: an output may share its memory with an input.
    """
    params = [(f"%b{i}", "ptr") for i in range(len(func.params))]
    params += [(f"%s{i}", "i64") for i in range(len(sizes))]
    fn = FunctionText(module, func.name, params)
    emitter = ExprEmitter(
        fn,
        {name: f"%s{i}" for i, name in enumerate(sizes)},
        {p.name: f"%b{i}" for i, p in enumerate(func.params)},
        {s.buffer.name for _, s in statements(func.body) if isinstance(s, Alloc)},
    )
    emitter.ranges = {name: Interval(0, None) for name in sizes}
    dtypes = {name: b.dtype for name, b in buffers(func).items()}
    StatementEmitter(emitter, func.name, dtypes).emit(func.body)
    fn.finish("nounwind")


def _mentioned(loop: For) -> tuple[set[str], set[str]]:
    """The buffers and variables that a loop's body uses and does not define."""
    names = {name for e in expressions(loop.body) for name in free_vars(e)}
    reads, writes = touched_buffers(loop.body)
    return reads | writes, names - {loop.name, *(inner.name for inner in loops(loop.body))}


class StatementEmitter:
    """Emits statements into one function; parallel loops start functions of their own."""

    def __init__(self, expressions: ExprEmitter, kernel: str, dtypes: Mapping[str, DType]) -> None:
        self.expressions = expressions
        self.fn = expressions.fn
        self.kernel = kernel
        self.dtypes = dtypes

    def emit(self, stmt: Stmt) -> None:
        """Emit one statement."""
        match stmt:
            case Seq(stmts):
                for s in stmts:
                    self.emit(s)
            case For(kind="parallel"):
                self._parallel(stmt)
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
                self.expressions.pointers[buffer.name] = self._stack(buffer)
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
        """The address of an operand, and the bytes from row to row if the rows may lie apart."""
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
        return self.fn.at_entry(f"alloca [{max(size, 1)} x {kind}], align {STACK_ALIGNMENT}", "a")

    def _loop(self, loop: For) -> None:
        if isinstance(loop.extent, Const) and loop.extent.value == 1:
            with self.fn.scope():
                self.bind(loop, "0")
                self.emit(loop.body)
            return
        self.expressions.begin_statement()
        self._count(loop, "0", self.expressions.value(loop.extent))

    def bind(self, loop: For, register: str) -> None:
        """Let a loop be in the iteration whose number a register has."""
        self.expressions.values[loop.name] = register
        extent = as_int(loop.extent)
        self.expressions.ranges[loop.name] = Interval(0, None if extent is None else extent - 1)

    def _count(self, loop: For, begin: str, end: str) -> None:
        with self.fn.count(begin, end) as counter:
            self.bind(loop, counter)
            self.emit(loop.body)

    def _branch(self, condition: str, then: Stmt, orelse: Stmt | None) -> None:
        fn = self.fn
        yes, no, done = fn.label("then"), fn.label("else"), fn.label("end")
        fn.emit(f"br i1 {condition}, label %{yes}, label %{no if orelse else done}")
        for label, branch in ((yes, then), (no, orelse)):
            if branch is not None:
                fn.start(label)
                with fn.scope():
                    self.emit(branch)
                fn.emit(f"br label %{done}")
        fn.start(done)

    def _parallel(self, loop: For) -> None:
        """Outline the body, pack what it needs into the context, call the pool."""
        ex, fn = self.expressions, self.fn
        ex.begin_statement()
        touched, names = _mentioned(loop)
        pointers = {b: p for b, p in ex.pointers.items() if b in touched}
        values = {n: v for n, v in ex.values.items() if n in names}
        slots = len(pointers) + len(values)
        context = fn.at_entry(f"alloca [{max(slots, 1)} x i64], align 8", "ctx")
        for index, (kind, register) in enumerate(
            [("ptr", p) for p in pointers.values()] + [("i64", v) for v in values.values()]
        ):
            slot = fn.let(f"getelementptr inbounds i64, ptr {context}, i64 {index}")
            fn.emit(f"store {kind} {register}, ptr {slot}, align 8")
        name = f"{self.kernel}.{fn.label('p')}"
        self._outline(loop, name, list(pointers), list(values))
        self._share(loop, f"ptr @{name}, ptr {context}")
        ex.loads.forget()
        fn.called()

    def _share(self, loop: For, job: str) -> None:
        """Call the pool; where the work depends on sizes, it decides whether to share it."""
        ex, fn = self.expressions, self.fn
        arguments = f"{job}, i64 {ex.value(loop.extent)}"
        symbolic = any(as_int(inner.extent) is None for inner in loops(loop))
        work = loop_work(loop) if symbolic else None
        if work is None or not free_vars(work) <= set(ex.values):
            fn.module.declare("tw_parallel", "void (ptr, ptr, i64)")
            fn.emit(f"call void @tw_parallel({arguments})")
        else:
            fn.module.declare("tw_parallel_work", "void (ptr, ptr, i64, i64)")
            fn.emit(f"call void @tw_parallel_work({arguments}, i64 {ex.value(work)})")

    def _outline(self, loop: For, name: str, pointers: list[str], values: list[str]) -> None:
        """The function of a parallel loop: unpack the context, run a share of the iterations."""
        span = [("%context", "ptr"), ("%begin", "i64"), ("%end", "i64")]
        worker = FunctionText(self.fn.module, name, span)
        kinds = ["ptr"] * len(pointers) + ["i64"] * len(values)
        registers = []
        for index, kind in enumerate(kinds):
            slot = worker.let(f"getelementptr inbounds i64, ptr %context, i64 {index}")
            registers.append(worker.let(f"load {kind}, ptr {slot}, align 8"))
        emitter = ExprEmitter(
            worker,
            dict(zip(values, registers[len(pointers) :], strict=True)),
            dict(zip(pointers, registers, strict=False)),
            self.expressions.loads.own,
        )
        emitter.ranges = dict(self.expressions.ranges)
        StatementEmitter(emitter, name, self.dtypes)._count(loop, "%begin", "%end")
        worker.finish("nounwind")
