"""Loop functions as Python source: what the interpreter runs.

for i in serial(N) { C[i] = A[i] }          for v1_i in range(size0):
                                                if not (0 <= v1_i < b0_0): ...
                                                t2 = b0[v1_i]
                                                ...
                                                b1[v1_i] = t2
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.arith.expr import TRUE, Expr
from tilewright.arith.walk import free_vars
from tilewright.core.node import node
from tilewright.ir.loop.interp.roles import FactsOf, RoleWriter
from tilewright.ir.loop.nodes import (
    Alloc,
    Await,
    Barrier,
    Block,
    Buffer,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    Func,
    If,
    Let,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Roles,
    Seq,
    Signal,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.text import print_stmt
from tilewright.ir.loop.thread_mapping import (
    ALLREDUCE,
    FRAGMENT,
    GRID,
    GROUP,
    THREAD_KINDS,
    WARP_SIZE,
    private_buffers,
    thread_mappings,
    threads_of,
)
from tilewright.ir.loop.tiles import expand_tile, is_copy
from tilewright.ir.loop.walk import accesses, blocks, touched_buffers
from tilewright.ir.scalar_semantics import Array, undefined

# Python allows 20 loops in one function; deeper ones continue in a nested function.
_LOOPS_PER_FUNCTION = 15


@node
class Compiled:
    """A loop function ready to run in place, on buffers and sizes by name; the sizes it needs."""

    run: Callable[[Mapping[str, Array], Mapping[str, int]], None]
    sizes: tuple[str, ...]


def compile_func(func: Func, facts: FactsOf | None = None) -> Compiled:
    """`func` as a Python function; with `facts` of its tiles, only what synchronizes roles."""
    writer = _Writer(func, facts)
    for b in func.params:
        writer.bind(b, f"buffers[{b.name!r}]")
    start = len(writer.lines)
    writer.stmt(func.body)
    sizes = [f"    {name} = sizes[{size!r}]" for size, name in writer.free.items()]
    body = [*writer.lines[:start], *sizes, *writer.lines[start:], "    return None"]
    source = "\n".join(["def run(buffers, sizes):", *body])
    exec(compile(source, f"<{func.name}>", "exec"), writer.scope)
    return Compiled(writer.scope["run"], tuple(writer.free))


class _Writer(RoleWriter):
    def __init__(self, func: Func, facts: FactsOf | None) -> None:
        super().__init__(func, facts)
        self.loops = 0
        self.extents: dict[str, Expr] = {}
        self.threads = threads_of(func.body)
        self.mappings = thread_mappings(func.body, self.threads)
        self.private = private_buffers(func.body) if self.mappings else set()
        # The number of the running thread, and the private buffers of all threads.
        self.thread = "0"
        self.copies: dict[str, str] = {}

    def bind(self, b: Buffer, formula: str) -> None:
        """Name a buffer and its dimensions."""
        name = self.buffers[b.name] = self.fresh("b")
        self.line(f"{name} = {formula}")
        if b.shape:
            dims = "".join(f"{name}_{n}, " for n in range(len(b.shape)))
            self.line(f"{dims}= {name}.shape")

    def stmt(self, s: Stmt) -> None:
        """Write a statement; nothing computed before it is known in it but what is around it."""
        _STATEMENTS[type(s)](self, s)

    def seq(self, s: Seq) -> None:
        for child in s.stmts:
            self.stmt(child)

    def variable(self, name: str) -> str:
        python_name = f"{self.fresh('v')}_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"
        self.variables[name] = python_name
        return python_name

    def loop(self, s: For) -> None:
        self.forget()
        extent = self.atom(s.extent)
        self.loops += 1
        if self.loops % _LOOPS_PER_FUNCTION == 0:
            self.deeper(s, extent)
        else:
            self.plain_loop(s, extent)
        self.loops -= 1
        self.forget()

    def plain_loop(self, s: For, extent: str) -> None:
        if s.kind in THREAD_KINDS and not self.in_threads and self.is_silent(s):
            return self.touched(s)
        if s.kind == ALLREDUCE:
            return self.allreduce(s, extent)
        if s.kind == GROUP:
            return self.groups(s, extent)
        if s.kind == GRID:
            with self.launched(s):
                return self.iterations(s, extent)
        return self.iterations(s, extent)

    def iterations(self, s: For, extent: str) -> None:
        """A loop, of blocks, threads or of itself."""
        variable, outer, copies = self.variable(s.name), self.thread, dict(self.copies)
        self.extents[variable] = s.extent
        with self.nested(f"for {variable} in range({extent}):"):
            self.forget()
            if s.kind == GRID:
                self.enter_lockstep(variable)
                self.enter_block(s, variable)
                self.block_index = variable
            if s.kind in THREAD_KINDS:
                with self.distributed(s, f"{outer} + {variable} * {self.mappings[s.name].stride}"):
                    self.stmt(s.body)
            else:
                self.stmt(s.body)
        self.copies = copies
        if s.kind in THREAD_KINDS:
            self.enter_thread(outer)

    @contextmanager
    def distributed(self, s: For, thread: str) -> Iterator[None]:
        """Statements of a thread."""
        if not self.in_threads:
            self.touched(s.body)
        before, self.thread, self.in_threads = (self.thread, self.in_threads), thread, True
        self.enter_thread(thread)
        yield
        self.thread, self.in_threads = before

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Statements of a function of its own, whose threads count from 0."""
        before = self.loops, self.thread, self.copies
        self.loops, self.thread, self.copies = 0, "0", {}
        self.forget()
        yield
        self.loops, self.thread, self.copies = before

    def allreduce(self, s: For, extent: str) -> None:
        """Each thread goes on with what the one before has, and the last one gives it to all.

        What is only written is kept by each thread: what it has found.
        """
        variable, outer = self.variable(s.name), self.thread
        stride = self.mappings[s.name].stride
        reads, writes = touched_buffers(s.body)
        sums = [self.copies[b] for b in reads & writes if b in self.copies]
        with self.nested(f"for {variable} in range({extent}):"):
            self.forget()
            self.thread = f"{outer} + {variable} * {stride}"
            for copies in sums:
                before = f"{outer} + max({variable} - 1, 0) * {stride}"
                self.line(f"{copies}[{self.thread}] = {copies}[{before}]")
            self.enter_thread(self.thread)
            if self.lockstep:  # what they find is one access of all of them
                self.line(f"me.thread = {outer}")
            self.stmt(s.body)
        for copies in sums:
            for_all = f"for {variable} in range({extent})"
            last = f"{copies}[{outer} + ({extent} - 1) * {stride}]"
            with self.nested(f"{for_all}:"):
                self.line(f"{copies}[{self.thread}] = {last}")
        self.thread = outer
        self.enter_thread(outer)

    def deeper(self, s: For, extent: str) -> None:
        name = self.fresh("loop")
        with self.nested(f"def {name}():"):
            self.plain_loop(s, extent)
            if self.warps:
                self.line("if False:")
                self.line("    yield")
        self.line(f"yield from {name}()" if self.warps else f"{name}()")

    def branch(self, s: If) -> None:
        self.forget()
        self.site = repr(f"the condition {s.cond}")
        cond = self.atom(s.cond)
        if s.cond.lanes > 1:
            return self.lane_branch(s, cond)
        with self.nested(f"if {cond}:"):
            self.stmt(s.then)
        if s.orelse is not None:
            with self.nested("else:"):
                self.stmt(s.orelse)
        self.forget()
        return None

    def lane_branch(self, s: If, cond: str) -> None:
        """A vector condition: both branches run, each for its lanes."""
        outer = self.lane_mask
        for stmt, mask in ((s.then, cond), (s.orelse, f"~{cond}")):
            if stmt is not None:
                self.lane_mask = self.assign(mask if outer is None else f"{outer} & {mask}")
                self.stmt(stmt)
        self.lane_mask = outer

    def store(self, s: Store) -> None:
        self.forget()
        self.site = repr(print_stmt(s))
        lanes = max(e.lanes for e in (*s.indices, s.value, s.mask or TRUE))
        if lanes > 1:
            self.store_lanes(s, lanes)
        else:
            guards = [] if s.mask is None else [self.atom(s.mask)]
            guards += [] if self.lane_mask is None else [f"{self.lane_mask}.any()"]
            with self.nested(f"if {' and '.join(guards)}:" if guards else ""):
                self.store_scalar(s)
        self.forget()

    def store_scalar(self, s: Store) -> None:
        value = self.atom(s.value)
        indices = [self.atom(i) for i in s.indices]
        self.check_bounds(s.buffer, indices)
        if s.value.dtype.is_integer and self.is_index(s.value):
            value = self.wrapped(value, s.value.dtype)
        place = ", ".join(indices)
        self.accessed("write", s.buffer, f"({place},)" if place else "()")
        if s.buffer in self.copies and not self.in_threads:  # every thread does so
            self.line(f"{self.copies[s.buffer]}[:, {place}] = {value}")
        else:
            self.line(f"{self.buffers[s.buffer]}[{place or '()'}] = {value}")

    def store_lanes(self, s: Store, lanes: int) -> None:
        masks = [] if s.mask is None else [self.atom(s.mask)]
        masks += [] if self.lane_mask is None else [self.lane_mask]
        value = self.atom(s.value)
        if not masks and (part := self.slice_of(s.buffer, s.indices)) is not None:
            self.accessed("write", s.buffer, f"np.s_{part[part.index('[') :]}")
            self.line(f"{part} = {value}")
            return
        indices = f"({''.join(self.atom(i) + ', ' for i in s.indices)})"
        place = f"{s.buffer!r}, {self.buffers[s.buffer]}, {indices}, {value}"
        mask = " & ".join(masks) or "True"
        self.accessed("write", s.buffer, f"support.active_lanes({indices}, {mask}, {lanes})")
        self.line(f"support.store_lanes({place}, {mask}, {lanes}, {self.site})")

    def alloc(self, s: Alloc) -> None:
        self.forget()
        shape = "".join(f"{self.atom(d)}, " for d in s.buffer.shape)
        junk = self.constant(undefined(s.buffer.dtype))
        kind = self.constant(np.dtype(s.buffer.dtype.numpy))
        if s.buffer.name not in self.private:
            self.bind(s.buffer, f"np.full(({shape}), {junk}, {kind})")
            return self.stmt(s.body)
        copies = self.copies[s.buffer.name] = self.fresh("c")
        self.line(f"{copies} = np.full(({self.threads}, {shape}), {junk}, {kind})")
        self.line(f"{copies}_blocks = {{}}")
        self.bind(s.buffer, f"{copies}[0]")
        self.stmt(s.body)
        del self.copies[s.buffer.name]
        return None

    def enter_block(self, s: For, number: str) -> None:
        """Let private buffers that outlive it be those of a block of threads.

        One in which blocks have elements of their own may as well be the same for all.
        """
        own = {x.buffer for x in accesses(s.body) for i in x.indices if s.name in free_vars(i)}
        whole = any(blocks(s.body))  # iterators tell them apart, nothing has shrunk yet
        for name, first in list(self.copies.items()):
            if name not in own and not whole:
                copies = self.copies[name] = self.fresh("c")
                self.line(f"{copies} = {first}_blocks.setdefault({number}, {first}.copy())")
        self.enter_thread(self.thread)

    def enter_thread(self, number: str) -> None:
        """Let private buffers be those of a thread."""
        if self.lockstep:
            self.line(f"me.thread = {number}")
        for name, copies in self.copies.items():
            own = f"({number}) // {WARP_SIZE}" if self.declared[name].scope == FRAGMENT else number
            self.line(f"{self.buffers[name]} = {copies}[{own}]")

    def block(self, s: Block) -> None:
        self.forget()
        self.site = repr(f'the signature of block "{s.name}"')
        guard = "" if s.predicate is TRUE else f"if {self.atom(s.predicate)}:"
        with self.nested(guard):
            self.bind_iterators(s)
            if s.init is not None:
                first = [f"{self.variables[it.name]} == 0" for it in s.iters if it.kind == "R"]
                with self.nested(f"if {' and '.join(first) or True}:"):
                    self.stmt(s.init)
            self.stmt(s.body)
        self.forget()

    def bind_iterators(self, s: Block) -> None:
        values = [(it, self.atom(it.binding), self.atom(it.extent)) for it in s.iters]
        for it, binding, extent in values:
            name = self.variable(it.name)
            self.line(f"{name} = {binding}")
            if self.extents.get(binding) is it.extent:
                continue  # a loop over just this domain
            self.line(f"if not 0 <= {name} < {extent}:")
            self.line(f"    support.outside_domain({s.name!r}, {it.name!r}, {name}, {extent})")

    def tile(self, s: Tile) -> None:
        if self.noted_tile(s):
            return
        if is_copy(s) and len(s.srcs) == 2:  # counted by an mbarrier, and noted as a whole
            outer, self.noted = self.noted, self.noted - {s.dst.buffer}
            self.stmt(expand_tile(replace(s, srcs=s.srcs[:1]), self.declared))
            self.noted = outer
        else:
            self.stmt(expand_tile(s, self.declared))


_STATEMENTS: dict[type, Callable[[_Writer, Any], None]] = {
    Seq: _Writer.seq,
    For: _Writer.loop,
    If: _Writer.branch,
    Store: _Writer.store,
    Alloc: _Writer.alloc,
    Block: _Writer.block,
    Tile: _Writer.tile,
    Let: _Writer.let,
    Roles: _Writer.roles,
    **dict.fromkeys((MbarrierInit, MbarrierArrive, MbarrierWait), _Writer.mbarrier),
    **dict.fromkeys((Signal, Await), _Writer.flag),
    **dict.fromkeys((Barrier, CpAsyncCommit, CpAsyncWait), _Writer.order),
}
