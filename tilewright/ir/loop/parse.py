"""The parser of loop functions; the grammar stands in `text.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from tilewright.arith.expr import TRUE, Binary, Expr, Load, const
from tilewright.arith.text import ExprParser
from tilewright.core.dtypes import DTYPES, DType
from tilewright.core.text import Cursor, refuses_deep_text
from tilewright.ir.loop.nodes import (
    Alloc,
    Annotations,
    Await,
    Barrier,
    Block,
    Buffer,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    Func,
    If,
    Iter,
    Layout,
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

T = TypeVar("T")


@refuses_deep_text
def parse_func(source: str, file: str = "") -> Func:
    """The function that `source` spells."""
    parser = _Parser(source, file)
    func = parser.func()
    parser.end()
    return func


@refuses_deep_text
def parse_stmt(source: str, buffers: Mapping[str, DType] | None = None) -> Stmt:
    """The statements that `source` spells; `buffers` gives the dtypes of buffers around them."""
    parser = _Parser(source, "")
    parser.dtypes.update(buffers or {})
    stmt = parser.body("")
    parser.end()
    return stmt


class _Parser:
    def __init__(self, source: str, file: str) -> None:
        self.cursor = Cursor(source, file)
        self.dtypes: dict[str, DType] = {}
        self.exprs = ExprParser(self.cursor, self.dtypes)
        self.statements: dict[str, Callable[[], Stmt]] = {
            "for": self.loop,
            "if": self.branch,
            "block": self.block,
            "tile": self.tile,
            "seq": self.sequence,
            "roles": self.roles,
            "barrier": self.barrier,
            "cp_async_commit": self.cp_async_commit,
            "cp_async_wait": self.cp_async_wait,
            "mbarrier_init": self.mbarrier_init,
            "mbarrier_arrive": self.mbarrier_arrive,
            "mbarrier_wait": self.mbarrier_wait,
            "signal": self.signal,
            "await": self.await_flag,
            "{": self.group,
        }
        # Their scope ends with the braces around them.
        self.declarations: dict[str, Callable[[str], Stmt]] = {
            "alloc": self.allocation,
            "let": self.let,
        }

    def end(self) -> None:
        if self.cursor.now.kind != "end":
            self.cursor.fail(f"unexpected {self.cursor.now.text!r} after the end")

    def listed(self, item: Callable[[], T], closing: str = "") -> tuple[T, ...]:
        """Items separated by commas, up to and with `closing` if there is one."""
        found: list[T] = []
        while not (closing and self.cursor.accept(closing)):
            found.append(item())
            if not self.cursor.accept(","):
                if closing:
                    self.cursor.expect(closing)
                break
        return tuple(found)

    def func(self) -> Func:
        self.cursor.expect("func")
        name = self.cursor.take("ref")[1:]
        self.cursor.expect("(")
        params = self.listed(self.param, ")")
        annotations = self.annotations()
        layouts: list[tuple[str, Layout]] = []
        while self.cursor.accept("layout"):
            layouts.append((self.cursor.take("name"), self.layout()))
        self.cursor.expect("{")
        outputs = tuple(b.name for b, is_output in params if is_output)
        inputs = tuple(b for b, _ in params)
        return Func(name, inputs, outputs, self.body(), tuple(layouts), annotations)

    def param(self) -> tuple[Buffer, bool]:
        is_output = self.cursor.peek("out") and not self.cursor.peek(":", 1)
        if is_output:
            self.cursor.expect("out")
        return self.buffer(), is_output

    def buffer(self) -> Buffer:
        name = self.cursor.take("name")
        self.cursor.expect(":")
        dtype = self.dtype()
        shape = self.indices()
        scope = self.cursor.take("ref")[1:] if self.cursor.now.kind == "ref" else "global"
        self.dtypes[name] = dtype
        return Buffer(name, dtype, shape, scope)

    def dtype(self) -> DType:
        if self.cursor.now.text not in DTYPES:
            self.cursor.fail(f"expected a dtype, found {self.cursor.now.text!r}")
        return DTYPES[self.cursor.take("name")]

    def indices(self) -> tuple[Expr, ...]:
        self.cursor.expect("[")
        return self.listed(self.exprs.parse, "]")

    def layout(self) -> Layout:
        self.cursor.expect("=")
        self.cursor.expect("pack")
        logical = self.indices()
        self.cursor.expect("->")
        self.cursor.expect("[")
        return Layout(logical, self.listed(self.part, "]"))

    def part(self) -> tuple[int, int, int]:
        axis = self.cursor.now.text
        if axis[:1] != "d" or not axis[1:].isdigit():
            self.cursor.fail(f"expected a dimension like d0, found {axis!r}")
        self.cursor.position += 1
        for symbol, place in (("//", 0), ("%", 1)):
            if self.cursor.accept(symbol):
                return int(axis[1:]), int(self.cursor.take("int")), place
        return int(axis[1:]), 0, 0

    def annotations(self) -> Annotations:
        """`{name=value, ...}`; a statement never starts with a name and `=`."""
        if not (self.cursor.peek("{") and self.cursor.peek("=", 2)):
            return ()
        self.cursor.expect("{")
        return self.listed(self.annotation, "}")

    def annotation(self) -> tuple[str, int | str]:
        name = self.cursor.take("name")
        self.cursor.expect("=")
        if self.cursor.now.kind == "string":
            return name, self.string()
        sign = -1 if self.cursor.accept("-") else 1
        return name, sign * int(self.cursor.take("int"))

    def string(self) -> str:
        return str(json.loads(self.cursor.take("string")))

    def body(self, closing: str = "}") -> Stmt:
        """Statements up to `closing`: one is itself, any other number is a sequence."""
        items = self.items(closing)
        return items[0] if len(items) == 1 else Seq(tuple(items))

    def items(self, closing: str) -> list[Stmt]:
        items: list[Stmt] = []
        while not self.at_end(closing):
            declaration = self.declarations.get(self.cursor.now.text)
            if declaration is not None and not self.cursor.peek("[", 1):
                items.append(declaration(closing))
                return items
            items.append(self.statement())
        return items

    def at_end(self, closing: str) -> bool:
        return self.cursor.accept(closing) if closing else self.cursor.now.kind == "end"

    def braced(self) -> Stmt:
        self.cursor.expect("{")
        return self.body()

    def allocation(self, closing: str) -> Stmt:
        self.cursor.expect("alloc")
        buffer = self.buffer()
        return Alloc(buffer, self.body(closing))

    def let(self, closing: str) -> Stmt:
        self.cursor.expect("let")
        name = self.cursor.take("name")
        self.cursor.expect("=")
        return Let(name, self.exprs.parse(), self.body(closing))

    def statement(self) -> Stmt:
        parse = self.statements.get(self.cursor.now.text, self.store)
        return self.store() if self.cursor.peek("[", 1) else parse()

    def group(self) -> Stmt:
        return self.braced()

    def sequence(self) -> Stmt:
        self.cursor.expect("seq")
        self.cursor.expect("{")
        return Seq(tuple(self.items("}")))

    def roles(self) -> Stmt:
        self.cursor.expect("roles")
        self.cursor.expect("{")
        found: list[Role] = []
        while not self.cursor.accept("}"):
            name = self.cursor.take("name")
            warps = self.number("warps")
            registers = self.number("registers") if self.cursor.peek("registers") else 0
            found.append(Role(name, warps, registers, self.braced()))
        return Roles(tuple(found))

    def number(self, word: str) -> int:
        """`word(4)`."""
        self.cursor.expect(word)
        self.cursor.expect("(")
        number = int(self.cursor.take("int"))
        self.cursor.expect(")")
        return number

    def barrier(self) -> Stmt:
        self.cursor.expect("barrier")
        return Barrier()

    def cp_async_commit(self) -> Stmt:
        self.cursor.expect("cp_async_commit")
        return CpAsyncCommit()

    def cp_async_wait(self) -> Stmt:
        self.cursor.expect("cp_async_wait")
        return CpAsyncWait(int(self.cursor.take("int")))

    def mbarrier_init(self) -> Stmt:
        self.cursor.expect("mbarrier_init")
        place = self.region()
        self.cursor.expect("count")
        return MbarrierInit(place, int(self.cursor.take("int")))

    def mbarrier_arrive(self) -> Stmt:
        self.cursor.expect("mbarrier_arrive")
        place = self.region()
        return MbarrierArrive(place, self.exprs.parse() if self.cursor.accept("?") else None)

    def mbarrier_wait(self) -> Stmt:
        self.cursor.expect("mbarrier_wait")
        place = self.region()
        self.cursor.expect("parity")
        return MbarrierWait(place, self.exprs.parse())

    def signal(self) -> Stmt:
        self.cursor.expect("signal")
        return Signal(self.region())

    def await_flag(self) -> Stmt:
        self.cursor.expect("await")
        flag = self.region()
        self.cursor.expect("count")
        return Await(flag, self.exprs.parse())

    def loop(self) -> Stmt:
        self.cursor.expect("for")
        names = self.listed(lambda: self.cursor.take("name"))
        self.cursor.expect("in")
        kind = self.cursor.take("name")
        self.cursor.expect("(")
        extents = self.listed(self.exprs.parse, ")")
        if len(names) != len(extents):
            self.cursor.fail(f"{len(names)} loops have {len(extents)} extents")
        annotations = self.annotations()
        body = self.braced()
        for name, extent in reversed(tuple(zip(names, extents, strict=True))):
            body = For(name, extent, kind, body, annotations)
        return body

    def branch(self) -> Stmt:
        self.cursor.expect("if")
        cond = self.exprs.parse()
        then = self.braced()
        return If(cond, then, self.braced() if self.cursor.accept("else") else None)

    def store(self) -> Stmt:
        name = self.cursor.now.text
        if self.cursor.now.kind != "name" or not self.cursor.peek("[", 1):
            self.cursor.fail(f"expected a statement, found {name or 'the end'!r}")
        target = self.exprs.parse()
        assert isinstance(target, Load), "a name and a bracket are a load"
        if self.cursor.accept("+="):
            return Store(name, target.indices, Binary("add", target, self.exprs.parse()))
        self.cursor.expect("=")
        return Store(name, target.indices, self.exprs.parse(), target.mask)

    def block(self) -> Stmt:
        self.cursor.expect("block")
        name = self.string()
        self.cursor.expect("[")
        iters = self.listed(self.iterator, "]")
        reads = self.listed(self.region) if self.cursor.accept("reads") else ()
        writes = self.listed(self.region) if self.cursor.accept("writes") else ()
        annotations = self.annotations()
        predicate = self.exprs.parse() if self.cursor.accept("where") else TRUE
        init = self.braced() if self.cursor.accept("init") else None
        return Block(name, iters, reads, writes, self.braced(), init, predicate, annotations)

    def iterator(self) -> Iter:
        name = self.cursor.take("name")
        self.cursor.expect(":")
        kind = self.cursor.take("name")
        self.cursor.expect("(")
        extent = self.exprs.parse()
        self.cursor.expect(")")
        self.cursor.expect("=")
        return Iter(name, kind, extent, self.exprs.parse())

    def region(self) -> Region:
        name = self.cursor.take("name")
        self.cursor.expect("[")
        return Region(name, self.listed(self.range, "]"))

    def range(self) -> tuple[Expr, Expr]:
        start = self.exprs.parse()
        return start, self.exprs.parse() if self.cursor.accept(":") else const(1)

    def tile(self) -> Stmt:
        self.cursor.expect("tile")
        op = self.cursor.take("name")
        dst = self.region()
        srcs: tuple[Region, ...] = ()
        if self.cursor.accept("<"):
            self.cursor.expect("-")
            srcs = self.listed(self.region)
        intrinsic = self.string() if self.cursor.accept("using") else ""
        return Tile(op, dst, srcs, intrinsic)
