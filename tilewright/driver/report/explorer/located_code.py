"""A kernel's LLVM text and assembly, each line with the line of the loops that it comes from.

    llvm, assembly = located_code(kernel, build.target, build.precision)
    assembly.text[5], assembly.lines[5]      # 'vfmadd231ps ...', 12; 0 is no line

What LLVM makes of debug information (`codegen/llvm/source_lines.py`) is read and then left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tilewright.codegen.llvm.source_lines import FIRST
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.driver.kernel.backend import backend_of
from tilewright.driver.kernel.kernel import Kernel
from tilewright.target.target import Target

_LOCATION = re.compile(r",? !dbg !(\d+)")
_DEFINED = re.compile(r"!(\d+) = !DILocation\(line: (\d+),")
_METADATA = re.compile(rf"^!(llvm\.|{str(FIRST)[:3]}\d+ = )", re.MULTILINE)
_LOC = re.compile(r"\s*\.loc\s+\d+ (\d+)")
# Lines of assembly that say nothing of the code: debug information, unwinding, temporary labels.
_NOISE = re.compile(
    r"\s*(\.loc\b|\.file\b|\.cfi_|[.$]L_*(tmp|func_begin|func_end)\d+:|\.section\s+\.debug|#DEBUG|"
    r"//\s*(begin|end) inline asm|\.ident\b|\.addrsig|$)"
)
_FUNCTION = re.compile(r"[A-Za-z_][^\s]*:$|\.visible \.entry ")


@dataclass
class LocatedText:
    """Lines of text, and of each the line of the finalized loops, 0 for none."""

    text: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, text: str, line: int) -> None:
        """Add a line."""
        self.text.append(text)
        self.lines.append(line)


def located_code(kernel: Kernel, target: Target, precision: str) -> tuple[LocatedText, LocatedText]:
    """The LLVM text of a kernel, and its assembly."""
    emit = backend_of(target).emit
    llvm = emit(kernel.finalized, kernel.dim_params, target, precision, located=True)
    return located_llvm(llvm), located_assembly(compile_assembly(llvm, target))


def located_llvm(source: str) -> LocatedText:
    """LLVM text without its debug information."""
    numbers = {number: int(line) for number, line in _DEFINED.findall(source)}
    start = _METADATA.search(source)
    found = LocatedText()
    for line in source[: start.start() if start else None].rstrip().splitlines():
        at = _LOCATION.search(line)
        found.add(_LOCATION.sub("", line), numbers.get(at[1], 0) if at else 0)
    return found


def located_assembly(source: str) -> LocatedText:
    """Assembly without its debug information."""
    found, now = LocatedText(), 0
    for line in source.splitlines():
        at = _LOC.match(line)
        if at is not None:
            now = int(at[1])
        elif _FUNCTION.match(line):
            now = 0
            found.add(line, 0)
        elif not _NOISE.match(line):
            found.add(line, now if _is_code(line) else 0)
    return found


def _is_code(line: str) -> bool:
    return not line.strip().startswith((".", "//", "#", "{", "}", "$"))
