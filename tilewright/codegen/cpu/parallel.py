"""Finalized functions → LLVM functions for CPUs, with parallel and other loops outlined.

A kernel becomes `void @name(buffers..., sizes...)`. A parallel loop becomes a function of its own,
`void @name.pN(ptr context, i64 begin, i64 end)`, which the thread pool calls for chunks of the
iterations; everything it mentions travels in the context, an array of 8-byte slots on the caller's
stack. A loop annotated `outlined` becomes such a function as well, which is called for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import Binary, Expr, Var, as_int
from tilewright.arith.operators import DIVISIONS
from tilewright.arith.walk import free_vars, loads, rewrite
from tilewright.codegen.cpu.parallel_cost import loop_work
from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.codegen.llvm.statements import StatementEmitter
from tilewright.core.dtypes import I64
from tilewright.ir.loop.annotations import OUTLINED
from tilewright.ir.loop.nodes import Alloc, For, Func, Stmt
from tilewright.ir.loop.walk import (
    buffers,
    expressions,
    loops,
    map_exprs,
    statements_in,
    touched_buffers,
)


def emit_func(module: ModuleBuilder, func: Func, sizes: Sequence[str]) -> None:
    """Emit a finalized function into `module`; it takes its buffers, then `sizes`.

    Pointers are not `noalias`: an output may be computed in place of an input.
    """
    params = [(f"%b{i}", "ptr") for i in range(len(func.params))]
    params += [(f"%s{i}", "i64") for i in range(len(sizes))]
    fn = FunctionBuilder(module, func.name, params, hoists=True)
    emitter = ExprEmitter(
        fn,
        {name: f"%s{i}" for i, name in enumerate(sizes)},
        {p.name: f"%b{i}" for i, p in enumerate(func.params)},
        {s.buffer.name for s in statements_in(func.body) if isinstance(s, Alloc)},
    )
    emitter.ranges = {name: Interval(0, None) for name in sizes}
    dtypes = {name: b.dtype for name, b in buffers(func).items()}
    CpuEmitter(emitter, func.name, dtypes).emit(func.body)
    fn.finish("nounwind")


def _free_names(loop: For) -> tuple[set[str], set[str]]:
    """The buffers and variables that a loop's body uses and does not define."""
    names = {name for e in expressions(loop.body) for name in free_vars(e)}
    reads, writes = touched_buffers(loop.body)
    return reads | writes, names - {loop.name, *(inner.name for inner in loops(loop.body))}


class CpuEmitter(StatementEmitter):
    """Emits statements into one function; parallel loops start functions of their own."""

    def _statement(self, stmt: Stmt) -> None:
        if isinstance(stmt, For) and stmt.kind == "parallel":
            self._parallel(stmt)
        elif isinstance(stmt, For) and OUTLINED.is_on(stmt):
            self._call(stmt)
        else:
            super()._statement(stmt)

    def _parallel(self, loop: For) -> None:
        """Outline the body and call the pool."""
        name, context = self._job(loop)
        self._dispatch(loop, f"ptr @{name}, ptr {context}")
        self._returned()

    def _call(self, loop: For) -> None:
        """Outline the body and call it for all iterations."""
        self.expressions.begin_statement()
        name, context = self._job(self._divided_before(loop))
        extent = self.expressions.value(loop.extent)
        self.fn.emit(f"call void @{name}(ptr {context}, i64 0, i64 {extent})")
        self._returned()

    def _divided_before(self, loop: For) -> For:
        """The loop without the divisions that do not change in it: the caller mostly has them."""
        inner = {loop.name, *(inside.name for inside in loops(loop.body))}
        values = self.expressions.values

        def quotient(e: Expr) -> Expr | None:
            if not isinstance(e, Binary) or e.op not in DIVISIONS or e.dtype != I64 or e.lanes > 1:
                return None
            if free_vars(e) & inner or next(loads(e), None) is not None:
                return None
            name = f"{loop.name}.quotient{len(values)}"
            self.expressions.bind(name, self.expressions.value(e))
            return Var(name)

        memo: dict[Expr, Expr] = {}
        return replace(loop, body=map_exprs(loop.body, lambda e: rewrite(e, quotient, memo)))

    def _returned(self) -> None:
        """Forget what a function that was called may have changed."""
        self.expressions.loads.forget()
        self.fn.called()

    def _job(self, loop: For) -> tuple[str, str]:
        """The function of an outlined loop, and the context with what it needs."""
        ex, fn = self.expressions, self.fn
        ex.begin_statement()
        touched, names = _free_names(loop)
        pointers = {b: p for b, p in ex.pointers.items() if b in touched}
        values = {n: v for n, v in ex.values.items() if n in names}
        slots = len(pointers) + len(values)
        context = fn.entry_alloca(f"[{max(slots, 1)} x i64], align 8", "ctx")
        for index, (kind, register) in enumerate(
            [("ptr", p) for p in pointers.values()] + [("i64", v) for v in values.values()]
        ):
            slot = fn.let(f"getelementptr inbounds i64, ptr {context}, i64 {index}")
            fn.emit(f"store {kind} {register}, ptr {slot}, align 8")
        name = f"{self.kernel}.{fn.label('p')}"
        self._outline(loop, name, list(pointers), list(values))
        return name, context

    def _dispatch(self, loop: For, job: str) -> None:
        """Call the pool; where the work depends on sizes, it decides whether to run in parallel."""
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
        """The function of a loop: unpack the context, run a chunk of the iterations."""
        span = [("%context", "ptr"), ("%begin", "i64"), ("%end", "i64")]
        worker = FunctionBuilder(self.fn.module, name, span, hoists=True)
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
        worker.enter(loop)
        CpuEmitter(emitter, name, self.dtypes)._count(loop, "%begin", "%end")
        worker.finish("nounwind noinline" if OUTLINED.is_on(loop) else "nounwind")
