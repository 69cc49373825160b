"""The rules of loop functions, checked.

VerifyError[loop.out-of-scope]: the body of block "C" uses the loop variable i
   3 |       block "C" [vi: S(8) = i] writes C[vi] { C[i] = 0.0 }
     |                                                 ^
  help: bind it to an iterator of the block
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from tilewright.arith.expr import Expr, Reduce, as_int
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import BOOL, I32, I64, DType
from tilewright.core.errors import VerifyError
from tilewright.ir.loop.annotations import ANNOTATIONS
from tilewright.ir.loop.nodes import (
    LOOP_KINDS,
    SCOPES,
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
    Region,
    Role,
    Roles,
    Seq,
    Signal,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.text import stmt_excerpt
from tilewright.ir.loop.thread_mapping import GRID, GROUP, THREAD_KINDS
from tilewright.ir.loop.verified import VerifiedStmts
from tilewright.ir.loop.walk import loops, statements_in, touched_buffers
from tilewright.ir.verify_expr import (
    EXPR_CHECKS,
    Checks,
    Fault,
    Signature,
    check_access,
    check_dtype,
    check_expr,
    check_name,
)

TILE_OPS = ("fill", "copy", "mma", "dot", "map", "reduce")
# Loops that become straight-line code must say how long it is.
_CONSTANT_KINDS = ("unroll", "vectorize", GROUP)
# Registers of a thread that `setmaxnreg` may ask for, in steps of 8.
_REGISTERS = range(24, 257, 8)


def verify_func(func: Func, verified: VerifiedStmts | None = None) -> None:
    """Raise a `VerifyError` if `func` breaks a rule of the loop IR.

    Statements in `verified` are not looked into again; those that are found right are added.
    """
    verifier = _Verifier(func, VerifiedStmts() if verified is None else verified)
    try:
        verifier.check_func()
    except Fault as fault:
        notes = stmt_excerpt(func, verifier.current, fault.focus)
        raise VerifyError(
            fault.code, fault.message, loc=func.loc, notes=notes, help=fault.help
        ) from None


class _Verifier:
    """Walks a function with what is in scope; `current` is the statement being checked."""

    def __init__(self, func: Func, verified: VerifiedStmts) -> None:
        self.func = func
        self.verified = verified
        self.current: Stmt | None = None
        self.buffers: dict[str, Signature] = {}
        self.writable: set[str] = set()
        self.loop_names: set[str] = set()
        self.buffer_names: set[str] = set()
        self.block_names: set[str] = set()
        # Variables that a loop or block binds somewhere; all others are sizes.
        self.bound = verified.bound_in(func.body)
        self.scope: frozenset[str] = frozenset()
        self.block = ""
        self.seen: set[Expr] = set()

    def check_func(self) -> None:
        self.check_params()
        self.check_layouts()
        self.check_annotations(self.func)
        self.stmt(self.func.body)

    def check_params(self) -> None:
        for b in self.func.params:
            self.declare_buffer(b, b.name in self.func.outputs)
            if b.scope != "global":
                raise Fault("loop.scope", f"parameter {b.name!r} must be global", str(b))
        written = tuple(b.name for b in self.func.params if b.name in self.func.outputs)
        last = tuple(b.name for b in self.func.params[len(self.func.params) - len(written) :])
        if self.func.outputs != written or written != last:
            raise Fault(
                "loop.outputs",
                f"outputs are {', '.join(self.func.outputs)}, which are not the last parameters",
                help="list outputs after all inputs, in the order of the parameters",
            )

    def check_layouts(self) -> None:
        params = {b.name: b for b in self.func.params}
        for name, layout in self.func.layouts:
            if name not in params:
                raise Fault("loop.layout", f"a layout names {name!r}, which is no parameter", name)
            wrong_axis = any(not 0 <= axis < len(layout.logical) for axis, _, _ in layout.parts)
            if wrong_axis or len(layout.parts) != len(params[name].shape):
                message = f"the layout of {name!r} does not give each of its dimensions a part"
                raise Fault("loop.layout", message, f"layout {name}")

    def check_annotations(self, node: Func | For | Block) -> None:
        for key, _ in node.annotations:
            if key not in ANNOTATIONS:
                (nearest,) = get_close_matches(key, ANNOTATIONS, n=1, cutoff=0)
                help = f"the nearest one is {nearest!r}; ir/loop/annotations.py has them all"
                raise Fault("loop.annotation", f"no annotation {key!r}", key, help)

    def declare_buffer(self, b: Buffer, writable: bool) -> None:
        check_name(b.name, "buffer", self.buffer_names)
        self.buffers[b.name] = (b.dtype, len(b.shape))
        if writable:
            self.writable.add(b.name)
        if b.scope not in SCOPES:
            raise Fault("loop.scope", f"no scope {b.scope!r}", f"@{b.scope}", _one_of(SCOPES))
        for dim in b.shape:
            self.expr(dim, "a dimension")

    def expr(self, e: Expr, what: str = "", dtype: Any = I64) -> None:
        """Check an expression that stands in the current statement."""
        if what:
            check_dtype(e, dtype, what)
        if e not in self.seen:
            check_expr(e, self.buffers, self.seen, _CHECKS)
        if outside := (free_vars(e) & self.bound) - self.scope:
            self.out_of_scope(min(outside))

    def out_of_scope(self, name: str) -> None:
        if self.block:
            message = f'the body of block "{self.block}" uses the variable {name} from outside'
            raise Fault("loop.out-of-scope", message, name, "bind it to an iterator of the block")
        raise Fault("loop.out-of-scope", f"{name} is used outside what binds it", name)

    def stmt(self, s: Stmt) -> None:
        if self.verified.holds(s, self):
            return
        before, self.current = self.current, s
        _STATEMENTS[type(s)](self, s)
        self.current = before
        self.verified.add(s, self)

    def seq(self, s: Seq) -> None:
        for child in s.stmts:
            self.stmt(child)

    def loop(self, s: For) -> None:
        check_name(s.name, "loop", self.loop_names)
        if s.kind not in LOOP_KINDS:
            raise Fault("loop.kind", f"no kind of loop {s.kind!r}", s.kind, _one_of(LOOP_KINDS))
        self.check_annotations(s)
        self.expr(s.extent, "the extent of a loop")
        if s.kind in _CONSTANT_KINDS and as_int(s.extent) is None:
            message = f"{s.kind} loop {s.name} must have a constant extent, not {s.extent}"
            raise Fault("loop.extent", message, str(s.extent), "split it by a constant first")
        if s.kind in THREAD_KINDS:
            self.check_inside(s.body, f"{s.kind} loop {s.name}")
        self.within(s.body, self.scope | {s.name})

    def check_inside(self, body: Stmt, where: str) -> None:
        """A thread, and a role, cannot be divided into roles."""
        if any(isinstance(s, Roles) for s in statements_in(body)):
            raise Fault("loop.roles", f"roles inside of {where}", help="roles divide a block")

    def let(self, s: Let) -> None:
        check_name(s.name, "variable", self.loop_names)
        self.expr(s.value, "an index variable")
        self.within(s.body, self.scope | {s.name})

    def within(self, body: Stmt, scope: frozenset[str], block: str | None = None) -> None:
        outer = self.scope, self.block
        self.scope, self.block = scope, self.block if block is None else block
        self.stmt(body)
        self.scope, self.block = outer

    def branch(self, s: If) -> None:
        self.expr(s.cond, "a condition", BOOL)
        self.stmt(s.then)
        if s.orelse is not None:
            self.stmt(s.orelse)

    def store(self, s: Store) -> None:
        check_access(s.buffer, s.indices, self.buffers)
        if s.buffer not in self.writable:
            message = f"{s.buffer!r} is an input and cannot be written"
            raise Fault(
                "loop.read-only", message, s.buffer, "mark it as an output: out " + s.buffer
            )
        for i in s.indices:
            self.expr(i)
        self.expr(s.value, f"what is stored in {s.buffer!r}", self.buffers[s.buffer][0])
        if s.mask is not None:
            check_dtype(s.mask, BOOL, "a mask", after="? ")
            self.expr(s.mask)

    def alloc(self, s: Alloc) -> None:
        self.declare_buffer(s.buffer, writable=True)
        self.stmt(s.body)
        del self.buffers[s.buffer.name]

    def region(self, r: Region) -> None:
        check_access(r.buffer, tuple(start for start, _ in r.ranges), self.buffers)
        for start, extent in r.ranges:
            self.expr(start)
            self.expr(extent, "the extent of a region")

    def tile(self, s: Tile) -> None:
        if s.op.partition(".")[0] not in TILE_OPS:
            raise Fault("loop.tile", f"no tile operation {s.op!r}", s.op, _one_of(TILE_OPS))
        if s.dst.buffer not in self.writable:
            raise Fault("loop.read-only", f"{s.dst.buffer!r} cannot be written", s.dst.buffer)
        for r in (s.dst, *s.srcs):
            self.region(r)

    def roles(self, s: Roles) -> None:
        names: set[str] = set()
        for role in s.roles:
            check_name(role.name, "role", names)
            self.check_role(role)
            self.stmt(role.body)

    def check_role(self, role: Role) -> None:
        def fault(message: str, help: str) -> Fault:
            return Fault("loop.roles", message, f"{role.name} warps", help)

        if role.warps < 1 or (role.registers and role.registers not in _REGISTERS):
            given = f"{role.warps} warps with {role.registers} registers"
            raise fault(f"role {role.name} has {given}", "24 to 256 registers in steps of 8")
        self.check_inside(role.body, f"role {role.name}")
        if any(isinstance(s, Barrier) for s in statements_in(role.body)):
            message = f"role {role.name} waits at a barrier, which other warps do not reach"
            raise fault(message, "an mbarrier counts the warps that arrive")
        for loop in loops(role.body):
            extent = as_int(loop.extent) or 1
            if loop.kind == GRID or (loop.kind == GROUP and role.warps % extent):
                message = f"role {role.name} of {role.warps} warps has {loop.kind}({loop.extent})"
                raise fault(message, "equal groups of warps")

    def mbarrier(self, s: MbarrierInit | MbarrierArrive | MbarrierWait) -> None:
        self.synchronizes(s.barrier, (I64,), "loop.mbarrier", isinstance(s, MbarrierInit))
        match s:
            case MbarrierInit(_, count) if count < 1:
                message = f"a phase of {count} arrivals is never complete"
                raise Fault("loop.mbarrier", message, f"count {count}")
            case MbarrierArrive(_, mask) if mask is not None:
                self.expr(mask, "a mask", BOOL)
            case MbarrierWait(_, parity):
                self.expr(parity, "a parity")

    def flag(self, s: Signal | Await) -> None:
        self.synchronizes(s.flag, (I32, I64), "loop.flag")
        if isinstance(s, Await):
            self.expr(s.count, "a count")

    def synchronizes(
        self, place: Region, dtypes: tuple[DType, ...], code: str, several: bool = False
    ) -> None:
        """Check what a statement waits or arrives at: one element, unless there may be several."""
        self.region(place)
        if place.buffer not in self.writable:
            raise Fault("loop.read-only", f"{place.buffer!r} cannot be written", place.buffer)
        if self.buffers[place.buffer][0] not in dtypes:
            help = f"one of {', '.join(map(str, dtypes))}"
            raise Fault(code, f"{place.buffer!r} cannot be waited for", place.buffer, help)
        if not several and any(as_int(extent) != 1 for _, extent in place.ranges):
            raise Fault(code, f"not one element of {place.buffer!r}", place.buffer)

    def check_block(self, s: Block) -> None:
        if s.name in self.block_names:
            raise Fault("loop.duplicate", f"two blocks are called {s.name!r}", f'"{s.name}"')
        self.block_names.add(s.name)
        self.check_annotations(s)
        names: set[str] = set(self.scope)
        for it in s.iters:
            check_name(it.name, "iterator", names)
            if it.kind not in ("S", "R"):
                raise Fault("loop.iterator", f"no kind of iterator {it.kind!r}", it.name, "S or R")
            self.expr(it.extent, "the extent of an iterator")
            self.expr(it.binding, "the binding of an iterator")
        check_dtype(s.predicate, BOOL, "the predicate of a block", after="where ")
        self.expr(s.predicate)
        scope = frozenset(it.name for it in s.iters)
        outer, self.scope = self.scope, scope
        for r in (*s.reads, *s.writes):
            self.region(r)
        self.scope = outer
        for part in (s.init, s.body):
            if part is not None:
                self.within(part, scope, s.name)
        self.current = s
        self.signature(s)

    def signature(self, s: Block) -> None:
        """Every buffer that the code touches stands in the block's signature."""
        writes = {r.buffer for r in s.writes}
        reads = {r.buffer for r in s.reads} | (writes if s.init is not None else set())
        for part in (s.init, s.body):
            found = touched_buffers(part) if part is not None else (set(), set())
            for word, missing in (("reads", found[0] - reads), ("writes", found[1] - writes)):
                if missing:
                    what = f'block "{s.name}" {word} {min(missing)!r}'
                    help = f"add it to `{word}`"
                    raise Fault(
                        "loop.signature", f"{what}, its signature does not say so", "", help
                    )


def _no_reduce(e: Reduce, _: Mapping[str, Signature]) -> None:
    raise Fault("loop.reduce", f"{e} belongs into a tensor expression", str(e))


_CHECKS: Checks = {**EXPR_CHECKS, Reduce: _no_reduce}


def _one_of(names: Iterable[str]) -> str:
    return f"one of {', '.join(names)}"


_STATEMENTS: dict[type, Callable[[_Verifier, Any], None]] = {
    Seq: _Verifier.seq,
    For: _Verifier.loop,
    If: _Verifier.branch,
    Store: _Verifier.store,
    Alloc: _Verifier.alloc,
    Block: _Verifier.check_block,
    Tile: _Verifier.tile,
    Let: _Verifier.let,
    Roles: _Verifier.roles,
    **dict.fromkeys((MbarrierInit, MbarrierArrive, MbarrierWait), _Verifier.mbarrier),
    **dict.fromkeys((Signal, Await), _Verifier.flag),
    **dict.fromkeys((Barrier, CpAsyncCommit, CpAsyncWait), lambda verifier, s: None),
}
