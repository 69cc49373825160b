"""A function under construction: lines of LLVM IR, fresh names, basic blocks, declarations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tilewright.arith.expr import Expr, Load
from tilewright.codegen.llvm.scopes import Scope
from tilewright.codegen.llvm.source_lines import FunctionScope, SourceLines
from tilewright.ir.loop.nodes import Stmt

# Instruction selection takes time quadratic in the length of a basic block.
BLOCK_LENGTH = 64

# Stands in the lines for what is called again after a call.
_RESUMED = "; resumed"


# Metadata by numbers that lines of source text (`source_lines.py`) do not reach.
_ROLLED, _NOT_UNROLLED = "!900000", "!900001"


class ModuleBuilder:
    """Collects function definitions, and declarations each once.

    `native_bf16` names the architecture whose own instruction rounds f32 to bf16; "" for none.
    Without `orders_zeros`, the greater or lesser of two zeros may be either of them. Without
    `masks_vectors`, no instruction loads some elements of a vector. With `source_lines` each
    instruction says which line of the loops it comes from.
    """

    def __init__(
        self,
        native_bf16: str = "",
        orders_zeros: bool = True,
        source_lines: SourceLines | None = None,
        masks_vectors: bool = True,
    ) -> None:
        self.native_bf16 = native_bf16
        self.orders_zeros = orders_zeros
        self.masks_vectors = masks_vectors
        self.source_lines = source_lines
        self.definitions: list[str] = []
        self.declarations: dict[str, str] = {}
        self._included: set[str] = set()
        self._zeros = 0

    def declare(self, name: str, signature: str) -> None:
        """Declare an external function: `declare("llvm.fabs.f32", "float (float)")`."""
        result, params = signature.split(" (", 1)
        self.declarations[name] = f"declare {result} @{name}({params}"

    def zeros(self, size: int = 16) -> str:
        """The address of `size` zero bytes or more: what to read where nothing may be read."""
        name = "@tw_zeros"
        self._zeros = max(self._zeros, size)
        kind = f"[{self._zeros} x i8]"
        self.declarations[name] = f"{name} = private constant {kind} zeroinitializer, align 16"
        return name

    def include(self, name: str, text: str) -> None:
        """Add definitions given as text, under a name, once."""
        if name not in self._included:
            self._included.add(name)
            self.definitions.append(text.strip())

    def rolled_loop(self) -> str:
        """The metadata of a loop that nobody is to unroll."""
        self.include(_ROLLED, f"{_ROLLED} = distinct !{{{_ROLLED}, {_NOT_UNROLLED}}}")
        self.include(_NOT_UNROLLED, f'{_NOT_UNROLLED} = !{{!"llvm.loop.unroll.disable"}}')
        return _ROLLED

    def text(self) -> str:
        """The module."""
        located = [] if self.source_lines is None else [self.source_lines.metadata()]
        declared = "\n".join(self.declarations.values())
        return "\n\n".join([declared, *self.definitions, *located]) + "\n"


class FunctionBuilder:
    """Lines of one function body.

    `scopes`, innermost last, remember the registers of expressions already computed; an entry is
    valid in its basic block and those nested in it. If it `hoists`, instructions may be put into
    an outer scope, before the loop or branch (`at_depth`).
    """

    def __init__(
        self,
        module: ModuleBuilder,
        name: str,
        params: Sequence[tuple[str, str]],
        hoists: bool = False,
    ) -> None:
        self.module = module
        self.name = name
        self.params = params
        self.hoists = hoists
        self.entry: list[str] = []
        self._states: dict[str, None] = {}
        self.lines: list[str] = []
        self.scopes: list[Scope] = [Scope(self.lines, 0, 0)]
        self._known: dict[Expr, str] = {}
        self.block = "entry"
        # What every instruction ends with: the line that it comes from, where that is asked for.
        self.location = ""
        self._scope: FunctionScope | None = None
        if module.source_lines is not None:
            self._scope = module.source_lines.scope(name)
        self._count = 0

    def fresh(self, hint: str = "t") -> str:
        """A register name not used before."""
        self._count += 1
        return f"%{hint}{self._count}"

    def label(self, hint: str) -> str:
        """A basic-block name not used before."""
        self._count += 1
        return f"{hint}{self._count}"

    def emit(self, line: str) -> None:
        """Append an instruction."""
        self.lines.append(f"  {line}{self.location}")

    def enter(self, stmt: Stmt) -> str:
        """From here on instructions are those of a statement; gives what `location` was before."""
        before = self.location
        if self._scope is not None:
            self.location = self._scope.location(stmt) or before
        return before

    def let(self, instruction: str, hint: str = "t") -> str:
        """Append an instruction that has a result; returns its register."""
        name = self.fresh(hint)
        self.emit(f"{name} = {instruction}")
        return name

    def entry_alloca(self, what: str, hint: str) -> str:
        """Allocate on the stack, in the entry block: `entry_alloca("i32, align 4", "a")`."""
        name = self.fresh(hint)
        self.entry.append(f"  {name} = alloca {what}")
        return name

    def surround(self, name: str) -> None:
        """Have `@<name>.begin` called at the function's start and `@<name>.end` at its end."""
        self._states[name] = None

    def called(self) -> None:
        """Note that what was emitted last calls a function, which may end what was begun here."""
        self.lines.append(_RESUMED)

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.block = label

    def end_block(self) -> None:
        """Start a new basic block."""
        label = self.label("next")
        self.emit(f"br label %{label}")
        self.start(label)

    def end_long_block(self, count: int) -> None:
        """Go on in a new basic block after every so many of a list."""
        if count % BLOCK_LENGTH == 0:
            self.end_block()

    @property
    def depth(self) -> int:
        """The number of the innermost scope."""
        return len(self.scopes) - 1

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside stays there, and is forgotten at the end."""
        inside = len(self.scopes)
        self.scopes.append(Scope(self.lines, inside, inside))
        yield
        self._leave()

    @contextmanager
    def construct(self) -> Iterator[None]:
        """A loop, or a choice with all its branches: what leaves it stands before all of it."""
        with self._section(Scope([], self.scopes[-1].cheap, self.scopes[-1].costly)):
            yield

    @contextmanager
    def branch(self) -> Iterator[None]:
        """A branch of a choice: only what is cheap may leave it."""
        with self._section(Scope([], self.scopes[-1].cheap, len(self.scopes))):
            yield

    @contextmanager
    def _section(self, scope: Scope) -> Iterator[None]:
        """A scope with lines of its own, so that what leaves it stands before them."""
        if not self.hoists:
            scope = Scope(self.lines, len(self.scopes), len(self.scopes))
        outer, self.lines = self.lines, scope.lines
        self.scopes.append(scope)
        yield
        self._leave()
        self.lines = outer
        if scope.lines is not outer:
            outer.extend(scope.lines)

    def _leave(self) -> None:
        for e in self.scopes.pop().known:
            self._known.pop(e, None)

    @contextmanager
    def at_depth(self, depth: int) -> Iterator[None]:
        """What is emitted meanwhile, and does not start a block, goes to the end of a scope."""
        inner, self.lines = self.lines, self.scopes[depth].lines
        yield
        self.lines = inner

    @contextmanager
    def for_range(
        self, begin: str, end: str, step: str = "1", rolled: bool = False
    ) -> Iterator[str]:
        """A loop, tested at the top, so that an empty range runs nothing.

        What is emitted meanwhile is its body; gives the number of the iteration. It stays a loop if
        it is `rolled`.
        """
        before, head, body, done = self.block, *map(self.label, ("head", "body", "done"))
        counter, following = self.fresh("i"), self.fresh("n")
        with self.construct():
            self.emit(f"br label %{head}")
            self.start(head)
            latch = len(self.lines)
            self.emit("")
            again = self.let(f"icmp slt i64 {counter}, {end}")
            self.emit(f"br i1 {again}, label %{body}, label %{done}")
            self.start(body)
            yield counter
            self.emit(f"{following} = add nuw nsw i64 {counter}, {step}")
            note = f", !llvm.loop {self.module.rolled_loop()}" if rolled else ""
            self.emit(f"br label %{head}{note}")
            phi = f"phi i64 [ {begin}, %{before} ], [ {following}, %{self.block} ]"
            self.lines[latch] = f"  {counter} = {phi}"
        self.start(done)

    def lookup(self, e: Expr) -> str | None:
        """The register that holds `e`, if it is known here."""
        return self._known.get(e)

    def forget_addresses(self, buffer: str) -> None:
        """Forget the addresses in a buffer, since another one gets its name."""
        for e in [e for e in self._known if isinstance(e, Load) and e.buffer == buffer]:
            del self._known[e]

    def remember(self, e: Expr, register: str, depth: int = -1) -> None:
        """Note that a register holds `e` in a scope."""
        self._known[e] = register
        self.scopes[depth].known.append(e)

    def finish(self, attributes: str = "", result: str = "void", convention: str = "") -> None:
        """Close the function, returning `result` (`void` or `type value`), and give it over."""
        params = ", ".join(f"{kind} {name}" for name, kind in self.params)
        begins = [f"  call void @{name}.begin()" for name in self._states]
        lines = (new for line in self.lines for new in (begins if line == _RESUMED else (line,)))
        ends = [f"  call void @{name}.end()" for name in self._states]
        body = "\n".join([*self.entry, *begins, *lines, *ends])
        attributes += "" if self._scope is None else self._scope.attachment
        self.module.definitions.append(
            f"define {convention}{result.split()[0]} @{self.name}({params}) {attributes} {{\n"
            f"entry:\n{body}\n  ret {result}\n}}"
        )
