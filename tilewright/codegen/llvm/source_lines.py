"""Which line of a kernel's loops each instruction comes from, as LLVM's debug information.

    module = ModuleBuilder(source_lines=SourceLines(func))
    emit_func(module, func, sizes)
    module.text()                    # %t1 = load float, ptr %p1, align 4, !dbg !1000007

LLVM passes it on: its assembly says `.loc 1 12 0` where instructions of line 12 follow. Lines count
from 1 in the text that `print_func` gives. LLVM makes the same code of both, but may order a few
instructions otherwise.
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Func, Stmt
from tilewright.ir.loop.text import print_lines

# Metadata of other kinds has smaller numbers.
FIRST = 1_000_000
_UNIT, _FILE, _TYPE = (f"!{FIRST + i}" for i in range(3))
_HEAD = f"""\
!llvm.dbg.cu = !{{{_UNIT}}}
!llvm.module.flags = !{{!{FIRST + 3}}}
{_UNIT} = distinct !DICompileUnit(language: DW_LANG_C99, file: {_FILE}, producer: "tilewright", \
isOptimized: true, runtimeVersion: 0, emissionKind: DebugDirectivesOnly)
{_FILE} = !DIFile(filename: "loops", directory: "")
{_TYPE} = !DISubroutineType(types: !{{}})
!{FIRST + 3} = !{{i32 2, !"Debug Info Version", i32 3}}"""


class SourceLines:
    """Numbers the lines of a function's text, and collects the metadata that mentions them."""

    def __init__(self, func: Func) -> None:
        self._func = func  # kept alive: its statements are known by identity
        self._lines: dict[int, int] = {}
        for number, (_, owner) in enumerate(print_lines(func), start=1):
            if owner is not None:
                self._lines.setdefault(id(owner), number)
        self._metadata: list[str] = [_HEAD]

    def line(self, stmt: Stmt) -> int | None:
        """The line on which a statement of the function begins."""
        return self._lines.get(id(stmt))

    def add(self, what: str) -> str:
        """Add metadata; gives its name."""
        name = f"!{FIRST + 3 + len(self._metadata)}"
        self._metadata.append(f"{name} = {what}")
        return name

    def scope(self, function: str) -> FunctionScope:
        """The lines as instructions of an LLVM function refer to them."""
        return FunctionScope(self, function)

    def metadata(self) -> str:
        """What stands at the end of the module."""
        return "\n".join(self._metadata)


class FunctionScope:
    """The locations of one LLVM function; `attachment` belongs to its definition."""

    def __init__(self, lines: SourceLines, function: str) -> None:
        self._source = lines
        self._name = lines.add(
            f'distinct !DISubprogram(name: "{function}", scope: {_FILE}, file: {_FILE}, line: 1, '
            f"type: {_TYPE}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {_UNIT})"
        )
        self.attachment = f" !dbg {self._name}"
        self._known: dict[int, str] = {}

    def location(self, stmt: Stmt) -> str:
        """What an instruction of a statement ends with, "" for one that has no line."""
        line = self._source.line(stmt)
        if line is None:
            return ""
        if line not in self._known:
            where = f"!DILocation(line: {line}, column: 0, scope: {self._name})"
            self._known[line] = f", !dbg {self._source.add(where)}"
        return self._known[line]
