from __future__ import annotations

import re

from tilewright.driver.report.explorer.document import ExploredModel
from tilewright.driver.report.explorer.located_code import (
    located_assembly,
    located_code,
    located_llvm,
)
from tilewright.ir.loop.text import print_func


def test_llvm_text_without_its_locations() -> None:
    source = (
        "define void @f() !dbg !1000004 {\n  ret void, !dbg !1000005\n}\n\n"
        "!llvm.dbg.cu = !{!1000000}\n!1000005 = !DILocation(line: 7, column: 0, scope: !1000004)\n"
    )
    found = located_llvm(source)
    assert found.text == ["define void @f() {", "  ret void", "}"]
    assert found.lines == [0, 7, 0]


def test_assembly_without_its_directives() -> None:
    source = (
        'f:\n\t.loc\t1 3 0\n\taddl\t%eax, %ebx\n.Ltmp0:\n\t.loc\t1 0 0\n\tretq\n\t.file 1 "loops"\n'
    )
    found = located_assembly(source)
    assert found.text == ["f:", "\taddl\t%eax, %ebx", "\tretq"]
    assert found.lines == [0, 3, 0]


def test_every_line_of_a_loop_has_instructions(measured: ExploredModel) -> None:
    build = measured.build
    kernel = build.distinct_kernels["matmul_add"]
    llvm, assembly = located_code(kernel, build.target, build.precision)
    assert "\n".join(llvm.text).strip() == kernel.llvm.strip()
    stores = {
        number
        for number, line in enumerate(print_func(kernel.finalized).splitlines(), start=1)
        if re.search(r"\] \+?= ", line)
    }
    assert stores <= set(llvm.lines)
    assert set(assembly.lines) & stores
